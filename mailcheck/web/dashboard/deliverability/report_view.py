"""A deliverability report as pages show it, read from the very JSON that was kept."""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from mailcheck.api.deliverability.findings import points
from mailcheck.api.shapes import JsonObject
from mailcheck.core.deliverability_tests import StoredReport
from mailcheck.web.dashboard.domains.view import score_level

BEST = 10
"""Points of a mail nobody finds fault with."""

RULES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "not-met": ("bad", "not met"),
        "met": ("good", "met"),
        "undetermined": ("unknown", "can't be told"),
        "not-applicable": ("", "not for this mail"),
    }
)
"""Result of a receiver's rule -> level and words; what matters most comes first."""

VERDICTS: Mapping[str, str] = MappingProxyType(
    {
        "good": "This mail should arrive",
        "warn": "This mail may end up among spam",
        "bad": "Many receivers will refuse this mail or treat it as spam",
        "unknown": "Only the content was judged",
    }
)


class Verdict(Struct, frozen=True):
    """What a report comes to, in words: one sentence to know, one to act on."""

    title: str
    next: str


class ReceiverColumn(Struct, frozen=True):
    """A receiver in the matrix of rules; ``broken`` counts its rules that are not met."""

    name: str
    audience: str
    source: str
    broken: int


class RuleRow(Struct, frozen=True):
    """A rule in the matrix: its text, who words it differently, and a result for each column.

    A cell is nothing where the receiver has no such rule.
    """

    text: str
    others: tuple[tuple[str, str], ...]
    cells: tuple[str | None, ...]

    @property
    def is_broken(self) -> bool:
        """Tell whether the mail breaks the rule for some receiver."""
        return "not-met" in self.cells


class Matrix(Struct, frozen=True):
    """Each rule once, broken ones first, with what it comes to for each receiver."""

    columns: tuple[ReceiverColumn, ...]
    rows: tuple[RuleRow, ...]


def view_stored_report(report: StoredReport) -> dict[str, Any]:
    """Give what the templates of a report need."""
    return view_report(read_document(report))


def read_document(report: StoredReport) -> Any:
    """Give the JSON of a report that is kept."""
    return {**json.loads(report.document), "score": points(report.tenths)}


def view_report(document: JsonObject) -> dict[str, Any]:
    """Give what the templates of a report need.

    ``lost`` is what all deductions come to, in points; it may be more than there were.
    """
    shown: Any = document
    lost = sum(round(one["points"] * 10) for one in shown["deductions"])
    level = level_of(shown["score"], is_content_only=shown.get("contentOnly", False))
    return {
        "doc": shown,
        "level": level,
        "is_content_only": level == "unknown",
        "verdict": summarize_report(shown, level),
        "best": BEST,
        "lost": points(lost),
        "rules": RULES,
        "matrix": make_matrix(shown["report"]["checklists"]),
    }


def level_of(score: float, *, is_content_only: bool) -> str:
    """Say how a score is to be read; it predicts nothing where only the content was judged."""
    return "unknown" if is_content_only else score_level(score, BEST)


def summarize_report(shown: Any, level: str) -> Verdict:
    """Say what a report comes to, and where to begin."""
    issues = shown["deductions"]
    if level == "unknown":
        ending = "Whether the mail arrives can't be said: it came from no address that others see."
    elif not issues:
        # Nothing is to be fixed only where no check has found anything that could be.
        left = sum(one["severity"] in ("error", "warning") for one in shown["findings"])
        rest = f"but {left} {'thing' if left == 1 else 'things'} could be better: open the checks"
        rest = f", {rest}" if left else ": there is nothing to fix"
        ending = f"No check takes points off{rest}."
    else:
        ending = f"{len(issues)} {'issue takes' if len(issues) == 1 else 'issues take'} points off."
        first = issues[0]
        after = first.get("scoreAfter", 0)
        if after > shown["score"]:
            ending += f" The first fix was tried: it brings the score to {after}."
        else:
            ending += f" The first one takes {first['points']}."
    return Verdict(VERDICTS[level], ending)


def make_matrix(checklists: Sequence[Any]) -> Matrix:
    """Put the rules of all receivers into one table: rules of the same kind share a row.

    The id of a rule is that of its receiver, a dot, and what the rule asks for.
    """
    columns = []
    by_kind: dict[str, list[Any]] = {}
    for place, checklist in enumerate(checklists):
        name, _, audience = checklist["name"].rpartition(", ")
        broken = sum(rule["result"] == "not-met" for rule in checklist["rules"])
        short = (name or audience).partition(" (")[0]
        source = checklist["source"]
        columns.append(ReceiverColumn(short, audience if name else "", source, broken))
        for rule in checklist["rules"]:
            kind = rule["id"].partition(".")[2]
            by_kind.setdefault(kind, [None] * len(checklists))[place] = rule
    rows = [_row(rules, columns) for rules in by_kind.values()]
    order = tuple(RULES)
    rows.sort(key=lambda row: min(order.index(cell) for cell in row.cells if cell))
    return Matrix(tuple(columns), tuple(rows))


def _row(rules: Sequence[Any], columns: Sequence[ReceiverColumn]) -> RuleRow:
    text = next(rule["text"] for rule in rules if rule)
    others = tuple(
        (column.name, rule["text"])
        for column, rule in zip(columns, rules, strict=True)
        if rule and rule["text"] != text
    )
    return RuleRow(text, others, tuple(rule and rule["result"] for rule in rules))


def suggested_records(document: JsonObject) -> list[dict[str, str]]:
    """List the records that a report says to publish: one for a name and type, the gravest's."""
    shown: Any = document
    found: dict[tuple[str, str], dict[str, str]] = {}
    for one in shown["findings"]:
        record = one.get("record")
        if record is not None:
            found.setdefault((record["name"], record["type"]), record)
    return list(found.values())
