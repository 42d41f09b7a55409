-- Inserting a refusal must not wait for a lock on its inbox, so it refers to the account instead.
-- (SQLite locks the whole file.)
ALTER TABLE refusal DROP CONSTRAINT refusal_account_id_fkey;
ALTER TABLE refusal ADD CONSTRAINT refusal_account_id_fkey
    FOREIGN KEY (account_id) REFERENCES account (id) ON DELETE CASCADE;
