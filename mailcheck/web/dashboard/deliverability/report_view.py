"""A deliverability report, prepared for the templates from its stored JSON."""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from mailcheck.api.deliverability.findings import points
from mailcheck.api.shapes import JsonObject
from mailcheck.checks.quality.receiver_replies import BULK, load_profiles
from mailcheck.core.deliverability_tests import StoredReport
from mailcheck.web.dashboard.domains.view import score_level

BEST = 10
"""Score of a mail without any deduction."""

RULES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "not-met": ("bad", "not met"),
        "met": ("good", "met"),
        "undetermined": ("unknown", "undetermined"),
        "not-applicable": ("", "not applicable"),
    }
)
"""Result of a receiver's rule -> level and label, the most important first."""

ACTIONS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "accept": ("good", "accepted"),
        "spam": ("warn", "spam folder"),
        "unknown": ("unknown", "unknown"),
        "defer": ("warn", "deferred"),
        "reject": ("bad", "rejected"),
    }
)
"""What a receiver does with a mail -> level and label."""

ABOUT_REPUTATION = frozenset(
    rule.id for profile in load_profiles() for rule in profile.rules if rule.is_about_reputation
)
"""The rules that no single mail shows. The page has one sentence for all of them."""

VERDICTS: Mapping[str, str] = MappingProxyType(
    {
        "good": "This mail should arrive",
        "warn": "This mail may be treated as spam",
        "bad": "Many receivers will reject this mail or treat it as spam",
        "unknown": "Only the content was checked",
    }
)


_WORSE: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "reject": ("rejects it", "reject it"),
        "defer": ("defers it", "defer it"),
        "spam": ("puts it in the spam folder", "put it in the spam folder"),
    }
)
"""Actions on a mail that does not arrive, the worst first -> words for one receiver and several."""

EVERY_SENDER = "every sender"
"""The audience of rules that are not for senders of bulk mail only."""


class Verdict(Struct, frozen=True):
    """The summary of a report: the overall result with its level, and what to do first."""

    title: str
    next: str
    level: str


class ReceiverColumn(Struct, frozen=True):
    """A receiver in the table of rules. ``broken`` is the number of its rules not met."""

    name: str
    audience: str
    source: str
    broken: int

    @property
    def is_for_all(self) -> bool:
        """Whether the rules are for every sender, and not for senders of bulk mail only."""
        return self.audience == EVERY_SENDER


class RepliesOfReceiver(Struct, frozen=True):
    """The replies of a receiver to the mail of a small sender, and of a sender of bulk mail."""

    name: str
    small: Any
    bulk: Any

    @property
    def differs(self) -> bool:
        """Whether the bulk sender's mail is handled otherwise."""
        return bool(self.small["action"] != self.bulk["action"])


class RuleRow(Struct, frozen=True):
    """A rule in the table: its text, different wordings by receiver, and the results.

    A cell is `None` if the receiver has no such rule.
    """

    text: str
    others: tuple[tuple[str, str], ...]
    cells: tuple[str | None, ...]

    @property
    def is_broken(self) -> bool:
        """Whether the mail breaks the rule of some receiver."""
        return "not-met" in self.cells


class Matrix(Struct, frozen=True):
    """All rules, the broken ones first, with the result for each receiver."""

    columns: tuple[ReceiverColumn, ...]
    rows: tuple[RuleRow, ...]


def view_stored_report(report: StoredReport) -> dict[str, Any]:
    """Return the template values of a stored report."""
    return view_report(read_document(report))


def read_document(report: StoredReport) -> Any:
    """Return the JSON of a stored report, with its score."""
    return {**json.loads(report.document), "score": points(report.tenths)}


def view_report(document: JsonObject) -> dict[str, Any]:
    """Return the template values of a report.

    ``lost`` is the sum of all deductions in points. It may exceed the maximum score.
    """
    shown: Any = document
    lost = sum(round(deduction["points"] * 10) for deduction in shown["deductions"])
    level = level_of(shown["score"], is_content_only=shown.get("contentOnly", False))
    matrix = make_matrix(shown["report"]["checklists"])
    replies = pair_replies(shown["report"].get("replies", ()))
    return {
        "doc": shown,
        "issues": list_issues(shown),
        "level": level,
        "is_content_only": level == "unknown",
        "verdict": summarize_report(shown, level, matrix.columns, replies),
        "best": BEST,
        "lost": points(lost),
        "rules": RULES,
        "actions": ACTIONS,
        "replies": replies,
        "unseen": ABOUT_REPUTATION,
        "matrix": matrix,
    }


def list_issues(shown: Any) -> list[Any]:
    """Return the deductions of a report, and then its problems that take no points off."""
    charged = {deduction["id"] for deduction in shown["deductions"]}
    free = [
        finding
        for finding in shown["findings"]
        if finding["severity"] in ("error", "warning") and finding["id"] not in charged
    ]
    return [*shown["deductions"], *free]


def level_of(score: float, *, is_content_only: bool) -> str:
    """Return the level of a score. It is unknown if only the content was checked."""
    return "unknown" if is_content_only else score_level(score, BEST)


def summarize_report(
    shown: Any,
    level: str,
    receivers: Sequence[ReceiverColumn],
    replies: Sequence[RepliesOfReceiver] = (),
) -> Verdict:
    """Summarize a report, and name the first fix.

    A good score is no promise while a receiver's rules are not met, or while it treats the mail of
    a bulk sender otherwise, so the title names it.
    """
    issues = shown["deductions"]
    if level == "unknown":
        ending = "Delivery cannot be predicted: the mail came from a private address."
    elif not issues:
        # Findings may need a fix without taking points off.
        left = sum(finding["severity"] in ("error", "warning") for finding in shown["findings"])
        noun = "issue" if left == 1 else "issues"
        rest = f"{left} {noun} without a deduction" if left else "Nothing to fix"
        ending = f"No check takes points off. {rest}."
    else:
        ending = f"{len(issues)} {'issue takes' if len(issues) == 1 else 'issues take'} points off."
        first = issues[0]
        after = first.get("scoreAfter", 0)
        if after > shown["score"]:
            ending += f" The first fix was verified: it raises the score to {after}."
        else:
            points_lost = first["points"]
            noun = "point" if points_lost == 1 else "points"
            ending += f" The first one takes {points_lost} {noun}."
    broken = [receiver for receiver in receivers if receiver.broken]
    of_bulk = "" if level == "unknown" else describe_bulk(replies)
    if of_bulk:
        joint = ", but" if level == "good" else "."
        return Verdict(
            f"{VERDICTS[level]}{joint} {of_bulk}", ending, "warn" if level == "good" else level
        )
    if level != "good" or not broken:
        return Verdict(VERDICTS[level], ending, level)
    strict = [column for column in broken if column.is_for_all] or broken
    names = _join_names(list(dict.fromkeys(column.name for column in strict)))
    kind = "for every sender" if strict[0].is_for_all else "for bulk mail"
    title = f"{VERDICTS[level]}, but does not meet all rules of {names} {kind}"
    return Verdict(title, ending, "warn")


def pair_replies(replies: Sequence[Any]) -> list[RepliesOfReceiver]:
    """Return the replies of each receiver to both kinds of senders."""
    bulk = {reply["receiver"].removesuffix(BULK): reply for reply in replies}
    return [
        RepliesOfReceiver(reply["name"], reply, bulk[reply["receiver"]])
        for reply in replies
        if not reply["receiver"].endswith(BULK)
    ]


def describe_bulk(pairs: Sequence[RepliesOfReceiver]) -> str:
    """Return what receivers do to the mail of a bulk sender only; empty if that is the same.

    ``Gmail and Yahoo reject it from a bulk sender``.
    """
    for action, (one, several) in _WORSE.items():
        names = [
            _short_name(pair.name)
            for pair in pairs
            if pair.bulk["action"] == action and pair.differs
        ]
        if names:
            verb = one if len(names) == 1 else several
            return f"{_join_names(names)} {verb} from a bulk sender"
    return ""


def _short_name(name: str) -> str:
    """Return the first of the services that a receiver's name lists."""
    return name.partition(",")[0].partition(" and ")[0]


def _join_names(names: Sequence[str]) -> str:
    """Return names as a list in a sentence: ``a, b and c``."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def make_matrix(checklists: Sequence[Any]) -> Matrix:
    """Return one table of the rules of all receivers. Rules of the same kind share a row.

    The id of a rule is the receiver's id, a dot, and the kind of the rule.
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
    """Return the suggested records: for each name and type that of the gravest finding."""
    shown: Any = document
    found: dict[tuple[str, str], dict[str, str]] = {}
    for finding in shown["findings"]:
        record = finding.get("record")
        if record is not None:
            found.setdefault((record["name"], record["type"]), record)
    return list(found.values())
