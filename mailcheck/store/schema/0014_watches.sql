-- Watched domains and addresses, their changes, and their problems.
CREATE TABLE watch (
    id TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    target TEXT NOT NULL,
    -- JSON: the settings of the owner
    settings TEXT NOT NULL,
    is_paused INTEGER NOT NULL,
    created_at BIGINT NOT NULL,
    next_run_at BIGINT NOT NULL,
    last_run_at BIGINT,
    -- JSON: the state to compare the next run with; empty before the first run
    state TEXT NOT NULL,
    -- number of changes and scores: the number of the next one
    changes BIGINT NOT NULL,
    -- the daemon that runs it, and the end of its claim by the database's clock
    holder TEXT,
    held_until BIGINT
);
CREATE UNIQUE INDEX watch_target ON watch (account_id, target);
CREATE INDEX watch_due ON watch (is_paused, next_run_at);
CREATE INDEX watch_holder ON watch (holder);

CREATE TABLE watch_change (
    watch_id TEXT NOT NULL REFERENCES watch (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    at BIGINT NOT NULL,
    topic TEXT NOT NULL,
    name TEXT NOT NULL,
    value_before TEXT,
    value_after TEXT,
    sentence TEXT NOT NULL,
    severity TEXT NOT NULL,
    PRIMARY KEY (watch_id, number)
);
CREATE INDEX watch_change_at ON watch_change (at);

CREATE TABLE watch_score (
    watch_id TEXT NOT NULL REFERENCES watch (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    at BIGINT NOT NULL,
    score INTEGER NOT NULL,
    grade TEXT NOT NULL,
    -- JSON: by factor
    points TEXT NOT NULL,
    PRIMARY KEY (watch_id, number)
);
CREATE INDEX watch_score_at ON watch_score (at);

CREATE TABLE watch_alert (
    id TEXT NOT NULL PRIMARY KEY,
    watch_id TEXT NOT NULL REFERENCES watch (id) ON DELETE CASCADE,
    -- the key of the problem; at most one alert is open for each
    problem TEXT NOT NULL,
    severity TEXT NOT NULL,
    sentence TEXT NOT NULL,
    opened_at BIGINT NOT NULL,
    ended_at BIGINT,
    ending TEXT NOT NULL,
    acknowledged_at BIGINT,
    -- 1: its start or end was not sent to the owner yet
    is_untold INTEGER NOT NULL
);
CREATE INDEX watch_alert_watch ON watch_alert (watch_id, opened_at);
CREATE INDEX watch_alert_untold ON watch_alert (is_untold, opened_at);
CREATE INDEX watch_alert_end ON watch_alert (ended_at);
