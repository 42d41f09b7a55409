"""Findings about a mail as JSON, with what each takes off."""

from collections.abc import Iterable
from typing import Annotated

from mailcheck.checks.charges import Area, ChargedFinding
from mailcheck.checks.findings import Severity
from mailcheck.wire.domains.findings import DnsRecord, render_record
from mailcheck.wire.shapes import ABSENT, Absent, Shape, said

TENTHS = 10
"""Tenths of a point are counted, points are shown."""


class MailFinding(Shape):
    """Something about a mail that is wrong, unknown or good to know."""

    area: Area
    id: Annotated[str, said("stable, like dkim.unsigned")]
    severity: Severity
    meaning: Annotated[str, said("one sentence")]
    fix: Annotated[str, said("what to do")]
    points: Annotated[float, said("what it takes off; 0.0 for what is good to know", ge=0)]
    record: DnsRecord | Absent = ABSENT


class Deduction(Shape):
    """What takes points off the score."""

    check: Area
    id: Annotated[str, said("stable, like dkim.unsigned")]
    points: Annotated[float, said("what it takes off", ge=0)]
    meaning: Annotated[str, said("one sentence")]
    fix: Annotated[str, said("what to do")]
    record: DnsRecord | Absent = ABSENT


MailFindings = Annotated[tuple[MailFinding, ...], said("what costs most first")]


def points(tenths: int) -> float:
    """Give points with one decimal."""
    return tenths / TENTHS


def render_charged(one: ChargedFinding) -> MailFinding:
    """Give a finding."""
    finding = one.finding
    return MailFinding(
        area=one.area,
        id=finding.id,
        severity=finding.severity,
        meaning=finding.meaning,
        fix=finding.fix,
        points=points(one.tenths),
        record=_record(one),
    )


def render_area(findings: Iterable[ChargedFinding], area: Area) -> tuple[MailFinding, ...]:
    """Give the findings of one area, the worst first."""
    return render_all(one for one in findings if one.area is area)


def render_all(findings: Iterable[ChargedFinding]) -> tuple[MailFinding, ...]:
    """Give findings: what costs most first, then the gravest."""
    ordered = sorted(findings, key=lambda one: (-one.tenths, one.finding.severity.rank))
    return tuple(map(render_charged, ordered))


def render_deduction(one: ChargedFinding) -> Deduction:
    """Give a deduction: from what, how much, and what to do."""
    finding = one.finding
    return Deduction(
        check=one.area,
        id=finding.id,
        points=points(one.tenths),
        meaning=finding.meaning,
        fix=finding.fix,
        record=_record(one),
    )


def _record(one: ChargedFinding) -> DnsRecord | Absent:
    record = one.finding.record
    return ABSENT if record is None else render_record(record)
