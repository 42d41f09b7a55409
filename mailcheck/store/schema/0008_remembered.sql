-- What a daemon without Redis has counted and found out, so that a restart forgets none of it.

-- Of each window the newest: `window_index` numbers them since 1970.
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

-- DKIM selectors that mails have named; `number` counts up with each that is noted.
CREATE TABLE known_selector (
    domain TEXT NOT NULL,
    selector TEXT NOT NULL,
    number BIGINT NOT NULL,
    PRIMARY KEY (domain, selector)
);
CREATE INDEX known_selector_number ON known_selector (number);
