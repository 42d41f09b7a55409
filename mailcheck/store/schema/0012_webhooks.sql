-- Where accounts are told of their mail, and how far each was told: the messages behind
-- `position` are its queue, so that one which was deleted is in none.
CREATE TABLE webhook (
    id TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES inbox (account_id) ON DELETE CASCADE,
    url TEXT NOT NULL,
    -- JSON: what of a filter is asked
    wanted TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    position BIGINT NOT NULL,
    -- they sign what is told, so they are kept as they are
    secret TEXT NOT NULL,
    earlier_secret TEXT,
    earlier_until BIGINT,
    -- counts what its owner did with the queue: who delivers records nothing over that
    revision BIGINT NOT NULL,
    state TEXT NOT NULL,
    failing_since BIGINT,
    failures INTEGER NOT NULL,
    retry_at BIGINT,
    problem TEXT NOT NULL,
    -- tries in all: which slot the next one takes
    attempts BIGINT NOT NULL
);
CREATE INDEX webhook_account ON webhook (account_id, created_at);

-- The last tries of each webhook.
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

-- Works that one daemon does for all; moments are those of the database's clock.
CREATE TABLE lease (
    work TEXT NOT NULL PRIMARY KEY,
    holder TEXT NOT NULL,
    ends_at BIGINT NOT NULL
);
