"""A deliverability report, written for people."""

from collections.abc import Iterator, Sequence

from mailcheck.checks.deliverability.report import ChargedFinding, CheckStatus
from mailcheck.checks.deliverability.summaries import CheckSummary
from mailcheck.checks.findings import Severity
from mailcheck.checks.mail_quality.receiver_rules import Checklist, RuleResult
from mailcheck.cli.check_texts import BLUE, BOLD, GREEN, RED, YELLOW, Painter
from mailcheck.operations.score_mail_report import DeliverabilityReport
from mailcheck.wire.deliverability_findings import points

GOOD, FAIR = 80, 50
"""Tenths from which a score is shown green, and yellow."""

_COLOURS = {CheckStatus.PASS: GREEN, CheckStatus.WARN: YELLOW, CheckStatus.FAIL: RED}
_WORTH_SAYING = (Severity.ERROR, Severity.WARNING)


def describe_report(report: DeliverabilityReport, painter: Painter) -> list[str]:
    """Write a report: the score, the five checks, what to do, and the receivers' rules."""
    return list(_lines(report, painter))


def _lines(report: DeliverabilityReport, painter: Painter) -> Iterator[str]:
    tenths = report.score.tenths
    colour = GREEN if tenths >= GOOD else YELLOW if tenths >= FAIR else RED
    author = _clean(report.facts.author_address) or "(no author)"
    subject = _clean(report.facts.subject) or "(no subject)"
    yield f"{painter.paint(f'{points(tenths):.1f}/10', colour)}  {author}  {subject}"
    if report.is_preflight:
        yield painter.paint(f"  with {len(report.records)} record(s) that are only proposed", BOLD)
    yield from (f"  {_clean(note)}" for note in report.notes)
    for check in report.score.checks:
        yield _check_line(check, painter)
    yield from _findings("what takes points off", report.score.deductions, painter)
    others = [one for one in report.score.charged if _is_worth_saying(one)]
    yield from _findings("good to know, costs nothing", others, painter)
    yield ""
    for checklist in report.checklists:
        yield _checklist_line(checklist, painter)


def _check_line(check: CheckSummary, painter: Painter) -> str:
    word = check.status.value if check.is_determined else "unknown"
    colour = _COLOURS[check.status] if check.is_determined else BLUE
    cost = f"-{points(check.tenths):.1f}" if check.tenths else "    "
    return (
        f"  {painter.paint(f'{word:<7}', colour)} {cost} {check.area.value:<12}"
        f" {_clean(check.detail)}"
    )


def _findings(title: str, found: Sequence[ChargedFinding], painter: Painter) -> Iterator[str]:
    if not found:
        return
    yield ""
    yield painter.paint(title, BOLD)
    for one in found:
        cost = f"-{points(one.tenths):.1f}" if one.tenths else "    "
        yield f"  {cost} {_clean(one.finding.meaning)}"
        yield f"       fix: {_clean(one.finding.fix)}"
        if one.finding.record is not None:
            record = one.finding.record
            yield f"       {_clean(record.name)}  {record.rdtype}  {_clean(record.value)}"


def _is_worth_saying(one: ChargedFinding) -> bool:
    return not one.tenths and one.finding.severity in _WORTH_SAYING


def _checklist_line(checklist: Checklist, painter: Painter) -> str:
    broken = [rule.text for rule in checklist.rules if rule.result is RuleResult.NOT_MET]
    if not broken:
        return f"  {painter.paint('meets', GREEN)} the rules of {checklist.name}"
    return f"  {painter.paint('breaks', RED)} rules of {checklist.name}: {'; '.join(broken)}"


def _clean(text: str) -> str:
    """Take out what would steer a terminal: mails and records are written by strangers."""
    return "".join(c if c.isprintable() else "?" for c in text)
