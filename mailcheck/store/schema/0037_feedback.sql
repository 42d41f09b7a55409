-- The content of a failure report or complaint as JSON.
ALTER TABLE receiver_report ADD COLUMN feedback TEXT;
CREATE INDEX receiver_report_feedback ON receiver_report (account_id, domain, received_at)
    WHERE feedback IS NOT NULL;
