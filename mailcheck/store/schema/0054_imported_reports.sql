-- How a report came: received, fetched from a mailbox, or uploaded. An import is known by organisation, id and period.
ALTER TABLE receiver_report ADD COLUMN way TEXT NOT NULL DEFAULT 'received';
-- the rows that an imported report added
ALTER TABLE receiver_report ADD COLUMN row_count INTEGER NOT NULL DEFAULT 0;
CREATE INDEX receiver_report_identity ON receiver_report (account_id, kind, domain, report_key)
    WHERE state = 'counted';
CREATE INDEX receiver_report_imported ON receiver_report (account_id, row_count)
    WHERE way <> 'received';
-- Rows of imports do not use up the room for reports that anyone can send.
ALTER TABLE report_count ADD COLUMN is_imported INTEGER NOT NULL DEFAULT 0;
CREATE INDEX report_count_received ON report_count (account_id) WHERE is_imported = 0;
-- A received report proves that the DNS of its domain requested it, also if it was imported before.
CREATE INDEX receiver_report_proof ON receiver_report (account_id, domain)
    WHERE state IN ('counted', 'repeated') AND way = 'received' AND kind <> 'complaint';
