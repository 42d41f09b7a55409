-- The rows and bytes that reports added to an account, and those that were not stored.

CREATE TABLE report_tally (
    account_id TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    -- kept, over-quota or foreign
    outcome TEXT NOT NULL,
    -- start of the day on which the reports arrived
    day BIGINT NOT NULL,
    -- the organization that authenticates them, or empty
    sender TEXT NOT NULL,
    reports BIGINT NOT NULL,
    row_count BIGINT NOT NULL,
    byte_count BIGINT NOT NULL,
    -- the domain of the last report
    domain TEXT NOT NULL,
    PRIMARY KEY (account_id, outcome, day, sender)
);
CREATE INDEX report_tally_forgetting ON report_tally (day);
