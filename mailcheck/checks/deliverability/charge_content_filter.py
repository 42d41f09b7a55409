"""What the content filter's points cost."""

from decimal import ROUND_HALF_UP, Decimal

from mailcheck.checks.deliverability.charging import GRAVE, unknown
from mailcheck.checks.deliverability.content_filter import (
    FilterOutcome,
    FilterUnavailable,
    FilterVerdict,
)
from mailcheck.checks.deliverability.report import Area, ChargedFinding
from mailcheck.checks.deliverability.weights import FILTER_FACTOR, FILTER_MAX_POINTS
from mailcheck.checks.findings import Finding, Severity

MAX_NAMED = 5
"""Rules that are named in a sentence."""


def charge_content_filter(outcome: FilterOutcome) -> tuple[ChargedFinding, ...]:
    """Charge the points that no check of ours has charged already."""
    if isinstance(outcome, FilterUnavailable):
        finding_id = f"spamassassin.{outcome.problem.value}"
        return (unknown(Area.SPAMASSASSIN, finding_id, outcome.reason, outcome.fix),)
    tenths = cost_of_points(outcome.counted_points)
    if not tenths:
        return ()
    severity = Severity.ERROR if tenths >= GRAVE else Severity.WARNING
    finding = Finding(
        "spamassassin.points",
        severity,
        f"{outcome.engine} gives the content {outcome.counted_points:.1f} points (mail is spam at"
        f" {outcome.threshold:.1f}): {_rules(outcome)}.",
        "Change what the named rules found; each says in its description what it looks for.",
    )
    return (ChargedFinding(Area.SPAMASSASSIN, finding, tenths),)


def cost_of_points(points: float) -> int:
    """Give the tenths for a filter's points, halves rounded up."""
    counted = Decimal(str(min(max(points, 0.0), FILTER_MAX_POINTS)))
    return int((FILTER_FACTOR * counted).to_integral_value(ROUND_HALF_UP))


def _rules(verdict: FilterVerdict) -> str:
    against = sorted(
        (rule for rule in verdict.rules if rule.counts and rule.points > 0),
        key=lambda rule: -rule.points,
    )
    names = [f"{rule.name} ({rule.points:.1f})" for rule in against]
    if len(names) > MAX_NAMED:
        names = [*names[:MAX_NAMED], f"and {len(names) - MAX_NAMED} more"]
    return ", ".join(names)
