-- The text of a mail to the address for complaints that is not a report, as JSON.
ALTER TABLE receiver_report ADD COLUMN letter TEXT;
CREATE INDEX receiver_report_letter ON receiver_report (account_id, received_at)
    WHERE letter IS NOT NULL;
CREATE INDEX receiver_report_old_letter ON receiver_report (received_at) WHERE letter IS NOT NULL;
