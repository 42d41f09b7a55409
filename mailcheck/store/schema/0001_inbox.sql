-- Accounts, their keys, their inboxes and the mail in them.
-- Moments are milliseconds since the Unix epoch, UTC; truth values are 0 and 1.
-- BYTEA holds bytes in PostgreSQL and, having no meaning of its own there, in SQLite.

CREATE TABLE account (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    -- reads the mail to postmaster and abuse; at most one account
    is_operator INTEGER NOT NULL,
    created_at BIGINT NOT NULL,
    -- quota of the inbox; NULL is the configured default
    max_messages BIGINT,
    max_bytes BIGINT
);

CREATE TABLE api_key (
    id TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    -- SHA-256 of the key; the key itself is nowhere
    digest BYTEA NOT NULL UNIQUE,
    name TEXT NOT NULL,
    -- the first characters of the key, by which a person recognises it
    hint TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    last_used_at BIGINT,
    revoked_at BIGINT,
    -- request limits; NULL is the configured default
    per_minute INTEGER,
    per_day INTEGER
);
CREATE INDEX api_key_account ON api_key (account_id);

CREATE TABLE inbox (
    account_id TEXT NOT NULL PRIMARY KEY REFERENCES account (id) ON DELETE CASCADE,
    -- local part without tag, lower case
    mailbox_name TEXT NOT NULL UNIQUE,
    -- the newest cursor; advanced in the transaction that inserts a message
    last_position BIGINT NOT NULL,
    message_count BIGINT NOT NULL,
    byte_count BIGINT NOT NULL
);

CREATE TABLE delivery (
    id TEXT NOT NULL PRIMARY KEY,
    received_at BIGINT NOT NULL,
    envelope_sender TEXT NOT NULL,
    client_ip TEXT NOT NULL,
    helo_name TEXT NOT NULL,
    is_extended INTEGER NOT NULL,
    tls_version TEXT,
    tls_cipher TEXT,
    author_address TEXT NOT NULL,
    author_name TEXT NOT NULL,
    subject TEXT NOT NULL,
    -- what filters look in, case folded
    author_key TEXT NOT NULL,
    subject_key TEXT NOT NULL,
    size BIGINT NOT NULL,
    -- byte for byte what came after DATA, dot-stuffing undone
    raw_message BYTEA NOT NULL
);

CREATE TABLE message (
    id TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES inbox (account_id) ON DELETE CASCADE,
    -- the inbox's counter when the message came in
    position BIGINT NOT NULL,
    delivery_id TEXT NOT NULL REFERENCES delivery (id),
    recipient TEXT NOT NULL,
    recipient_key TEXT NOT NULL,
    tag TEXT NOT NULL,
    tag_key TEXT NOT NULL,
    received_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    size BIGINT NOT NULL,
    share_token TEXT NOT NULL
);
CREATE UNIQUE INDEX message_position ON message (account_id, position);
CREATE INDEX message_tag ON message (account_id, tag_key, position);
CREATE INDEX message_recipient ON message (account_id, recipient_key, position);
CREATE INDEX message_received ON message (account_id, received_at, position);
CREATE INDEX message_expiry ON message (expires_at);
CREATE INDEX message_delivery ON message (delivery_id);

-- How many messages carry a tag: lists and overviews must not count rows.
CREATE TABLE inbox_tag (
    account_id TEXT NOT NULL REFERENCES inbox (account_id) ON DELETE CASCADE,
    tag_key TEXT NOT NULL,
    -- as the newest message wrote it
    tag TEXT NOT NULL,
    message_count BIGINT NOT NULL,
    latest_at BIGINT NOT NULL,
    PRIMARY KEY (account_id, tag_key)
);
CREATE INDEX inbox_tag_latest ON inbox_tag (account_id, latest_at, tag_key);

-- What was derived from a delivery's bytes. No row yet: derive it.
CREATE TABLE content (
    delivery_id TEXT NOT NULL PRIMARY KEY REFERENCES delivery (id) ON DELETE CASCADE,
    -- what a text search looks in, case folded and capped
    text_key TEXT NOT NULL,
    -- JSON arrays, and the link a person would click
    links TEXT NOT NULL,
    codes TEXT NOT NULL,
    best_link TEXT,
    -- JSON: header fields, text, html, attachments, candidates, problems
    document TEXT NOT NULL
);

-- Mail that was refused for an inbox, for those who wait for it in vain.
CREATE TABLE refusal (
    account_id TEXT NOT NULL REFERENCES inbox (account_id) ON DELETE CASCADE,
    refused_at BIGINT NOT NULL,
    recipient TEXT NOT NULL,
    envelope_sender TEXT NOT NULL,
    client_ip TEXT NOT NULL,
    reason TEXT NOT NULL
);
CREATE INDEX refusal_account ON refusal (account_id, refused_at);
CREATE INDEX refusal_expiry ON refusal (refused_at);
