"""Sums of the reports about a domain as JSON: its senders, their mail, and sessions with TLS."""

from collections.abc import Iterable
from typing import Annotated

from mailcheck.api.domains.findings import DnsRecord, render_record
from mailcheck.api.shapes import (
    ABSENT,
    Absent,
    Count,
    Date,
    Shape,
    Texts,
    Timestamp,
    doc,
    shape_from,
)
from mailcheck.checks.receiver_reports import senders as facts
from mailcheck.checks.receiver_reports import tls
from mailcheck.checks.receiver_reports.aggregate import AggregateReport
from mailcheck.checks.receiver_reports.complaints import FeedbackSums
from mailcheck.checks.receiver_reports.origins import MailSplit
from mailcheck.checks.receiver_reports.senders import MAX_SENDERS, Cause
from mailcheck.checks.receiver_reports.tls import TlsReport, explain_failure
from mailcheck.core.domains.receiver_reports import (
    LARGEST_REPORT_PAGE,
    MailOfWays,
    ReportWay,
    SenderDecision,
    SumOfDay,
)
from mailcheck.core.instants import format_instant
from mailcheck.operations.reports import show_reports
from mailcheck.operations.reports.summarize_senders import ShownOverview, ShownSender

MOST_SOURCES = 20
"""Maximum number of addresses of a sender in the response, the most active first."""


class ReportSource(Shape):
    """An IP address that sent mail."""

    address: str
    messages: Count
    failing: Count
    host: Annotated[str | Absent, doc("forward-confirmed reverse DNS name")] = ABSENT


class ReportSender(Shape):
    """A sender, named by its service, its authenticated domain, its reverse DNS or its address."""

    key: Annotated[str, doc("identifies the sender in decisions")]
    name: str
    service: Annotated[bool, doc("it is a service of the catalogue of sending services")]
    decision: Annotated[
        SenderDecision | None, doc("whether it sends for the owner; null: undecided")
    ]
    from_domain: Annotated[str, doc("From domain of the failing mail")]
    known: Annotated[bool, doc("some of its own mail passes DMARC")]
    forwarder: Annotated[bool, doc("it forwarded mail, and none of its own mail passes")]
    messages: Count
    passing: Count
    failing: Count
    forwarded: Annotated[int, doc("failing messages that were forwarded", ge=0)]
    survived: Annotated[int, doc("forwarded messages that pass, by DKIM", ge=0)]
    cause: Annotated[Cause, doc("why its mail fails")]
    meaning: Annotated[str, doc("the cause in one sentence")]
    fix: Annotated[str, doc("what to do")]
    source_count: Count
    sources: tuple[ReportSource, ...]
    vouched_for: Annotated[Texts, doc("other domains for which SPF or DKIM passes")]
    reporters: Texts
    first_day: Annotated[Date, doc("day of the first report about it")]
    last_day: Annotated[Date, doc("day of the last report about it")]
    overrides: Annotated[Texts, doc("why receivers did not apply the policy")]
    failure_reports: Annotated[
        int, doc("mails of its addresses in authenticated failure reports", ge=0)
    ]
    complaints: Annotated[int, doc("mails of its addresses in authenticated complaints", ge=0)]
    listed: Annotated[
        Texts | Absent,
        doc("blocklists that list its most active address; absent: not checked or undetermined"),
    ] = ABSENT
    record: Annotated[
        DnsRecord | Absent,
        doc("SPF record that authorizes the sender; mailcheck verified that SPF then passes"),
    ] = ABSENT
    guide: Annotated[str | Absent, doc("page of the service about its DNS records")] = ABSENT


class Reporter(Shape):
    """An organization that sent reports, with the number of messages in them."""

    name: str
    messages: Count


NextPage = Annotated[int | None, doc("`page` of the next request; null: this is the last page")]


class SplitOfMail(Shape):
    """Numbers of messages by whose they are. Each message is counted once."""

    yours: Annotated[int, doc("they pass, or fail and their sender is yours", ge=0)]
    unknown: Annotated[int, doc("they fail, and their sender is undecided", ge=0)]
    forwarded: Annotated[int, doc("they fail because they were forwarded", ge=0)]
    forged: Annotated[int, doc("they fail, and their sender is not yours", ge=0)]


def render_split(split: MailSplit) -> SplitOfMail:
    """Render whose messages are."""
    return shape_from(SplitOfMail, split)


class MailByWay(Shape):
    """Numbers of messages by how their reports came, the most believable way first."""

    received: Annotated[int, doc("sent to this server, authenticated and requested", ge=0)]
    fetched: Annotated[int, doc("read from a mailbox of the account", ge=0)]
    uploaded: Annotated[int, doc("imported by a member of the project", ge=0)]


def render_ways(ways: MailOfWays) -> MailByWay:
    """Render how reports came."""
    return MailByWay(*(ways.messages.get(way, 0) for way in ReportWay))


class MailOfDays(Shape):
    """Whose the mail of a day is, or of several days."""

    first_day: Date
    mail: SplitOfMail


class EarlierMail(Shape):
    """The messages of a month whose reports are no longer kept in detail."""

    month: Annotated[str, doc("like 2025-07")]
    messages: Count
    failing: Count


def _earlier(days: Iterable[SumOfDay]) -> tuple[EarlierMail, ...]:
    months: dict[str, list[int]] = {}
    for day in days:
        total = months.setdefault(format_instant(day.day)[:7], [0, 0])
        total[0] += day.amount
        total[1] += day.failing
    return tuple(EarlierMail(month, *total) for month, total in months.items())


class DmarcOverview(Shape):
    """Summary of the DMARC reports about a domain; unknown senders come first."""

    domain: str
    begins_at: Timestamp
    ends_at: Timestamp
    policy: Annotated[str, doc("policy in the most recent report")]
    messages: Count
    passing: Count
    failing: Count
    mail: Annotated[SplitOfMail, doc("whose all messages are")]
    stopped_by_reject: Annotated[int, doc("messages that p=reject would stop today", ge=0)]
    days: Annotated[
        tuple[MailOfDays, ...],
        doc("the messages by days: each day, or spans of 7 days in over 31, and of 28 in over 100"),
    ]
    reporters: Annotated[tuple[Reporter, ...], doc("for all senders, at most 200")]
    senders: Annotated[tuple[ReportSender, ...], doc("one page of the senders")]
    next_page: NextPage
    total: Annotated[int, doc("number of senders on all pages", ge=0)]
    ways: Annotated[MailByWay | Absent, doc("how the reports came; absent for files")] = ABSENT
    proven: Annotated[
        bool | Absent, doc("as in `GET /reports`: the domain has requested reports to this account")
    ] = ABSENT
    earlier: Annotated[
        tuple[EarlierMail, ...] | Absent,
        doc("sums of each month, of days over 400 days ago; absent without any"),
    ] = ABSENT


class ReadReport(Shape):
    """A DMARC report in a file; the origin of its content is not verified."""

    organisation: str
    email: str
    report_id: str
    domain: str
    begins_at: Timestamp
    ends_at: Timestamp
    messages: Count
    problems: Annotated[Texts, doc("rows that were skipped, and why")]


class TlsFailure(Shape):
    """Sessions without encryption for one reason."""

    result: Annotated[str, doc("RFC 8460 4.3, like certificate-expired")]
    meaning: Annotated[str, doc("explanation in one sentence")]
    fix: Annotated[str, doc("what to do")]
    sessions: Count
    receiving_host: str
    sending_ip: str
    reason: Annotated[str, doc("additional information of the reporter")]


class TlsPolicy(Shape):
    """Sessions that used one policy of a domain."""

    domain: str
    policy_type: Annotated[str, doc("sts, tlsa or no-policy-found")]
    successful: Count
    failed: Count
    failures: tuple[TlsFailure, ...]


class ReadTlsReport(Shape):
    """A TLS report in a file."""

    organisation: str
    contact: str
    report_id: str
    begins_at: Timestamp
    ends_at: Timestamp
    policies: tuple[TlsPolicy, ...]
    problems: Texts


class RefusedFile(Shape):
    """A file that could not be read, and why."""

    file: str
    reason: str


class DmarcFiles(Shape):
    """The reports in the files, and a summary for each domain."""

    reports: tuple[ReadReport, ...]
    refused: tuple[RefusedFile, ...]
    domains: tuple[DmarcOverview, ...]


class TlsFiles(Shape):
    """The reports in the files."""

    reports: tuple[ReadTlsReport, ...]
    refused: tuple[RefusedFile, ...]


class TlsResult(Shape):
    """Sessions with the same result."""

    policy_type: Annotated[str, doc("sts, tlsa or no-policy-found")]
    result: Annotated[str, doc("RFC 8460 4.3; empty: the sessions were encrypted")]
    host: Annotated[str, doc("mail host, if the reports name it")]
    reason: Annotated[str, doc("additional information of reporters")]
    sessions: Count
    reporters: Texts
    last_day: Date
    meaning: str
    fix: str


class TlsReporter(Shape):
    """An organization that sent reports, with the number of sessions in them."""

    reporter: str
    successful: Count
    failed: Count


class TlsOverview(Shape):
    """Summary of the TLS reports about a domain; failures come first."""

    domain: str
    days: Count
    successful: Count
    failed: Count
    reporters: Annotated[Texts, doc("at most 200")]
    results: Annotated[tuple[TlsResult, ...], doc("one page of the results")]
    next_page: NextPage
    total: Annotated[int, doc("number of results on all pages", ge=0)]
    sources: Annotated[
        tuple[TlsReporter, ...],
        doc("totals by reporter over all pages: the 200 with most sessions"),
    ]


def next_page_of(page: int, limit: int, total: int) -> int | None:
    """Return the number of the next page, or `None` after the last one."""
    return page + 1 if page * limit < total else None


def render_overview(shown: ShownOverview, page: int = 1, limit: int = MAX_SENDERS) -> DmarcOverview:
    """Render the summary of a domain, with one page of its senders."""
    known = shown.overview
    return shape_from(
        DmarcOverview,
        known,
        stopped_by_reject=known.stopped.total,
        days=tuple(shape_from(MailOfDays, day) for day in known.days),
        reporters=tuple(Reporter(name, count) for name, count in known.reporters.items()),
        senders=tuple(_sender(sender, shown.feedback) for sender in shown.senders),
        next_page=next_page_of(page, limit, shown.total),
        total=shown.total,
        ways=None if shown.ways is None else render_ways(shown.ways),
        proven=None if shown.ways is None else shown.ways.is_proven,
        earlier=_earlier(shown.earlier) or ABSENT,
    )


def _sender(shown: ShownSender, feedback: FeedbackSums) -> ReportSender:
    sender = shown.sender
    service = sender.service
    failures, complaints = feedback.about(source.address for source in sender.sources)
    return shape_from(
        ReportSender,
        sender,
        service=service is not None,
        decision=shown.decision,
        from_domain=sender.domain,
        meaning=shown.meaning,
        fix=shown.fix,
        sources=tuple(map(_source, sender.sources[:MOST_SOURCES])),
        overrides=sender.reasons,
        failure_reports=failures,
        complaints=complaints,
        listed=shown.listed,
        record=None if shown.record is None else render_record(shown.record),
        guide=None if service is None else service.guide or None,
    )


def _source(source: facts.Source) -> ReportSource:
    return shape_from(ReportSource, source, host=source.host or None)


def render_dmarc_files(
    reports: Iterable[AggregateReport],
    refused: Iterable[RefusedFile],
    shown: Iterable[ShownOverview],
) -> DmarcFiles:
    """Render the reports in files."""
    read = tuple(shape_from(ReadReport, report) for report in reports)
    return DmarcFiles(read, tuple(refused), tuple(map(render_overview, shown)))


def render_tls_files(reports: Iterable[TlsReport], refused: Iterable[RefusedFile]) -> TlsFiles:
    """Render the reports in files."""
    return TlsFiles(tuple(map(_tls_report, reports)), tuple(refused))


def _tls_report(report: TlsReport) -> ReadTlsReport:
    return shape_from(
        ReadTlsReport,
        report,
        policies=tuple(
            shape_from(
                TlsPolicy,
                policy,
                policy_type=policy.kind,
                failures=tuple(_tls_failure(failure) for failure in policy.failures),
            )
            for policy in report.policies
        ),
    )


def _tls_failure(failure: tls.TlsFailure) -> TlsFailure:
    meaning, fix = explain_failure(failure.result)
    return shape_from(TlsFailure, failure, meaning=meaning, fix=fix)


def render_tls_overview(
    known: show_reports.TlsOverview, page: int = 1, limit: int = LARGEST_REPORT_PAGE
) -> TlsOverview:
    """Render the summary of a domain, with one page of its results."""
    return shape_from(
        TlsOverview,
        known,
        reporters=tuple(source.reporter for source in known.sources),
        results=tuple(map(_tls_result, known.results)),
        next_page=next_page_of(page, limit, known.total),
    )


def _tls_result(result: show_reports.TlsSum) -> TlsResult:
    meaning, fix = explain_failure(result.sessions.result)
    return shape_from(
        TlsResult,
        result.sessions,
        policy_type=result.sessions.policy,
        sessions=result.amount,
        reporters=result.reporters,
        last_day=result.last_day,
        meaning=meaning,
        fix=fix,
    )
