-- The groups of three bytes in a text: a search reads only texts that may contain its words.

-- Empty if unknown: then the text is read.
ALTER TABLE content ADD COLUMN signature TEXT NOT NULL DEFAULT '';
