-- The state of the mailboxes in [reports] mailboxes. The id is a digest of the place of a mailbox.
CREATE TABLE report_mailbox (
    id TEXT NOT NULL PRIMARY KEY,
    next_at BIGINT NOT NULL,
    -- all mails up to last_uid are read, as long as uid_validity is the same
    uid_validity BIGINT NOT NULL,
    last_uid BIGINT NOT NULL,
    -- the newest refresh token, and the digest of the configured one that it replaces
    refresh_token TEXT NOT NULL,
    refresh_origin TEXT NOT NULL,
    succeeded_at BIGINT,
    failures INTEGER NOT NULL,
    problem TEXT NOT NULL,
    mails BIGINT NOT NULL,
    reports BIGINT NOT NULL,
    -- when a daemon has tried last: an old row is of a mailbox that is not configured any more
    tried_at BIGINT NOT NULL,
    -- the daemon that reads it, and the end of its claim by the database's clock
    holder TEXT,
    held_until BIGINT
);
CREATE INDEX report_mailbox_holder ON report_mailbox (holder);
