-- The version of the rules that derived the content. Content of older rules is derived again.
ALTER TABLE content ADD COLUMN derivation BIGINT NOT NULL DEFAULT 0;
