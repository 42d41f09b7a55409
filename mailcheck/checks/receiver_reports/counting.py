"""The stored form of a report that is counted: its facts, and its different rows."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from mailcheck.checks.mail_domains import read_mail_domain
from mailcheck.checks.receiver_reports.aggregate import AggregateReport, Row
from mailcheck.checks.receiver_reports.feedback import FeedbackReport
from mailcheck.checks.receiver_reports.tls import TlsReport, TlsSessions, sessions_of
from mailcheck.core.domains.receiver_reports import (
    Feedback,
    ReceiverReport,
    ReportKind,
    day_of,
    row_digest,
)
from mailcheck.core.instants import Instant


class StoredRow(NamedTuple):
    """A row of a report as it is counted. ``digest`` is unique, ``result`` is JSON."""

    domain: str
    day: Instant
    digest: str
    result: str
    amount: int


def claimed_reporter(report: AggregateReport | TlsReport) -> str:
    """Return who sent a report, by its own claim: the domain of a mail address, or a name."""
    claimed = report.email if isinstance(report, AggregateReport) else report.contact
    domain = read_mail_domain(claimed.rpartition("@")[2].strip("<> "))
    return domain or claimed.rpartition("@")[2] or report.organisation


def fill_report(
    kept: ReceiverReport, report: AggregateReport | TlsReport, reporter: str
) -> ReceiverReport:
    """Return a stored report with the facts of a DMARC or TLS report."""
    filled = replace(
        kept,
        domain=report.domains[0],
        reporter=reporter,
        organisation=report.organisation,
        report_id=report.report_id,
        begins_at=report.begins_at,
        ends_at=report.ends_at,
        problems=report.problems,
    )
    if isinstance(report, AggregateReport):
        return replace(
            filled,
            kind=ReportKind.DMARC,
            policy=report.policy.policy,
            messages=report.messages,
            failing=sum(count for row, count in report.rows.items() if not row.passes),
        )
    return replace(
        filled,
        kind=ReportKind.TLS,
        messages=sum(policy.successful + policy.failed for policy in report.policies),
        failing=sum(policy.failed for policy in report.policies),
    )


def fill_feedback(
    kept: ReceiverReport, report: FeedbackReport, domain: str, reporter: str, happened_at: Instant
) -> ReceiverReport:
    """Return a stored report with the facts of a report about one mail."""
    feedback = report.feedback
    kind = feedback.type.kind
    return replace(
        kept,
        kind=kind,
        domain=domain,
        reporter=reporter,
        organisation=feedback.program,
        report_id=report.key,
        begins_at=happened_at,
        ends_at=happened_at,
        messages=feedback.incidents,
        failing=feedback.incidents if kind is ReportKind.FAILURE else 0,
        problems=report.problems,
        feedback=feedback,
    )


def rows_of(kept: ReceiverReport, report: AggregateReport | TlsReport) -> Iterator[StoredRow]:
    """Yield the different rows of a report with their counts, of each of its domains."""
    found: dict[str, Mapping[Row, int] | Mapping[TlsSessions, int]] = {}
    if isinstance(report, AggregateReport):
        found[report.domain] = report.rows
    else:
        for domain in report.domains:
            sessions: Counter[TlsSessions] = Counter()
            for tls_sessions, count in sessions_of(report, domain):
                sessions[tls_sessions] += count
            found[domain] = sessions
    day = day_of(report.begins_at)
    for domain, rows in found.items():
        for row, count in rows.items():
            yield _stored_row(kept, domain, day, row, count)


def row_of_feedback(kept: ReceiverReport, feedback: Feedback, happened_at: Instant) -> StoredRow:
    """Return the row of a report about one mail."""
    day = day_of(happened_at)
    return _stored_row(kept, kept.domain, day, feedback.counted, feedback.incidents)


def _stored_row(
    kept: ReceiverReport, domain: str, day: Instant, row: Row | TlsSessions | Feedback, count: int
) -> StoredRow:
    result = msgspec.json.encode(row).decode()
    return StoredRow(domain, day, row_digest(kept, result), result, count)
