-- Which groups of three bytes a text has: a search reads only those that may have what it asks.

-- Empty where it is not known: then the text is read.
ALTER TABLE content ADD COLUMN signature TEXT NOT NULL DEFAULT '';
