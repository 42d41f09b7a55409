-- What a key may do, and until when. NULL: all scopes, all tags, no end.
-- Scopes and tags are separated by spaces, which neither contains.
ALTER TABLE api_key ADD COLUMN scopes TEXT;
ALTER TABLE api_key ADD COLUMN tags TEXT;
ALTER TABLE api_key ADD COLUMN tag_prefix TEXT;
ALTER TABLE api_key ADD COLUMN expires_at BIGINT;
