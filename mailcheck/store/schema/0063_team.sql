-- Entries of the audit log are numbered in the order in which they are committed, so that a reader who continues after a
-- number misses none. The number of the last entry, and of the last one that was written to the journal.
CREATE TABLE audit_position (
    id INTEGER NOT NULL PRIMARY KEY,
    last BIGINT NOT NULL,
    journaled BIGINT NOT NULL
);
ALTER TABLE audit_entry ADD COLUMN position BIGINT NOT NULL DEFAULT 0;
UPDATE audit_entry SET position = numbered.number
FROM (SELECT id, ROW_NUMBER() OVER (ORDER BY id) AS number FROM audit_entry) AS numbered
WHERE numbered.id = audit_entry.id;
INSERT INTO audit_position (id, last, journaled)
SELECT 1, MAX(position), MAX(position) FROM audit_entry HAVING COUNT(*) > 0;
CREATE INDEX audit_entry_position ON audit_entry (position);
DROP INDEX audit_entry_account;
CREATE INDEX audit_entry_account ON audit_entry (account_id, position);

-- The person who has made a key; unknown for older keys, and for those of the command line.
ALTER TABLE api_key ADD COLUMN made_by TEXT;

-- Requests of a key by day since 1970, for the chart of the last weeks.
CREATE TABLE key_use_day (
    key_id TEXT NOT NULL REFERENCES api_key (id) ON DELETE CASCADE,
    day INTEGER NOT NULL,
    requests BIGINT NOT NULL,
    PRIMARY KEY (key_id, day)
);
CREATE INDEX key_use_day_day ON key_use_day (day);
