-- Mail into applications: routes, the mails that they carry, and the attempts to deliver them.

-- Whether the account has routes: mail for others needs no further query.
ALTER TABLE inbox ADD COLUMN has_routes INTEGER NOT NULL DEFAULT 0;

CREATE TABLE inbound_route (
    id TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    pattern TEXT NOT NULL,
    format TEXT NOT NULL,
    url TEXT NOT NULL,
    -- secrets that sign the requests, so they are stored unhashed
    secret TEXT NOT NULL,
    user_name TEXT NOT NULL,
    password TEXT NOT NULL,
    speed BIGINT NOT NULL,
    fault TEXT,
    created_at BIGINT NOT NULL,
    is_confirmed INTEGER NOT NULL,
    -- whether the format has a request for each recipient
    is_per_recipient INTEGER NOT NULL
);
CREATE INDEX inbound_route_account ON inbound_route (account_id, created_at, id);

CREATE TABLE inbound_mail (
    id TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    -- its bytes may be shared with messages
    delivery_id TEXT NOT NULL REFERENCES delivery (id),
    -- JSON array
    recipients TEXT NOT NULL,
    received_at BIGINT NOT NULL,
    size BIGINT NOT NULL,
    -- JSON object; NULL until they are determined
    verdicts TEXT,
    client_ip TEXT NOT NULL,
    helo_name TEXT NOT NULL
);
CREATE INDEX inbound_mail_account ON inbound_mail (account_id, id);
CREATE INDEX inbound_mail_delivery ON inbound_mail (delivery_id);

-- A mail, or the request that opens a route, for one route. Times of leases and `due_at` are those of
-- the database's clock.
CREATE TABLE inbound_delivery (
    id TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    route_id TEXT NOT NULL REFERENCES inbound_route (id) ON DELETE CASCADE,
    mail_id TEXT REFERENCES inbound_mail (id) ON DELETE CASCADE,
    -- JSON array
    recipients TEXT NOT NULL,
    -- the author and the recipients, if the mail was sent by the application
    loop_key TEXT NOT NULL,
    fault TEXT,
    state TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    due_at BIGINT,
    attempts BIGINT NOT NULL,
    -- first time that the application took the mail
    taken_at BIGINT,
    lease_holder TEXT,
    lease_until BIGINT
);
CREATE INDEX inbound_delivery_account ON inbound_delivery (account_id, id);
CREATE INDEX inbound_delivery_route ON inbound_delivery (route_id, loop_key, created_at);
CREATE INDEX inbound_delivery_mail ON inbound_delivery (mail_id);
CREATE INDEX inbound_delivery_due ON inbound_delivery (due_at) WHERE due_at IS NOT NULL;

CREATE TABLE inbound_attempt (
    delivery_id TEXT NOT NULL REFERENCES inbound_delivery (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    account_id TEXT NOT NULL,
    attempted_at BIGINT NOT NULL,
    status INTEGER,
    milliseconds BIGINT NOT NULL,
    problem TEXT NOT NULL,
    -- JSON arrays of names and values
    request_headers TEXT NOT NULL,
    answer_headers TEXT NOT NULL,
    answer BYTEA NOT NULL,
    PRIMARY KEY (delivery_id, number)
);
CREATE INDEX inbound_attempt_account ON inbound_attempt (account_id, attempted_at);
