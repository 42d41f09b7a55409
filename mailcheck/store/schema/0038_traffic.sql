-- Mail of a mail server, counted by sender and day. No row is about a single mail or a recipient.

CREATE TABLE traffic (
    account_id TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    -- start of the day
    day BIGINT NOT NULL,
    -- domain of the author; empty without one, "*" for all senders beyond the maximum of a day
    author_domain TEXT NOT NULL,
    envelope_domain TEXT NOT NULL,
    -- address of the client, or its /64 network
    source TEXT NOT NULL,
    dkim_domain TEXT NOT NULL,
    -- results (RFC 8601)
    spf TEXT NOT NULL,
    dkim TEXT NOT NULL,
    dmarc TEXT NOT NULL,
    mails BIGINT NOT NULL,
    -- mails that the content filter has judged, those of them that are spam, and their points in tenths
    filtered BIGINT NOT NULL,
    spam BIGINT NOT NULL,
    tenths BIGINT NOT NULL,
    PRIMARY KEY (account_id, day, author_domain, envelope_domain, source, dkim_domain, spf, dkim, dmarc)
);
CREATE INDEX traffic_forgetting ON traffic (day);
