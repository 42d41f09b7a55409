-- Signing in to the dashboard: passwords, sessions, invitations.

CREATE TABLE account_password (
    account_id TEXT NOT NULL PRIMARY KEY REFERENCES account (id) ON DELETE CASCADE,
    -- $scrypt$ln=..,r=..,p=..$salt$hash
    hash TEXT NOT NULL,
    changed_at BIGINT NOT NULL
);

CREATE TABLE dashboard_session (
    -- SHA-256 of what the cookie holds; that itself is nowhere
    digest BYTEA NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    created_at BIGINT NOT NULL,
    -- noted now and then, not for every page
    seen_at BIGINT NOT NULL,
    -- the sooner of: unused for too long, and too old
    ends_at BIGINT NOT NULL
);
CREATE INDEX dashboard_session_account ON dashboard_session (account_id);
CREATE INDEX dashboard_session_end ON dashboard_session (ends_at);

-- Taken away when an account is made with it.
CREATE TABLE invitation (
    digest BYTEA NOT NULL PRIMARY KEY,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX invitation_expiry ON invitation (expires_at);
