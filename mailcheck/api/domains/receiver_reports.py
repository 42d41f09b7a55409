"""Reports of receivers as JSON: who sends as a domain, what fails and why, what to do."""

from collections.abc import Iterable
from typing import Annotated

from mailcheck.api.domains.findings import DnsRecord, render_record
from mailcheck.api.shapes import ABSENT, Absent, Always, Count, Shape, Texts, Timestamp, doc
from mailcheck.checks.receiver_reports import senders as facts
from mailcheck.checks.receiver_reports.aggregate import AggregateReport
from mailcheck.checks.receiver_reports.senders import MAX_SENDERS, Cause
from mailcheck.checks.receiver_reports.tls import TlsReport, explain_failure
from mailcheck.core.instants import Instant, format_instant
from mailcheck.core.receiver_reports import (
    LARGEST_REPORT_PAGE,
    ReceiverReport,
    ReportKind,
    ReportPlaces,
    ReportState,
)
from mailcheck.operations.reports import show_reports
from mailcheck.operations.reports.summarize_senders import ShownOverview, ShownSender
from mailcheck.store.domains import report_store
from mailcheck.store.domains.report_quotas import Outcome, Tally

MOST_SOURCES = 20
"""Addresses of one sender that are shown, the most active first."""


class ReportSource(Shape):
    """an address that mail came from"""

    address: str
    messages: Count
    failing: Count
    host: Annotated[str | Absent, doc("its forward-confirmed reverse DNS")] = ABSENT


class ReportSender(Shape):
    """who sends as the domain: called by what vouches for the mail, reverse DNS, or address"""

    name: str
    from_domain: Annotated[str, doc("the From domain of what fails")]
    known: Annotated[bool, doc("some of its mail passes")]
    messages: Count
    passing: Count
    failing: Count
    cause: Annotated[Cause, doc("why it fails")]
    meaning: Annotated[str, doc("the same in a sentence")]
    fix: Annotated[str, doc("what to do")]
    source_count: Count
    sources: tuple[ReportSource, ...]
    vouched_for: Annotated[Texts, doc("other domains that SPF or DKIM passes for")]
    reporters: Texts
    first_day: Annotated[str, doc("when it was first seen")]
    last_day: Annotated[str, doc("when it was last seen")]
    overrides: Annotated[Texts, doc("why receivers did otherwise than the policy asks")]
    listed: Annotated[
        Texts | Absent,
        doc("blocklists that have its most active address; absent: not asked, or not known"),
    ] = ABSENT
    record: Annotated[
        DnsRecord | Absent,
        doc("lets it send, if you want that: our own SPF evaluation passes with it"),
    ] = ABSENT


class Reporter(Shape):
    """who has sent reports, and about how many messages"""

    name: str
    messages: Count


NextPage = Annotated[int | None, doc("the `page` to ask for next; null: this is the last one")]


class DmarcOverview(Shape):
    """what DMARC reports say about a domain: who may not send first"""

    domain: str
    begins_at: Timestamp
    ends_at: Timestamp
    policy: Annotated[str, doc("as receivers found it last")]
    messages: Count
    passing: Count
    failing: Count
    stopped_by_reject: Annotated[int, doc("what p=reject would stop today", ge=0)]
    forwarded: Annotated[int, doc("of these: passed on by somebody", ge=0)]
    reporters: Annotated[tuple[Reporter, ...], doc("of all senders, at most 200")]
    senders: Annotated[tuple[ReportSender, ...], doc("a page of them")]
    next_page: NextPage
    total: Annotated[int, doc("senders of all pages", ge=0)]


class ReadReport(Shape):
    """a DMARC report of a file: what it says of itself, believed by nobody"""

    organisation: str
    email: str
    report_id: str
    domain: str
    begins_at: Timestamp
    ends_at: Timestamp
    messages: Count
    problems: Annotated[Texts, doc("rows that were left out, and why")]


class TlsFailure(Shape):
    """sessions that could not be encrypted, for one reason"""

    result: Annotated[str, doc("RFC 8460 4.3, like certificate-expired")]
    meaning: Annotated[str, doc("what it means, one sentence")]
    fix: Annotated[str, doc("what to do")]
    sessions: Count
    receiving_host: str
    sending_ip: str
    reason: Annotated[str, doc("what the reporter adds")]


class TlsPolicy(Shape):
    """sessions under one policy of a domain"""

    domain: str
    policy_type: Annotated[str, doc("sts, tlsa or no-policy-found")]
    successful: Count
    failed: Count
    failures: tuple[TlsFailure, ...]


class ReadTlsReport(Shape):
    """a TLS report of a file"""

    organisation: str
    contact: str
    report_id: str
    begins_at: Timestamp
    ends_at: Timestamp
    policies: tuple[TlsPolicy, ...]
    problems: Texts


class RefusedFile(Shape):
    """what could not be read, and why"""

    file: str
    reason: str


class DmarcFiles(Shape):
    """what the files hold: the reports, and what they say together, by domain"""

    reports: tuple[ReadReport, ...]
    refused: tuple[RefusedFile, ...]
    domains: tuple[DmarcOverview, ...]


class TlsFiles(Shape):
    """what the files hold"""

    reports: tuple[ReadTlsReport, ...]
    refused: tuple[RefusedFile, ...]


def _next_page(page: int, limit: int, total: int) -> int | None:
    return page + 1 if page * limit < total else None


def render_overview(shown: ShownOverview, page: int = 1, limit: int = MAX_SENDERS) -> DmarcOverview:
    """Return what reports say about a domain: one page of the senders."""
    known = shown.overview
    return DmarcOverview(
        domain=known.domain,
        begins_at=format_instant(known.begins_at),
        ends_at=format_instant(known.ends_at),
        policy=known.policy,
        messages=known.messages,
        passing=known.passing,
        failing=known.failing,
        stopped_by_reject=known.failing,
        forwarded=known.forwarded,
        reporters=tuple(Reporter(name, count) for name, count in known.reporters.items()),
        senders=tuple(map(_sender, shown.senders)),
        next_page=_next_page(page, limit, shown.total),
        total=shown.total,
    )


def _sender(shown: ShownSender) -> ReportSender:
    sender = shown.sender
    return ReportSender(
        name=sender.name,
        from_domain=sender.domain,
        known=sender.is_known,
        messages=sender.messages,
        passing=sender.passing,
        failing=sender.failing,
        cause=sender.cause,
        meaning=shown.meaning,
        fix=shown.fix,
        source_count=sender.source_count,
        sources=tuple(map(_source, sender.sources[:MOST_SOURCES])),
        vouched_for=sender.vouched_for,
        reporters=sender.reporters,
        first_day=format_day(sender.first_day),
        last_day=format_day(sender.last_day),
        overrides=sender.reasons,
        listed=ABSENT if shown.listed is None else shown.listed,
        record=ABSENT if shown.record is None else render_record(shown.record),
    )


def _source(source: facts.Source) -> ReportSource:
    return ReportSource(source.address, source.messages, source.failing, source.host or ABSENT)


def render_dmarc_files(
    reports: Iterable[AggregateReport],
    refused: Iterable[RefusedFile],
    shown: Iterable[ShownOverview],
) -> DmarcFiles:
    """Give what files hold."""
    return DmarcFiles(
        tuple(map(_report, reports)), tuple(refused), tuple(map(render_overview, shown))
    )


def _report(report: AggregateReport) -> ReadReport:
    return ReadReport(
        organisation=report.organisation,
        email=report.email,
        report_id=report.report_id,
        domain=report.domain,
        begins_at=format_instant(report.begins_at),
        ends_at=format_instant(report.ends_at),
        messages=report.messages,
        problems=report.problems,
    )


def render_tls_files(reports: Iterable[TlsReport], refused: Iterable[RefusedFile]) -> TlsFiles:
    """Give what files hold."""
    return TlsFiles(tuple(map(_tls_report, reports)), tuple(refused))


def _tls_report(report: TlsReport) -> ReadTlsReport:
    return ReadTlsReport(
        organisation=report.organisation,
        contact=report.contact,
        report_id=report.report_id,
        begins_at=format_instant(report.begins_at),
        ends_at=format_instant(report.ends_at),
        policies=tuple(
            TlsPolicy(
                domain=one.domain,
                policy_type=one.kind,
                successful=one.successful,
                failed=one.failed,
                failures=tuple(
                    TlsFailure(
                        result=failure.result,
                        meaning=explain_failure(failure.result)[0],
                        fix=explain_failure(failure.result)[1],
                        sessions=failure.sessions,
                        receiving_host=failure.receiving_host,
                        sending_ip=failure.sending_ip,
                        reason=failure.reason,
                    )
                    for failure in one.failures
                ),
            )
            for one in report.policies
        ),
        problems=report.problems,
    )


def format_day(moment: Instant) -> str:
    """Write the day of a moment (UTC)."""
    return format_instant(moment)[:10]


class ReportAddresses(Shape):
    """where the reports of the account go"""

    dmarc: Annotated[str, doc("for rua= in a DMARC record, behind mailto:")]
    tls: Annotated[str, doc("for rua= in a TLS-RPT record, behind mailto:")]
    tls_url: Annotated[str, doc("the same over HTTPS, as it stands")]


class ReportedDomain(Shape):
    """a domain that reports were counted about"""

    kind: ReportKind
    domain: str
    reports: Count
    messages: Annotated[int, doc("sessions, where it is about TLS", ge=0)]
    failing: Count
    last_at: Timestamp


class KeptReport(Shape):
    """a report as it came, counted or not"""

    id: str
    kind: ReportKind
    state: Annotated[
        ReportState,
        doc("apart: it can be read, but is not believed, and nothing of it is counted"),
    ]
    received_at: Timestamp
    reason: Annotated[str, doc("why it is not counted; empty where nothing is to be said")]
    domain: str
    reporter: Annotated[str, doc("the domain that vouches for it; empty where none does")]
    organisation: Annotated[str, doc("who it says that it is from")]
    report_id: str
    begins_at: Timestamp | None
    ends_at: Timestamp | None
    messages: Count
    failing: Count
    problems: Texts


class SourceOfReports(Shape):
    """a reporter of counted reports, with the sums of them"""

    kind: ReportKind
    reporter: Annotated[str, doc("deletes them: `DELETE /reports?reporter=...`")]
    reports: Count
    messages: Count
    failing: Count


class RefusedReports(Shape):
    """reports of one day and sender that were not kept, or not with their rows"""

    day: Annotated[str, doc("on which they came (UTC)")]
    outcome: Annotated[
        Outcome,
        doc("over-quota: rows were not counted; foreign: the account does not own the domain"),
    ]
    reporter: Annotated[str, doc("the organization that authenticates them; empty: none")]
    reports: Count
    rows: Annotated[int, doc("rows that were not stored; 0 for foreign reports", ge=0)]
    bytes: Annotated[int, doc("of these rows", ge=0)]
    domain: Annotated[str, doc("what the last of them is about")]
    meaning: Annotated[str, doc("the same in a sentence")]
    fix: Annotated[str, doc("what to do")]


class KeptReports(Shape):
    """reports, newest first, and where they go"""

    addresses: ReportAddresses
    domains: Annotated[tuple[ReportedDomain, ...], doc("the 200 with most messages")]
    reports: tuple[KeptReport, ...]
    next_page: int | None
    total: Count
    sources: Annotated[
        tuple[SourceOfReports, ...],
        doc("sums of all counted reports for each reporter: the 200 with most messages"),
    ]
    refused: Annotated[
        tuple[RefusedReports, ...],
        doc("reports that were not kept, the newest days first, at most 200"),
    ]


class DeletedReport(Shape):
    """a report that was deleted"""

    success: Always
    id: str


class DeletedReports(Shape):
    """reports that were deleted"""

    success: Always
    deleted: Count


class TlsResult(Shape):
    """sessions that ended in one way"""

    policy_type: Annotated[str, doc("sts, tlsa or no-policy-found")]
    result: Annotated[str, doc("RFC 8460 4.3; empty: they were encrypted")]
    host: Annotated[str, doc("the mail host, where it was said")]
    reason: Annotated[str, doc("what reporters add")]
    sessions: Count
    reporters: Texts
    last_day: str
    meaning: str
    fix: str


class TlsReporter(Shape):
    """who has sent reports, and about how many sessions"""

    reporter: str
    successful: Count
    failed: Count


class TlsOverview(Shape):
    """what TLS reports say about a domain: what failed first"""

    domain: str
    days: Count
    successful: Count
    failed: Count
    reporters: Annotated[Texts, doc("at most 200")]
    results: Annotated[tuple[TlsResult, ...], doc("a page of them")]
    next_page: NextPage
    total: Annotated[int, doc("results of all pages", ge=0)]
    sources: Annotated[
        tuple[TlsReporter, ...],
        doc("sums of each reporter over all pages: the 200 with most sessions"),
    ]


def render_kept_reports(
    own: ReportPlaces,
    domains: Iterable[report_store.ReportedDomain],
    sources: Iterable[report_store.ReportSource],
    refused: Iterable[Tally],
    found: report_store.ReportPage,
    page: int,
    limit: int,
) -> KeptReports:
    """Return a page of reports, with sums of all of them."""
    return KeptReports(
        addresses=ReportAddresses(own.dmarc, own.tls, own.tls_url),
        domains=tuple(
            ReportedDomain(
                one.kind,
                one.domain,
                one.reports,
                one.messages,
                one.failing,
                format_instant(one.last_at),
            )
            for one in domains
        ),
        reports=tuple(map(_kept, found.entries)),
        next_page=_next_page(page, limit, found.total),
        total=found.total,
        sources=tuple(
            SourceOfReports(one.kind, one.reporter, one.reports, one.messages, one.failing)
            for one in sources
        ),
        refused=tuple(map(_refused, refused)),
    )


def _refused(tally: Tally) -> RefusedReports:
    who = tally.sender or "unauthenticated senders"
    number = "1 report" if tally.reports == 1 else f"{tally.reports} reports"
    was = "was" if tally.reports == 1 else "were"
    if tally.outcome is Outcome.FOREIGN:
        meaning = (
            f"{number} {was} about domains that you neither watch nor own, the last about "
            f"{tally.domain}."
        )
        fix = "Watch a domain to have reports about it counted."
    else:
        meaning = f"{number} of {who} exceeded the quota of reports for a day."
        fix = "If you do not know the sender, delete its reports."
    return RefusedReports(
        day=format_day(tally.day),
        outcome=tally.outcome,
        reporter=tally.sender,
        reports=tally.reports,
        rows=tally.rows,
        bytes=tally.octets,
        domain=tally.domain,
        meaning=meaning,
        fix=fix,
    )


def _kept(report: ReceiverReport) -> KeptReport:
    return KeptReport(
        id=report.id,
        kind=report.kind,
        state=report.state,
        received_at=format_instant(report.received_at),
        reason=report.reason,
        domain=report.domain,
        reporter=report.reporter,
        organisation=report.organisation,
        report_id=report.report_id,
        begins_at=None if report.begins_at is None else format_instant(report.begins_at),
        ends_at=None if report.ends_at is None else format_instant(report.ends_at),
        messages=report.messages,
        failing=report.failing,
        problems=report.problems,
    )


def render_tls_overview(
    known: show_reports.TlsOverview, page: int = 1, limit: int = LARGEST_REPORT_PAGE
) -> TlsOverview:
    """Return what TLS reports say about a domain: one page of the results."""
    return TlsOverview(
        domain=known.domain,
        days=known.days,
        successful=known.successful,
        failed=known.failed,
        reporters=tuple(one.reporter for one in known.sources),
        results=tuple(
            TlsResult(
                policy_type=one.sessions.policy,
                result=one.sessions.result,
                host=one.sessions.host,
                reason=one.sessions.reason,
                sessions=one.amount,
                reporters=one.reporters,
                last_day=format_day(one.last_day),
                meaning=explain_failure(one.sessions.result)[0],
                fix=explain_failure(one.sessions.result)[1],
            )
            for one in known.results
        ),
        next_page=_next_page(page, limit, known.total),
        total=known.total,
        sources=tuple(
            TlsReporter(one.reporter, one.successful, one.failed) for one in known.sources
        ),
    )
