-- The webhooks of accounts and their progress. The messages after `position` are the queue of a
-- webhook, so that a deleted message is in no queue.
CREATE TABLE webhook (
    id TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES inbox (account_id) ON DELETE CASCADE,
    url TEXT NOT NULL,
    -- JSON: the conditions of the filter
    wanted TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    position BIGINT NOT NULL,
    -- secrets that sign the events, so they are stored unhashed
    secret TEXT NOT NULL,
    earlier_secret TEXT,
    earlier_until BIGINT,
    -- increases when the owner changes the queue: a delivery that began earlier does not overwrite it
    revision BIGINT NOT NULL,
    state TEXT NOT NULL,
    failing_since BIGINT,
    failures INTEGER NOT NULL,
    retry_at BIGINT,
    problem TEXT NOT NULL,
    -- number of all attempts: determines the slot of the next one
    attempts BIGINT NOT NULL
);
CREATE INDEX webhook_account ON webhook (account_id, created_at);

-- The last attempts of each webhook.
CREATE TABLE webhook_delivery (
    webhook_id TEXT NOT NULL REFERENCES webhook (id) ON DELETE CASCADE,
    slot INTEGER NOT NULL,
    number BIGINT NOT NULL,
    event_id TEXT NOT NULL,
    attempted_at BIGINT NOT NULL,
    status INTEGER,
    problem TEXT NOT NULL,
    milliseconds BIGINT NOT NULL,
    PRIMARY KEY (webhook_id, slot)
);

-- Jobs that one daemon does for all; times are those of the database's clock.
CREATE TABLE lease (
    work TEXT NOT NULL PRIMARY KEY,
    holder TEXT NOT NULL,
    ends_at BIGINT NOT NULL
);
