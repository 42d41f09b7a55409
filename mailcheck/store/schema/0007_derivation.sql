-- By which rules a content was derived: what older rules have found is derived again.
ALTER TABLE content ADD COLUMN derivation BIGINT NOT NULL DEFAULT 0;
