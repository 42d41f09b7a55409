"""The results of content filters as JSON."""

from typing import Annotated, Any

from mailcheck.api.deliverability.findings import MailFindings
from mailcheck.api.shapes import Shape, doc, shape_from
from mailcheck.checks.deliverability.content_filter import (
    FilterOutcome,
    FilterProblem,
    FilterUnavailable,
)


class FilterRule(Shape):
    """A rule of the content filter that matched."""

    name: str
    points: float
    description: str
    counted: bool
    not_counted: Annotated[str | None, doc("why it is not counted: a check of mailcheck covers it")]


FilterScore = Annotated[float | None, doc("score of the filter")]
CountedScore = Annotated[float | None, doc("without rules that a check of mailcheck covers")]
IsSpam = Annotated[bool | None, doc("verdict of the filter")]
Engine = Annotated[str | None, doc("name and version of the filter")]
Problem = Annotated[FilterProblem | None, doc("why there is no verdict")]


class FilterResult(Shape):
    """The result of rspamd."""

    component_name = "RspamdResult"
    detail: Annotated[str, doc("the result in one sentence")]
    score: FilterScore
    threshold: float | None
    counted_score: CountedScore
    spam: IsSpam
    engine: Engine
    rules: tuple[FilterRule, ...]
    problem: Problem
    in_score: Annotated[
        bool, doc("the score of the mail uses it, since this server has no SpamAssassin")
    ]
    findings: MailFindings


def filter_fields(outcome: FilterOutcome) -> dict[str, Any]:
    """Return the fields that the results of all filters have."""
    if isinstance(outcome, FilterUnavailable):
        return {
            "score": None,
            "threshold": None,
            "counted_score": None,
            "spam": None,
            "engine": None,
            "rules": (),
            "problem": outcome.problem,
        }
    return {
        "score": outcome.points,
        "threshold": outcome.threshold,
        "counted_score": outcome.counted_points,
        "spam": outcome.is_spam,
        "engine": outcome.engine,
        "rules": tuple(shape_from(FilterRule, rule, counted=rule.counts) for rule in outcome.rules),
        "problem": None,
    }
