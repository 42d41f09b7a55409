"""What the content filter's points cost."""

import re
from decimal import ROUND_HALF_UP, Decimal

from mailcheck.checks.charges import Area, ChargedFinding
from mailcheck.checks.deliverability.charging import GRAVE, unknown
from mailcheck.checks.deliverability.content_filter import (
    FilterOutcome,
    FilterProblem,
    FilterRule,
    FilterUnavailable,
    FilterVerdict,
)
from mailcheck.checks.deliverability.weights import FILTER_FACTOR, FILTER_MAX_POINTS
from mailcheck.checks.findings import Finding, Severity

MAX_NAMED = 5
"""Rules that are named in a sentence."""

MAX_DESCRIBED = 3
"""Rules whose descriptions are repeated."""

_KIND = re.compile(r"\A(?:[A-Z]{3,8}: )+", re.ASCII)

_IDS = {
    FilterProblem.OFF: "spamassassin.off",
    FilterProblem.NOT_INSTALLED: "spamassassin.not-installed",
    FilterProblem.UNREACHABLE: "spamassassin.unreachable",
    FilterProblem.TIMEOUT: "spamassassin.timeout",
    FilterProblem.BUSY: "spamassassin.busy",
    FilterProblem.TOO_LARGE: "spamassassin.too-large",
    FilterProblem.BROKEN_ANSWER: "spamassassin.broken-answer",
}


def charge_content_filter(outcome: FilterOutcome) -> tuple[ChargedFinding, ...]:
    """Charge the points that no check of ours has charged already."""
    if isinstance(outcome, FilterUnavailable):
        return (unknown(Area.SPAMASSASSIN, _IDS[outcome.problem], outcome.reason, outcome.fix),)
    tenths = cost_of_points(outcome.counted_points)
    if not tenths:
        return ()
    severity = Severity.ERROR if tenths >= GRAVE else Severity.WARNING
    finding = Finding(
        "spamassassin.points",
        severity,
        f"{outcome.engine} gives the content {outcome.counted_points:.1f} points (mail is spam at"
        f" {outcome.threshold:.1f}): {_rules(outcome)}.",
        f"Change what they found: {_descriptions(outcome)}.",
    )
    return (ChargedFinding(Area.SPAMASSASSIN, finding, tenths),)


def cost_of_points(points: float) -> int:
    """Give the tenths for a filter's points, halves rounded up."""
    counted = Decimal(str(min(max(points, 0.0), FILTER_MAX_POINTS)))
    return int((FILTER_FACTOR * counted).to_integral_value(ROUND_HALF_UP))


def _against(verdict: FilterVerdict) -> list[FilterRule]:
    found = (rule for rule in verdict.rules if rule.counts and rule.points > 0)
    return sorted(found, key=lambda rule: -rule.points)


def _descriptions(verdict: FilterVerdict) -> str:
    """Give what the heaviest rules say of themselves, without the kind of text they look at."""
    texts = [_KIND.sub("", rule.description) or rule.name for rule in _against(verdict)]
    return "; ".join(text.rstrip(".") for text in texts[:MAX_DESCRIBED])


def _rules(verdict: FilterVerdict) -> str:
    names = [f"{rule.name} ({rule.points:.1f})" for rule in _against(verdict)]
    if len(names) > MAX_NAMED:
        names = [*names[:MAX_NAMED], f"and {len(names) - MAX_NAMED} more"]
    return ", ".join(names)
