-- Accounts that may do nothing, and whose mail is kept longer. NULL: neither.
ALTER TABLE account ADD COLUMN disabled_at BIGINT;
ALTER TABLE account ADD COLUMN retention_hours INTEGER;

-- The address that signed in; empty for sessions from before this column.
ALTER TABLE dashboard_session ADD COLUMN client TEXT NOT NULL DEFAULT '';

-- Who did what with accounts, keys and settings. Rows are only added, and deleted after 400 days.
CREATE TABLE audit_entry (
    id TEXT NOT NULL PRIMARY KEY,
    happened_at BIGINT NOT NULL,
    -- the account that was changed; NULL after it was deleted
    account_id TEXT REFERENCES account (id) ON DELETE SET NULL,
    account_name TEXT NOT NULL,
    actor TEXT NOT NULL,
    -- empty on the machine of the daemon
    client TEXT NOT NULL,
    action TEXT NOT NULL,
    detail TEXT NOT NULL
);
CREATE INDEX audit_entry_account ON audit_entry (account_id, id);
CREATE INDEX audit_entry_time ON audit_entry (happened_at);
