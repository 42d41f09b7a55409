-- The authors after the first one (RFC 5322 3.6.2), which searches look at. For earlier mail they are not known.
ALTER TABLE delivery ADD COLUMN other_authors TEXT NOT NULL DEFAULT '';
