"""Reports of receivers as JSON: those that are kept, imported or refused."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Annotated

from mailcheck.api.domains.feedback import (
    FeedbackCampaign,
    FeedbackDetails,
    FeedbackSource,
    TypeCount,
    render_campaign,
    render_feedback,
    render_source,
    render_types,
)
from mailcheck.api.domains.report_overviews import NextPage, next_page_of
from mailcheck.api.shapes import (
    ABSENT,
    Absent,
    Always,
    Count,
    Date,
    Shape,
    Texts,
    Timestamp,
    doc,
    shape_from,
)
from mailcheck.core.domains.receiver_reports import (
    ReceiverReport,
    ReportKind,
    ReportPlaces,
    ReportState,
    ReportWay,
    SenderDecision,
)
from mailcheck.operations.reports import import_reports, show_reports
from mailcheck.operations.reports.import_reports import ImportOutcome
from mailcheck.store.domains import report_store, report_sums
from mailcheck.store.domains.report_quotas import Outcome, Tally


class ReportAddresses(Shape):
    """The account's addresses for reports."""

    dmarc: Annotated[str, doc("for rua= of a DMARC record, after mailto:")]
    tls: Annotated[str, doc("for rua= of a TLS-RPT record, after mailto:")]
    tls_url: Annotated[str, doc("HTTPS URL for rua= of a TLS-RPT record")]
    failures: Annotated[str, doc("for ruf= of a DMARC record; such reports contain mail")]
    complaints: Annotated[str, doc("for feedback loops of receivers")]


class ReportedDomain(Shape):
    """A domain with counted reports."""

    kind: ReportKind
    domain: str
    reports: Count
    messages: Annotated[int, doc("sessions for TLS reports", ge=0)]
    failing: Count
    last_at: Timestamp
    proven: Annotated[
        bool,
        doc("its DNS has requested reports to this account; otherwise, all are imported"),
    ]


class ShownLetter(Shape):
    """A mail that is not a report. Its sender wrote all texts."""

    author: str
    subject: str
    text: Annotated[str, doc("the first 4,000 characters")]
    links: Annotated[Texts, doc("at most 10")]


class KeptReport(Shape):
    """A received report, counted or not."""

    id: str
    kind: ReportKind
    state: Annotated[
        ReportState,
        doc("apart: readable but not trusted, so its rows are not counted"),
    ]
    way: Annotated[
        ReportWay, doc("how it came: sent to this server, fetched from a mailbox, or uploaded")
    ]
    received_at: Annotated[Timestamp, doc("of an import: the end of its period")]
    reason: Annotated[str, doc("why it is not counted; otherwise empty")]
    domain: str
    reporter: Annotated[
        str, doc("authenticated domain of the reporter, or of an import the claimed one")
    ]
    organisation: Annotated[str, doc("organization named in the report")]
    report_id: str
    begins_at: Timestamp | None
    ends_at: Timestamp | None
    messages: Count
    failing: Count
    problems: Texts
    feedback: Annotated[
        FeedbackDetails | Absent, doc("content of a failure report or complaint")
    ] = ABSENT
    letter: Annotated[
        ShownLetter | Absent,
        doc("authenticated mail to the address for complaints, such as a request to confirm it"),
    ] = ABSENT


class FeedbackOverview(Shape):
    """The numbers of mails in authenticated failure reports and complaints about a domain."""

    domain: str
    days: Count
    failures: Annotated[int, doc("mails that failed DMARC", ge=0)]
    complaints: Annotated[int, doc("mails with a complaint; `not-spam` is none", ge=0)]
    types: tuple[TypeCount, ...]
    unauthenticated: Annotated[int, doc("reports that are listed but not counted", ge=0)]
    sources: Annotated[tuple[FeedbackSource, ...], doc("the 100 addresses with most mails")]
    campaigns: Annotated[tuple[FeedbackCampaign, ...], doc("the 100 campaigns with most mails")]
    reports: Annotated[tuple[KeptReport, ...], doc("one page of the reports, newest first")]
    next_page: NextPage
    total: Annotated[int, doc("number of reports on all pages", ge=0)]


class SourceOfReports(Shape):
    """Totals of the counted reports of one reporter."""

    kind: ReportKind
    reporter: Annotated[str, doc("name to pass to `DELETE /reports?reporter=...`")]
    reports: Count
    messages: Count
    failing: Count


class RefusedReports(Shape):
    """Reports of one sender and day that were rejected, or stored without their rows."""

    day: Annotated[Date, doc("day on which they arrived (UTC)")]
    outcome: Annotated[
        Outcome,
        doc("over-quota: rows were not counted; foreign: the domain is not of this account"),
    ]
    reporter: Annotated[str, doc("authenticated organization; empty: none")]
    reports: Count
    rows: Annotated[int, doc("rows that were not stored; 0 for foreign reports", ge=0)]
    bytes: Annotated[int, doc("size of these rows", ge=0)]
    domain: Annotated[str, doc("domain of the last of them")]
    meaning: Annotated[str, doc("the outcome in one sentence")]
    fix: Annotated[str, doc("what to do")]


class KeptReports(Shape):
    """Reports, newest first, and the addresses to which they are sent."""

    addresses: ReportAddresses
    domains: Annotated[tuple[ReportedDomain, ...], doc("the 200 domains with most messages")]
    reports: tuple[KeptReport, ...]
    next_page: int | None
    total: Count
    sources: Annotated[
        tuple[SourceOfReports, ...],
        doc("totals of all counted reports by reporter: the 200 with most messages"),
    ]
    refused: Annotated[
        tuple[RefusedReports, ...],
        doc("reports that were not stored, newest days first, at most 200"),
    ]


class ImportedFile(Shape):
    """A report in an imported file, or a file without one."""

    file: Annotated[str, doc("its name; archives and mailboxes add the name or number in them")]
    outcome: ImportOutcome
    reason: Annotated[str, doc("why it is rejected; otherwise empty")]
    kind: Annotated[ReportKind | Absent, doc("absent if it is rejected, as all further fields")] = (
        ABSENT
    )
    domain: str | Absent = ABSENT
    reporter: Annotated[str | Absent, doc("who sent it, by its own claim")] = ABSENT
    organisation: str | Absent = ABSENT
    report_id: str | Absent = ABSENT
    begins_at: Timestamp | Absent = ABSENT
    ends_at: Timestamp | Absent = ABSENT
    rows: Annotated[Count | Absent, doc("number of different rows")] = ABSENT
    messages: Annotated[Count | Absent, doc("number of messages or sessions")] = ABSENT


class ImportedReports(Shape):
    """What became of imported files."""

    new: Annotated[int, doc("reports that count now", ge=0)]
    known: Annotated[int, doc("reports that were counted before", ge=0)]
    rejected: Annotated[int, doc("reports and files that cannot be counted", ge=0)]
    files: tuple[ImportedFile, ...]


class DeletedReport(Shape):
    """Confirmation that a report was deleted."""

    success: Always
    id: str


class DecidedSender(Shape):
    """Confirmation of a decision about a sender."""

    success: Always
    domain: str
    sender: Annotated[str, doc("key of the sender")]
    decision: Annotated[SenderDecision | None, doc("null: undecided")]


class DeletedReports(Shape):
    """Confirmation that reports were deleted."""

    success: Always
    deleted: Count


def render_kept_reports(
    own: ReportPlaces,
    domains: Iterable[report_sums.ReportedDomain],
    sources: Iterable[report_sums.ReportSource],
    refused: Iterable[Tally],
    found: report_store.ReportPage,
    page: int,
    limit: int,
) -> KeptReports:
    """Render a page of reports, with the totals of all reports."""
    return KeptReports(
        addresses=shape_from(ReportAddresses, own),
        domains=tuple(shape_from(ReportedDomain, domain) for domain in domains),
        reports=tuple(map(_kept, found.entries)),
        next_page=next_page_of(page, limit, found.total),
        total=found.total,
        sources=tuple(shape_from(SourceOfReports, source) for source in sources),
        refused=tuple(map(_refused, refused)),
    )


def _imported_file(one: import_reports.ImportedFile) -> ImportedFile:
    report = one.report
    if report is None:
        return ImportedFile(one.name, one.outcome, one.reason)
    return shape_from(
        ImportedFile,
        report,
        file=one.name,
        outcome=one.outcome,
        reason=one.reason,
        rows=report.row_count,
    )


def render_imported(found: Sequence[import_reports.ImportedFile]) -> ImportedReports:
    """Render the outcomes of an import, and how many there are of each."""
    counts = Counter(file.outcome for file in found)
    new, known, rejected = (counts[outcome] for outcome in ImportOutcome)
    return ImportedReports(new, known, rejected, tuple(map(_imported_file, found)))


def _refused(tally: Tally) -> RefusedReports:
    sender = tally.sender or "unauthenticated senders"
    number = "1 report" if tally.reports == 1 else f"{tally.reports} reports"
    verb = "was" if tally.reports == 1 else "were"
    if tally.outcome is Outcome.FOREIGN:
        meaning = (
            f"{number} {verb} about domains that this account neither watches nor owns, the last "
            f"about {tally.domain}."
        )
        fix = "Watch a domain to count the reports about it."
    else:
        meaning = f"{number} of {sender} exceeded the daily quota of reports."
        fix = "If you do not know the sender, delete its reports."
    return shape_from(
        RefusedReports,
        tally,
        reporter=tally.sender,
        bytes=tally.octets,
        meaning=meaning,
        fix=fix,
    )


def _kept(report: ReceiverReport) -> KeptReport:
    return shape_from(
        KeptReport,
        report,
        feedback=None if report.feedback is None else render_feedback(report.feedback),
    )


def render_feedback_overview(
    known: show_reports.FeedbackOverview, page: int, limit: int
) -> FeedbackOverview:
    """Render the reports about single mails of a domain, with one page of them."""
    sums, found = known.sums, known.page
    return shape_from(
        FeedbackOverview,
        known,
        failures=sums.failures,
        complaints=sums.complaints,
        types=render_types(sums.types),
        unauthenticated=found.unauthenticated,
        sources=tuple(map(render_source, sums.sources)),
        campaigns=tuple(map(render_campaign, sums.campaigns)),
        reports=tuple(map(_kept, found.entries)),
        next_page=next_page_of(page, limit, found.total),
        total=found.total,
    )
