"""Making findings that carry their price."""

from collections.abc import Iterable
from dataclasses import replace

from mailcheck.checks.charges import Area, ChargedFinding
from mailcheck.checks.deliverability.weights import COSTS
from mailcheck.checks.findings import Finding, RecordToPublish, Severity

GRAVE = 10
"""Tenths from which on a finding is an error."""


def charge(
    finding_id: str, meaning: str, fix: str, record: RecordToPublish | None = None
) -> ChargedFinding:
    """Make a finding that is in the table of costs."""
    cost = COSTS[finding_id]
    severity = Severity.ERROR if cost.tenths >= GRAVE else Severity.WARNING
    return ChargedFinding(
        cost.area, Finding(finding_id, severity, meaning, fix, record), cost.tenths
    )


def charge_known(area: Area, finding: Finding) -> ChargedFinding:
    """Put its price on a finding that another check has made; nothing if it has none."""
    cost = COSTS.get(finding.id)
    return ChargedFinding(area, finding, cost.tenths if cost is not None else 0)


def remark(area: Area, finding: Finding) -> ChargedFinding:
    """Make a finding that costs nothing here, whatever it means elsewhere."""
    return ChargedFinding(area, finding, 0)


def unknown(area: Area, finding_id: str, meaning: str, fix: str) -> ChargedFinding:
    """Say that something could not be found out: it costs nothing."""
    return ChargedFinding(area, Finding(finding_id, Severity.UNDETERMINED, meaning, fix))


def total(charged: Iterable[ChargedFinding]) -> int:
    """Add up the tenths."""
    return sum(one.tenths for one in charged)


def cap(charged: Iterable[ChargedFinding], most: int) -> tuple[ChargedFinding, ...]:
    """Charge no more than ``most`` tenths for all together; what comes last is charged less."""
    left = most
    capped = []
    for one in charged:
        tenths = min(one.tenths, left)
        left -= tenths
        capped.append(replace(one, tenths=tenths))
    return tuple(capped)
