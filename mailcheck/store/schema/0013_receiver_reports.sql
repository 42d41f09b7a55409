-- Reports that receivers send about an account's domains (RFC 9990, RFC 8460).

CREATE TABLE receiver_report (
    id TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    received_at BIGINT NOT NULL,
    -- the mail with the report; a delivery is kept as long as a report refers to it
    delivery_id TEXT REFERENCES delivery (id),
    -- a posted report, until it is read
    body BYTEA,
    -- attempts to read it that have begun; the daemon that reads it, and the end of its lease
    attempts INTEGER NOT NULL,
    lease_holder TEXT,
    lease_until BIGINT,
    reason TEXT NOT NULL,
    -- the content: empty until the report is read
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
-- A report is counted once.
CREATE UNIQUE INDEX receiver_report_once
    ON receiver_report (account_id, kind, domain, reporter, report_key) WHERE state = 'counted';

-- The content of trusted reports, per day, source and result.
CREATE TABLE report_count (
    account_id TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    domain TEXT NOT NULL,
    -- start of the day
    day BIGINT NOT NULL,
    -- of reporter, report and result: counting a report again changes nothing
    digest TEXT NOT NULL,
    reporter TEXT NOT NULL,
    -- JSON: the row of the report
    result TEXT NOT NULL,
    -- messages, or sessions
    amount BIGINT NOT NULL,
    PRIMARY KEY (account_id, kind, domain, day, digest)
);
CREATE INDEX report_count_forgetting ON report_count (day);
