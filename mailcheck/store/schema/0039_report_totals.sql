-- The totals of counted reports by domain and by reporter are read from this index alone. SQLite
-- needs the state for that.
CREATE INDEX receiver_report_totals ON receiver_report (
    account_id, kind, domain, reporter, state, messages, failing, ends_at, received_at
) WHERE state = 'counted';
