-- How the text of a mail begins, in one line, for lists.
ALTER TABLE content ADD COLUMN snippet TEXT NOT NULL DEFAULT '';
