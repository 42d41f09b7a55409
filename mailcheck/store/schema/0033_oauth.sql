-- Clients of the OAuth authorization server that an operator, or they themselves, have registered.
CREATE TABLE oauth_client (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    -- separated by spaces
    redirect_uris TEXT NOT NULL,
    -- operator or registration
    source TEXT NOT NULL,
    -- SHA-256 of the secret; NULL: the client has none
    secret_digest BYTEA,
    created_at BIGINT NOT NULL,
    -- NULL: it does not expire
    expires_at BIGINT
);
CREATE INDEX oauth_client_expiry ON oauth_client (expires_at);

-- Codes that a person has allowed. A used one stays until it expires: its reuse ends the grant.
CREATE TABLE oauth_code (
    digest BYTEA NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    client_id TEXT NOT NULL,
    client_name TEXT NOT NULL,
    redirect_uri TEXT NOT NULL,
    -- the S256 challenge of PKCE
    challenge TEXT NOT NULL,
    -- separated by spaces
    scopes TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    -- the grant, once the code was used; also that of a failed attempt, which does not exist
    key_id TEXT
);
CREATE INDEX oauth_code_account ON oauth_code (account_id);
CREATE INDEX oauth_code_expiry ON oauth_code (expires_at);

-- The tokens of a grant. A used refresh token stays until it expires: its reuse ends the grant.
CREATE TABLE oauth_token (
    digest BYTEA NOT NULL PRIMARY KEY,
    key_id TEXT NOT NULL REFERENCES api_key (id) ON DELETE CASCADE,
    is_refresh INTEGER NOT NULL,
    expires_at BIGINT NOT NULL,
    used_at BIGINT
);
CREATE INDEX oauth_token_key ON oauth_token (key_id);
CREATE INDEX oauth_token_expiry ON oauth_token (expires_at);

-- A grant is a key without a secret. Its OAuth client; NULL: an API key.
ALTER TABLE api_key ADD COLUMN client_id TEXT;
CREATE INDEX api_key_client ON api_key (client_id);
