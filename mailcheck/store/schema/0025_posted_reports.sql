-- A posted report has a reason, so it is never a copy of an authenticated one.

DROP INDEX receiver_report_once;
CREATE UNIQUE INDEX receiver_report_once
    ON receiver_report (account_id, kind, domain, reporter, report_key, reason) WHERE state = 'counted';
