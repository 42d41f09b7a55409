-- The sums of a day, which remain when its rows are deleted.
CREATE TABLE report_day (
    account_id TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    domain TEXT NOT NULL,
    -- start of the day
    day BIGINT NOT NULL,
    -- messages, or sessions; and those that failed
    amount BIGINT NOT NULL,
    failing BIGINT NOT NULL,
    PRIMARY KEY (account_id, kind, domain, day)
);
CREATE INDEX report_day_forgetting ON report_day (day);
-- An imported report is kept longer, so that a second import of it changes nothing.
CREATE INDEX receiver_report_old ON receiver_report (received_at) WHERE way = 'received';
