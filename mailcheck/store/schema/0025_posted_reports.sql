-- A posted report is no copy of an authenticated one, whatever it claims: it has a reason.

DROP INDEX receiver_report_once;
CREATE UNIQUE INDEX receiver_report_once
    ON receiver_report (account_id, kind, domain, reporter, report_key, reason) WHERE state = 'counted';
