-- The digests that accounts have chosen.
CREATE TABLE digest (
    account_id TEXT NOT NULL PRIMARY KEY REFERENCES account (id) ON DELETE CASCADE,
    -- JSON: the settings of the owner
    settings TEXT NOT NULL,
    -- what it is about begins here
    begins_at BIGINT NOT NULL,
    next_at BIGINT NOT NULL,
    -- JSON: the receivers to which it could not be sent yet; empty before the first attempt
    left_to TEXT NOT NULL
);
CREATE INDEX digest_due ON digest (next_at);
