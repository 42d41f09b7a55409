-- Reports that receivers send about an account's domains (RFC 9990, RFC 8460).

CREATE TABLE receiver_report (
    id TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    received_at BIGINT NOT NULL,
    -- the mail that brought it; a delivery is kept as long as a report needs it
    delivery_id TEXT REFERENCES delivery (id),
    -- what was posted, until it is read
    body BYTEA,
    -- readings that have begun; who reads it, and until when nobody else does
    attempts INTEGER NOT NULL,
    lease_holder TEXT,
    lease_until BIGINT,
    reason TEXT NOT NULL,
    -- what was read: empty until then
    domain TEXT NOT NULL,
    reporter TEXT NOT NULL,
    organisation TEXT NOT NULL,
    report_key TEXT NOT NULL,
    begins_at BIGINT,
    ends_at BIGINT,
    policy TEXT NOT NULL,
    messages BIGINT NOT NULL,
    failing BIGINT NOT NULL,
    -- JSON array of sentences
    problems TEXT NOT NULL
);
CREATE INDEX receiver_report_account ON receiver_report (account_id, received_at, id);
CREATE INDEX receiver_report_waiting ON receiver_report (received_at) WHERE state = 'waiting';
CREATE INDEX receiver_report_forgetting ON receiver_report (received_at);
CREATE INDEX receiver_report_delivery ON receiver_report (delivery_id);
-- A report counts once.
CREATE UNIQUE INDEX receiver_report_once
    ON receiver_report (account_id, kind, domain, reporter, report_key) WHERE state = 'counted';

-- What believed reports say, per day, source and result.
CREATE TABLE report_count (
    account_id TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    domain TEXT NOT NULL,
    -- when the day begins
    day BIGINT NOT NULL,
    -- of reporter, report and result: to count a report again changes nothing
    digest TEXT NOT NULL,
    reporter TEXT NOT NULL,
    -- JSON: the row of the report
    result TEXT NOT NULL,
    -- messages, or sessions
    amount BIGINT NOT NULL,
    PRIMARY KEY (account_id, kind, domain, day, digest)
);
CREATE INDEX report_count_forgetting ON report_count (day);
