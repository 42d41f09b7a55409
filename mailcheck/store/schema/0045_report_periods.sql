-- Some reporters use one id for several days, and services report for several organizations from one
-- domain. A report about a mail has the time of that mail, which is not part of its identity.

DROP INDEX receiver_report_once;
CREATE UNIQUE INDEX receiver_report_once ON receiver_report (
    account_id, kind, domain, reporter, report_key, reason, organisation,
    (CASE WHEN kind IN ('dmarc', 'tls') THEN begins_at ELSE 0 END),
    (CASE WHEN kind IN ('dmarc', 'tls') THEN ends_at ELSE 0 END)
) WHERE state = 'counted';
