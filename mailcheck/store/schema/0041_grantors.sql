-- The person who has granted access to an OAuth client. It is unknown for older grants and for keys.
ALTER TABLE api_key ADD COLUMN granted_by TEXT;
ALTER TABLE oauth_code ADD COLUMN granted_by TEXT NOT NULL DEFAULT '';
