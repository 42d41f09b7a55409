-- The grants that end when the code is exchanged, as ids that are separated by spaces.
ALTER TABLE oauth_code ADD COLUMN replaces TEXT NOT NULL DEFAULT '';
