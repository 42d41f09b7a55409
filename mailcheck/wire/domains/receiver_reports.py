"""Reports of receivers as JSON: who sends as a domain, what fails and why, what to do."""

from collections.abc import Iterable
from typing import Annotated

from mailcheck.checks.receiver_reports import senders as facts
from mailcheck.checks.receiver_reports.aggregate import AggregateReport
from mailcheck.checks.receiver_reports.senders import Cause
from mailcheck.checks.receiver_reports.tls import TlsReport, explain_failure
from mailcheck.core.instants import format_instant
from mailcheck.operations.reports.look_at_senders import ShownOverview, ShownSender
from mailcheck.wire.domains.findings import DnsRecord, render_record
from mailcheck.wire.shapes import ABSENT, Absent, Count, Shape, Texts, Timestamp, said

MOST_SOURCES = 20
"""Addresses of one sender that are shown, the most active first."""


class ReportSource(Shape):
    """an address that mail came from"""

    address: str
    messages: Count
    failing: Count
    host: Annotated[str | Absent, said("its forward-confirmed reverse DNS")] = ABSENT


class ReportSender(Shape):
    """who sends as the domain: called by what vouches for the mail, reverse DNS, or address"""

    name: str
    from_domain: Annotated[str, said("the From domain of what fails")]
    known: Annotated[bool, said("some of its mail passes")]
    messages: Count
    passing: Count
    failing: Count
    cause: Annotated[Cause, said("why it fails")]
    meaning: Annotated[str, said("the same in a sentence")]
    fix: Annotated[str, said("what to do")]
    source_count: Count
    sources: tuple[ReportSource, ...]
    vouched_for: Annotated[Texts, said("other domains that SPF or DKIM passes for")]
    reporters: Texts
    days: Annotated[int, said("days on which it was seen", ge=0)]
    overrides: Annotated[Texts, said("why receivers did otherwise than the policy asks")]
    listed: Annotated[
        Texts | Absent,
        said("blocklists that have its most active address; absent: not asked, or not known"),
    ] = ABSENT
    record: Annotated[
        DnsRecord | Absent,
        said("lets it send, if you want that: our own SPF evaluation passes with it"),
    ] = ABSENT


class Reporter(Shape):
    """who has sent reports, and about how many messages"""

    name: str
    messages: Count


class DmarcOverview(Shape):
    """what DMARC reports say about a domain: who may not send first"""

    domain: str
    begins_at: Timestamp
    ends_at: Timestamp
    policy: Annotated[str, said("as receivers found it last")]
    messages: Count
    passing: Count
    failing: Count
    stopped_by_reject: Annotated[int, said("what p=reject would stop today", ge=0)]
    forwarded: Annotated[int, said("of these: passed on by somebody", ge=0)]
    reporters: tuple[Reporter, ...]
    senders: tuple[ReportSender, ...]


class ReadReport(Shape):
    """a DMARC report of a file: what it says of itself, believed by nobody"""

    organisation: str
    email: str
    report_id: str
    domain: str
    begins_at: Timestamp
    ends_at: Timestamp
    messages: Count
    problems: Annotated[Texts, said("rows that were left out, and why")]


class TlsFailure(Shape):
    """sessions that could not be encrypted, for one reason"""

    result: Annotated[str, said("RFC 8460 4.3, like certificate-expired")]
    meaning: Annotated[str, said("what it means, one sentence")]
    fix: Annotated[str, said("what to do")]
    sessions: Count
    receiving_host: str
    sending_ip: str
    reason: Annotated[str, said("what the reporter adds")]


class TlsPolicy(Shape):
    """sessions under one policy of a domain"""

    domain: str
    policy_type: Annotated[str, said("sts, tlsa or no-policy-found")]
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


def render_overview(shown: ShownOverview) -> DmarcOverview:
    """Give what reports say about a domain."""
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
        source_count=len(sender.sources),
        sources=tuple(map(_source, sender.sources[:MOST_SOURCES])),
        vouched_for=sender.vouched_for,
        reporters=sender.reporters,
        days=sender.days,
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
