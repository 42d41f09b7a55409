"""The report of a deliverability test as JSON (docs/reference/contract.md)."""

from typing import Annotated, Any, ClassVar, Literal

from mailcheck.api.authentication import (
    Detail,
    Determined,
    DmarcVerdict,
    Result,
    Signature,
    SpfVerdict,
    dmarc_fields,
    render_signature,
    spf_fields,
)
from mailcheck.api.deliverability.details import Report, render_details
from mailcheck.api.deliverability.filters import (
    CountedScore,
    Engine,
    FilterRule,
    FilterScore,
    IsSpam,
    Problem,
    filter_fields,
)
from mailcheck.api.deliverability.findings import (
    Deduction,
    MailFindings,
    points,
    render_all,
    render_charged,
    render_deduction,
)
from mailcheck.api.domains.blocklists import Listing, render_listing
from mailcheck.api.domains.findings import DnsRecord, render_record
from mailcheck.api.shapes import Always, Count, Shape, Texts, doc, dump_json
from mailcheck.checks.deliverability.score import CheckSummary, DeliverabilityReport
from mailcheck.checks.dnsbl.listings import ListingStatus, count
from mailcheck.checks.findings import Area, CheckStatus
from mailcheck.checks.proofs import Proofs, proof_of
from mailcheck.checks.weights import SCORING_VERSION
from mailcheck.core.deliverability_tests import StoredReport
from mailcheck.core.messages import NULL_REVERSE_PATH

CheckResult = Annotated[Literal["pass", "fail", "unknown"], doc("unknown: undetermined")]

# Fields of every check. A struct can have only one base class, so `SpfCheck` and `DmarcCheck`,
# which inherit from the shapes of an inbox message, repeat these fields.
PointsDeducted = Annotated[float, doc("points that the findings of this check deduct", ge=0)]
Reason = Annotated[str | None, doc("why points are deducted")]
Fix = Annotated[str | None, doc("the most important fix")]


class CheckBase(Shape):
    """The fields of every check."""

    status: CheckStatus
    detail: Detail
    deduction: PointsDeducted
    reason: Reason
    fix: Fix
    publish: DnsRecord | None
    determined: Determined
    findings: MailFindings


class SpfCheck(SpfVerdict):
    """SPF of the envelope sender, reverse DNS and HELO."""

    status: CheckStatus
    deduction: PointsDeducted
    reason: Reason
    fix: Fix
    publish: DnsRecord | None
    findings: MailFindings


class DkimCheck(CheckBase):
    """DKIM, with the result of each signature."""

    result: Result
    signatures: tuple[Signature, ...]
    unchecked: Annotated[int, doc("number of signatures beyond the limit; not verified", ge=0)]


class DmarcCheck(DmarcVerdict):
    """DMARC (RFC 9989) of the author's domain, with its deduction."""

    status: CheckStatus
    deduction: PointsDeducted
    reason: Reason
    fix: Fix
    publish: DnsRecord | None
    findings: MailFindings


class BlacklistMailCheck(CheckBase):
    """Blocklists: the client, and the domains of author, envelope sender and links."""

    result: CheckResult
    checked: Annotated[int, doc("lists that answered", ge=0)]
    listed: Count
    unknown: Annotated[int, doc("lists without a usable answer", ge=0)]
    listings: tuple[Listing, ...]


class ContentCheck(CheckBase):
    """The content filter, SpamAssassin."""

    result: CheckResult
    score: FilterScore
    threshold: float | None
    counted_score: CountedScore
    spam: IsSpam
    engine: Engine
    rules: tuple[FilterRule, ...]
    problem: Problem


class Checks(Shape):
    """The five checks."""

    spf: SpfCheck
    dkim: DkimCheck
    dmarc: DmarcCheck
    blacklist: BlacklistMailCheck
    spamassassin: ContentCheck


def render_checks(report: DeliverabilityReport) -> Checks:
    """Render the five checks, each with its own fields."""
    found = report.evidence.authentication
    common = {check.area: _common_fields(check, report.proofs) for check in report.score.checks}
    return Checks(
        spf=SpfCheck(
            **{**spf_fields(found.spf, found.origin.client_ip), **common[Area.SPF]},
        ),
        dkim=DkimCheck(
            **common[Area.DKIM],
            signatures=tuple(
                render_signature(signature, found.dmarc) for signature in found.dkim.signatures
            ),
            unchecked=found.dkim.unchecked,
        ),
        dmarc=DmarcCheck(**{**dmarc_fields(found.dmarc), **common[Area.DMARC]}),
        blacklist=_blacklist(report, common[Area.BLACKLIST]),
        spamassassin=ContentCheck(
            **common[Area.SPAMASSASSIN], **filter_fields(report.evidence.content_filter)
        ),
    )


def _common_fields(check: CheckSummary, proofs: Proofs) -> dict[str, Any]:
    proven = None if check.first is None else proof_of(check.first, proofs)
    return {
        "status": check.status,
        "result": check.result,
        "detail": check.detail,
        "deduction": points(check.tenths),
        "reason": check.reason or None,
        "fix": check.fix or None,
        "publish": None if proven is None else render_record(proven.record),
        "determined": check.is_determined,
        "findings": tuple(render_charged(finding, proofs) for finding in check.findings),
    }


def _blacklist(report: DeliverabilityReport, common: dict[str, Any]) -> BlacklistMailCheck:
    listings = report.evidence.listings
    listed = count(listings, ListingStatus.LISTED)
    return BlacklistMailCheck(
        **common,
        checked=listed + count(listings, ListingStatus.CLEAN),
        listed=listed,
        unknown=count(listings, ListingStatus.UNKNOWN),
        listings=tuple(map(render_listing, listings)),
    )


Score = Annotated[float, doc("0.0 to 10.0, one decimal", ge=0, le=10)]


class ScoredMail(Shape):
    """The received mail."""

    component_name: ClassVar[str] = "TestedMail"
    from_: Annotated[str, doc("address of the author")]
    subject: str
    bounce_address: Annotated[str | None, doc("envelope sender; null if it is empty")]


class MailReport(Shape):
    """The report about a mail."""

    score: Score
    email: ScoredMail
    notes: Annotated[Texts, doc("limitations of this report")]
    checks: Checks
    deductions: Annotated[
        tuple[Deduction, ...], doc("they add up to 10 - score, or to more if the score is 0")
    ]
    scoring_version: Annotated[str, doc("changes when the points of findings change")]
    undetermined: Annotated[tuple[Area, ...], doc("checks that could not be determined")]
    content_only: Annotated[
        bool, doc("the client's IP address is private, so the score does not predict delivery")
    ]
    report: Report
    findings: MailFindings


class PreflightReport(MailReport):
    """The report that a mail would get if some DNS records were published."""

    preflight: Annotated[Always, doc("the report assumes records that are not published")]
    records: Annotated[tuple[DnsRecord, ...], doc("the assumed records")]


def render_report(report: DeliverabilityReport) -> MailReport:
    """Render the whole report of a mail."""
    score = report.score
    fields: dict[str, Any] = {
        "score": points(score.tenths),
        "email": render_email(
            report.facts.author_address, report.facts.subject, report.mail.envelope_sender
        ),
        "notes": tuple(report.notes),
        "checks": render_checks(report),
        "deductions": tuple(
            render_deduction(deduction, report.proofs) for deduction in score.deductions
        ),
        "scoring_version": SCORING_VERSION,
        "undetermined": tuple(check.area for check in score.undetermined),
        "content_only": bool(report.evidence.authentication.origin.problem),
        "report": render_details(report),
        "findings": render_all(score.charged, report.proofs),
    }
    if not report.is_preflight:
        return MailReport(**fields)
    records = tuple(map(render_record, report.records))
    return PreflightReport(**fields, preflight=True, records=records)


def store_report(report: DeliverabilityReport) -> StoredReport:
    """Return the report in the form in which it is stored: the JSON that clients receive."""
    return StoredReport(report.score.tenths, dump_json(render_report(report)).decode("utf-8"))


def render_email(author: str, subject: str, sender: str) -> ScoredMail:
    """Render the fields that identify a mail. ``sender`` is the envelope sender."""
    return ScoredMail(author, subject, None if sender == NULL_REVERSE_PATH else sender)
