-- Deliverability tests: an address that takes one mail, and the report on it.

CREATE TABLE deliverability_test (
    id TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    -- pending, processing, completed, expired or error
    state TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    -- when the address stops taking mail
    expires_at BIGINT NOT NULL,
    -- when the test is deleted with all that belongs to it
    forget_at BIGINT NOT NULL,
    share_token TEXT NOT NULL,
    -- the mail, once there is one; its bytes may be shared with messages
    received_at BIGINT,
    delivery_id TEXT REFERENCES delivery (id),
    -- JSON array: the SMTP conversation, a line each
    transcript TEXT,
    -- analyses of this run that have begun
    attempts INTEGER NOT NULL,
    -- who analyses it, and until when nobody else does
    lease_holder TEXT,
    lease_until BIGINT,
    -- why the last analysis failed
    failure TEXT NOT NULL,
    -- the report, when completed: score in tenths, and a JSON object as it is shown
    tenths INTEGER,
    document TEXT
);
CREATE INDEX deliverability_test_account ON deliverability_test (account_id, created_at, id);
CREATE INDEX deliverability_test_pending ON deliverability_test (expires_at)
    WHERE state = 'pending';
CREATE INDEX deliverability_test_processing ON deliverability_test (received_at)
    WHERE state = 'processing';
CREATE INDEX deliverability_test_forgetting ON deliverability_test (forget_at);
-- A delivery is kept as long as a test needs it.
CREATE INDEX deliverability_test_delivery ON deliverability_test (delivery_id);
