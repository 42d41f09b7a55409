"""The report of a deliverability test as JSON (SPEC.md 2.5, DECISIONS.md section 3)."""

import json

from mailcheck.checks.deliverability.score import DeliverabilityReport
from mailcheck.checks.deliverability.weights import SCORING_VERSION
from mailcheck.core.deliverability_tests import ReceivedMail, StoredReport
from mailcheck.core.messages import NULL_REVERSE_PATH
from mailcheck.wire.deliverability.checks import render_checks
from mailcheck.wire.deliverability.details import render_details
from mailcheck.wire.deliverability.findings import points, render_all, render_deduction
from mailcheck.wire.domains.findings import render_record
from mailcheck.wire.json_values import JsonObject


def render_report(report: DeliverabilityReport) -> JsonObject:
    """Give score, email, checks and everything behind them."""
    score = report.score
    shown: dict[str, object] = {
        "score": points(score.tenths),
        "email": _email(report.mail, report),
        "notes": list(report.notes),
        "checks": render_checks(report),
        "deductions": [render_deduction(one) for one in score.deductions],
        "scoringVersion": SCORING_VERSION,
        "undetermined": [check.area.value for check in score.undetermined],
        "report": render_details(report),
        "findings": render_all(score.charged),
    }
    if report.is_preflight:
        shown["preflight"] = True
        shown["records"] = [render_record(one) for one in report.records]
    return shown  # type: ignore[return-value]


def store_report(report: DeliverabilityReport) -> StoredReport:
    """Give the report as it is kept: the very JSON that is shown."""
    document = json.dumps(render_report(report), ensure_ascii=False, separators=(",", ":"))
    # What is no character of Unicode alone can't be stored as UTF-8.
    document = document.encode("utf-8", "replace").decode("utf-8")
    return StoredReport(report.score.tenths, document)


def _email(mail: ReceivedMail, report: DeliverabilityReport) -> JsonObject:
    sender = mail.envelope_sender
    return {
        "from": report.facts.author_address,
        "subject": report.facts.subject,
        "bounceAddress": None if sender == NULL_REVERSE_PATH else sender,
    }
