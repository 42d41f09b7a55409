-- People whom an OpenID Connect provider has identified: issuer and subject never change.
CREATE TABLE linked_identity (
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    account_id TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    linked_at BIGINT NOT NULL,
    PRIMARY KEY (issuer, subject)
);
CREATE INDEX linked_identity_account ON linked_identity (account_id);

-- Links with which the operator lets a person in once.
CREATE TABLE sign_in_link (
    digest BYTEA NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    expires_at BIGINT NOT NULL
);
CREATE INDEX sign_in_link_account ON sign_in_link (account_id);
CREATE INDEX sign_in_link_expiry ON sign_in_link (expires_at);

-- Whether the session was opened by the provider, so that signing out ends the session there too.
ALTER TABLE dashboard_session ADD COLUMN is_company INTEGER NOT NULL DEFAULT 0;

-- Public keys of passkeys (Web Authentication). The private keys stay on the devices.
CREATE TABLE passkey (
    id TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    credential_id BYTEA NOT NULL UNIQUE,
    -- COSE key (RFC 9053)
    public_key BYTEA NOT NULL,
    sign_count BIGINT NOT NULL,
    name TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    last_used_at BIGINT
);
CREATE INDEX passkey_account ON passkey (account_id);

-- Whether the password alone does not sign in to an account that has passkeys.
ALTER TABLE account_password ADD COLUMN needs_passkey INTEGER NOT NULL DEFAULT 0;

-- Challenges of passkeys that were not answered yet. Answering one deletes it.
CREATE TABLE passkey_challenge (
    digest BYTEA NOT NULL PRIMARY KEY,
    expires_at BIGINT NOT NULL
);
CREATE INDEX passkey_challenge_expiry ON passkey_challenge (expires_at);
