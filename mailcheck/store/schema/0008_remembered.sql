-- Counters and cached texts of a daemon without Redis, which survive a restart.

-- The newest window of each kind: `window_index` numbers the windows since 1970.
CREATE TABLE request_count (
    subject TEXT NOT NULL,
    window_name TEXT NOT NULL,
    window_index BIGINT NOT NULL,
    requests BIGINT NOT NULL,
    PRIMARY KEY (subject, window_name)
);

CREATE TABLE remembered (
    name TEXT NOT NULL PRIMARY KEY,
    text TEXT NOT NULL,
    ends_at BIGINT NOT NULL
);
CREATE INDEX remembered_end ON remembered (ends_at);

-- DKIM selectors in received mails; `number` increases with each recorded one.
CREATE TABLE known_selector (
    domain TEXT NOT NULL,
    selector TEXT NOT NULL,
    number BIGINT NOT NULL,
    PRIMARY KEY (domain, selector)
);
CREATE INDEX known_selector_number ON known_selector (number);
