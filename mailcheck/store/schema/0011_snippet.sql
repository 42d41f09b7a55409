-- The start of the text of a mail in one line, for lists.
ALTER TABLE content ADD COLUMN snippet TEXT NOT NULL DEFAULT '';
