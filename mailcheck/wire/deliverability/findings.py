"""Findings about a mail as JSON, with what each takes off."""

from collections.abc import Iterable

from mailcheck.checks.deliverability.report import Area, ChargedFinding
from mailcheck.wire.domains.findings import render_finding, render_record
from mailcheck.wire.json_values import JsonObject

TENTHS = 10
"""Tenths of a point are counted, points are shown."""


def points(tenths: int) -> float:
    """Give points with one decimal."""
    return tenths / TENTHS


def render_charged(one: ChargedFinding) -> JsonObject:
    """Give a finding; ``points`` is what it takes off, 0.0 for one that is good to know."""
    return {"area": one.area.value, **render_finding(one.finding), "points": points(one.tenths)}


def render_area(findings: Iterable[ChargedFinding], area: Area) -> list[JsonObject]:
    """Give the findings of one area, the worst first."""
    return render_all(one for one in findings if one.area is area)


def render_all(findings: Iterable[ChargedFinding]) -> list[JsonObject]:
    """Give findings: what costs most first, then the gravest."""
    ordered = sorted(findings, key=lambda one: (-one.tenths, one.finding.severity.rank))
    return [render_charged(one) for one in ordered]


def render_deduction(one: ChargedFinding) -> JsonObject:
    """Give a deduction: from what, how much, and what to do."""
    finding = one.finding
    shown: dict[str, JsonObject | str | float] = {
        "check": one.area.value,
        "id": finding.id,
        "points": points(one.tenths),
        "meaning": finding.meaning,
        "fix": finding.fix,
    }
    if finding.record is not None:
        shown["record"] = render_record(finding.record)
    return shown
