-- Whether a sender in DMARC reports is the owner's own: decided once by a person.
CREATE TABLE sender_decision (
    account_id TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    domain TEXT NOT NULL,
    -- id of a service, a domain or an address
    sender TEXT NOT NULL,
    decision TEXT NOT NULL,
    decided_at BIGINT NOT NULL,
    PRIMARY KEY (account_id, domain, sender)
);
