-- Addresses in To, Cc, Bcc and Reply-To, and names of attachments, in the form for searches.

ALTER TABLE content ADD COLUMN address_key TEXT NOT NULL DEFAULT '';
ALTER TABLE content ADD COLUMN file_key TEXT NOT NULL DEFAULT '';
