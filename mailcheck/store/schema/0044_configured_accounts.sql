-- The accounts that the configuration means: by the name of an option, and by an empty name the first account, which the
-- bootstrap or the operator has made. Another account that gets the name later is not meant.
CREATE TABLE configured_account (
    name TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE
);

CREATE INDEX configured_account_account ON configured_account (account_id);

INSERT INTO configured_account (name, account_id)
SELECT '', id FROM account AS first
WHERE is_operator = 1
AND NOT EXISTS (SELECT 1 FROM account WHERE account.created_at < first.created_at);
