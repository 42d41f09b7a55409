-- The header fields that filters of waits and lists use.

-- All values of a field, folded, between two marks with its name.
ALTER TABLE content ADD COLUMN header_key TEXT NOT NULL DEFAULT '';

-- Everything is derived again, since no header fields were stored before.
DELETE FROM content;
