-- Mail to heartbeats. A heartbeat is a watch of the kind "heartbeat" whose target is its name.
CREATE TABLE heartbeat_beat (
    -- the id of the message
    id TEXT NOT NULL PRIMARY KEY,
    watch_id TEXT NOT NULL REFERENCES watch (id) ON DELETE CASCADE,
    -- the mail, until it is deleted
    delivery_id TEXT NOT NULL,
    received_at BIGINT NOT NULL,
    -- NULL: not judged yet
    verdict TEXT,
    -- analyses that could not verify its required signature
    attempts INTEGER NOT NULL,
    -- JSON: what the analysis has found
    facts TEXT,
    -- milliseconds after it was due
    late BIGINT
);
CREATE INDEX heartbeat_beat_watch ON heartbeat_beat (watch_id, verdict, received_at);

-- Numbers of beats by day, since mail is stored for hours. A day is its midnight in UTC.
CREATE TABLE heartbeat_day (
    watch_id TEXT NOT NULL REFERENCES watch (id) ON DELETE CASCADE,
    day BIGINT NOT NULL,
    on_time INTEGER NOT NULL,
    late INTEGER NOT NULL,
    missing INTEGER NOT NULL,
    refused INTEGER NOT NULL,
    problems INTEGER NOT NULL,
    -- tenths of a point
    lowest INTEGER,
    PRIMARY KEY (watch_id, day)
);
CREATE INDEX heartbeat_day_day ON heartbeat_day (day);

-- One row: when a daemon last observed the time, and the last gap in which none did.
CREATE TABLE heartbeat_reception (
    number INTEGER NOT NULL PRIMARY KEY,
    seen_at BIGINT NOT NULL,
    down_from BIGINT NOT NULL,
    up_since BIGINT NOT NULL
);
