-- What filters of waits and lists ask of a mail's header fields.

-- All values of a name between a mark with it and another one, case folded.
ALTER TABLE content ADD COLUMN header_key TEXT NOT NULL DEFAULT '';

-- It is derived again: of what is there already no header was kept to be looked in.
DELETE FROM content;
