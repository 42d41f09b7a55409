-- The content of a failure report or complaint as JSON.
ALTER TABLE receiver_report ADD COLUMN feedback TEXT;
-- There may be thousands of them for each report of another kind.
CREATE INDEX receiver_report_feedback ON receiver_report (account_id, domain, received_at, id)
    WHERE feedback IS NOT NULL;
CREATE INDEX receiver_report_kind ON receiver_report (account_id, kind, received_at, id);
