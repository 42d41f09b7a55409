-- What reports have added to an account's store, and what of them was not kept.

CREATE TABLE report_tally (
    account_id TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    -- kept, over-quota or foreign
    outcome TEXT NOT NULL,
    -- when the day begins on which the reports came
    day BIGINT NOT NULL,
    -- the organization that vouches for them; empty: none
    sender TEXT NOT NULL,
    reports BIGINT NOT NULL,
    row_count BIGINT NOT NULL,
    byte_count BIGINT NOT NULL,
    -- what the last of them is about
    domain TEXT NOT NULL,
    PRIMARY KEY (account_id, outcome, day, sender)
);
CREATE INDEX report_tally_forgetting ON report_tally (day);
