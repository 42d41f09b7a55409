"""The report of a deliverability test as JSON (SPEC.md 2.5, DECISIONS.md section 3)."""

from typing import Annotated, Any, ClassVar

from mailcheck.checks.deliverability.score import DeliverabilityReport
from mailcheck.checks.findings import Area
from mailcheck.checks.weights import SCORING_VERSION
from mailcheck.core.deliverability_tests import StoredReport
from mailcheck.core.messages import NULL_REVERSE_PATH
from mailcheck.wire.deliverability.checks import Checks, render_checks
from mailcheck.wire.deliverability.details import Report, render_details
from mailcheck.wire.deliverability.findings import (
    Deduction,
    MailFindings,
    points,
    render_all,
    render_deduction,
)
from mailcheck.wire.domains.findings import DnsRecord, render_record
from mailcheck.wire.json_values import dump_json
from mailcheck.wire.shapes import Always, Shape, Texts, said

Score = Annotated[float, said("0.0 to 10.0, one decimal", ge=0, le=10)]


class ReportedMail(Shape):
    """The mail that came in."""

    component_name: ClassVar[str] = "TestedMail"
    from_: Annotated[str, said("the author's address")]
    subject: str
    bounce_address: Annotated[str | None, said("the envelope sender; null for none")]


class MailReport(Shape):
    """What was found out about a mail."""

    score: Score
    email: ReportedMail
    notes: Annotated[Texts, said("what to know before reading on")]
    checks: Checks
    deductions: Annotated[
        tuple[Deduction, ...], said("their sum is 10 - score, or more where the score is 0")
    ]
    scoring_version: Annotated[str, said("changes when points change")]
    undetermined: Annotated[tuple[Area, ...], said("checks that could not be determined")]
    content_only: Annotated[
        bool, said("the mail came from an address that no receiver sees: no prediction")
    ]
    report: Report
    findings: MailFindings


class PreflightReport(MailReport):
    """What a mail would get if some records were published."""

    preflight: Annotated[Always, said("what would be, not what is")]
    records: Annotated[tuple[DnsRecord, ...], said("the records it was judged with")]


def render_report(report: DeliverabilityReport) -> MailReport:
    """Give score, email, checks and everything behind them."""
    score = report.score
    fields: dict[str, Any] = {
        "score": points(score.tenths),
        "email": render_email(
            report.facts.author_address, report.facts.subject, report.mail.envelope_sender
        ),
        "notes": tuple(report.notes),
        "checks": render_checks(report),
        "deductions": tuple(render_deduction(one, report.proofs) for one in score.deductions),
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
    """Give the report as it is kept: the very JSON that is shown."""
    return StoredReport(report.score.tenths, dump_json(render_report(report)).decode("utf-8"))


def render_email(author: str, subject: str, sender: str) -> ReportedMail:
    """Give what identifies the mail; ``sender`` is the envelope's."""
    return ReportedMail(author, subject, None if sender == NULL_REVERSE_PATH else sender)
