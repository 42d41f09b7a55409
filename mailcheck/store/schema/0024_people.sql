-- Addresses of To, Cc, Bcc and Reply-To, and names of attachments, as searches compare them.

ALTER TABLE content ADD COLUMN address_key TEXT NOT NULL DEFAULT '';
ALTER TABLE content ADD COLUMN file_key TEXT NOT NULL DEFAULT '';
