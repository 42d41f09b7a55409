"""The SMTP replies that receivers give to a mail by their published rules.

The requirements in `receivers` use the same questions, so both tables have the same answers.
"""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from enum import Enum
from functools import cache, partial
from importlib.resources import files
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.checks.quality.receivers import (
    CANNOT_BE_DETERMINED,
    QUESTIONS,
    Evidence,
    RuleResult,
    load_receivers,
)

EVERY_SENDER = "every sender"
"""The audience of a profile without the rules for senders of bulk mail."""

BULK = "-bulk"
"""End of the ids of profiles with the rules for senders of bulk mail."""


class Action(Enum):
    """The handling of a mail by a receiver, the most lenient first."""

    ACCEPT = "accept"
    SPAM = "spam"
    """The mail is accepted and delivered to the spam folder."""
    UNKNOWN = "unknown"
    """No reply is published, or the answer could not be determined."""
    DEFER = "defer"
    """A 4xx reply; the sender tries again."""
    REJECT = "reject"

    @property
    def severity(self) -> int:
        """Position in the order of severity; 0 is the most lenient."""
        return list(Action).index(self)


class Stage(Enum):
    """When a reply comes in the SMTP conversation."""

    CONNECT = "connect"
    MAIL = "mail"
    RCPT = "rcpt"
    DATA = "data"
    """At the end of the message."""


class Reply(Struct, frozen=True):
    """An SMTP reply; ``enhanced`` is empty if the receiver sends no enhanced code (RFC 3463)."""

    code: int
    enhanced: str
    text: str

    def __str__(self) -> str:
        return " ".join(filter(None, (str(self.code), self.enhanced, self.text)))


OK = Reply(250, "2.0.0", "OK")
"""The reply to an accepted mail (RFC 5321 4.2)."""

STANDARD_DEFERRAL = Reply(451, "4.4.3", "Temporary DNS failure")
"""The reply to mail that cannot be checked for now (RFC 7208 8.6)."""


class Source(Struct, frozen=True):
    """The page of a rule, and the date of the version that was read."""

    url: str
    date: date


class ReplyRule(Struct, frozen=True):
    """A rule of the table, whose comment describes the fields."""

    id: str
    question: str
    action: Action
    note: str
    source: Source
    bulk: bool = False
    reply: Reply | None = None
    also: tuple[str, ...] = ()
    later: Reply | None = None
    stage: Stage = Stage.DATA

    @property
    def is_about_reputation(self) -> bool:
        """Whether no single mail shows the answer."""
        return self.question == CANNOT_BE_DETERMINED


class Profile(Struct, frozen=True):
    """A receiver for one kind of sender. ``requirements`` is the id of its checklist, or empty."""

    id: str
    name: str
    audience: str
    requirements: str
    rules: tuple[ReplyRule, ...]


class JudgedRule(Struct, frozen=True):
    """A rule with its result for a mail.

    ``requirement`` is the id of the requirement with the same question, or empty. ``action`` and
    ``reply`` follow from the result, and ``also`` are other published replies.
    """

    rule: ReplyRule
    requirement: str
    result: RuleResult
    action: Action
    reply: Reply | None
    explanation: str
    also: tuple[str, ...] = ()
    is_open: bool = False
    """Whether the rule does not count, because this mail cannot show whether it is met."""


class SimulatedReply(Struct, frozen=True):
    """The reply of a receiver to a mail.

    ``deciding`` is the rule from which it follows, or `None` for an accepted mail. ``rules`` have
    the result "not met" or "undetermined"; the deciding rule is the first.
    """

    profile: Profile
    action: Action
    reply: Reply | None
    deciding: JudgedRule | None
    rules: tuple[JudgedRule, ...]

    @property
    def stage(self) -> Stage | None:
        """When the reply comes, or `None` if there is none."""
        if self.reply is None:
            return None
        return Stage.DATA if self.deciding is None else self.deciding.rule.stage

    @property
    def is_determined(self) -> bool:
        """Whether the action does not depend on an answer that could not be determined."""
        if self.action is Action.UNKNOWN:
            return False
        return self.deciding is None or self.deciding.result is not RuleResult.UNDETERMINED

    @property
    def explanation(self) -> str:
        """Why the receiver replies so, in a sentence or two."""
        if self.deciding is not None:
            return self.deciding.explanation
        return "No published rule that could be checked is broken."


def simulate_replies(evidence: Evidence) -> tuple[SimulatedReply, ...]:
    """Return the reply of every receiver, in the order of the table."""
    return tuple(_simulate(profile, evidence) for profile in load_profiles())


def _simulate(profile: Profile, evidence: Evidence) -> SimulatedReply:
    requirements = _requirements_by_question(profile.requirements)
    judged = [_judge(rule, requirements.get(rule.question, ""), evidence) for rule in profile.rules]
    shown = [
        rule for rule in judged if rule.result in (RuleResult.NOT_MET, RuleResult.UNDETERMINED)
    ]
    shown.sort(key=_order)
    decisive = [rule for rule in shown if rule.action is not Action.ACCEPT and not rule.is_open]
    deciding = decisive[0] if decisive else None
    action = Action.ACCEPT if deciding is None else deciding.action
    is_accepted = action in (Action.ACCEPT, Action.SPAM)
    reply = OK if is_accepted else deciding.reply if deciding is not None else None
    return SimulatedReply(profile, action, reply, deciding, tuple(shown))


def _order(judged: JudgedRule) -> tuple[bool, int, int]:
    """Return the sorting key: the most severe action first, then the earliest reply."""
    rule = judged.rule
    return judged.is_open, -judged.action.severity, list(Stage).index(rule.stage)


def _judge(rule: ReplyRule, requirement: str, evidence: Evidence) -> JudgedRule:
    result = QUESTIONS[rule.question](evidence)
    also = tuple(fill_in(text, evidence) for text in rule.also)
    conclude = partial(JudgedRule, rule, requirement, result, also=also)
    if result is RuleResult.NOT_MET:
        return conclude(rule.action, _fill_in(rule.reply, evidence), rule.note)
    if result is not RuleResult.UNDETERMINED:
        return conclude(Action.ACCEPT, None, "")
    if rule.is_about_reputation:
        return conclude(Action.UNKNOWN, None, rule.note, is_open=True)
    if evidence.address_problem:
        return conclude(Action.UNKNOWN, None, evidence.address_problem)
    if rule.later is None:
        why = "Whether the mail meets this rule could not be determined."
        return conclude(Action.UNKNOWN, None, f"{why} {rule.note}", is_open=True)
    explanation = "DNS gave no usable answer, and receivers defer mail that they cannot check."
    if rule.later == STANDARD_DEFERRAL:
        explanation += " This receiver publishes no reply for that; the code is that of RFC 7208."
    return conclude(Action.DEFER, _fill_in(rule.later, evidence), explanation)


def _fill_in(reply: Reply | None, evidence: Evidence) -> Reply | None:
    """Return a reply with the mail's values."""
    return None if reply is None else replace(reply, text=fill_in(reply.text, evidence))


def fill_in(text: str, evidence: Evidence) -> str:
    """Return a text of the table with the mail's values instead of the names in braces."""
    return text.replace("{author}", evidence.author_domain).replace("{ip}", evidence.client_ip)


@cache
def load_profiles() -> tuple[Profile, ...]:
    """Load the table that ships with the package, each receiver followed by its bulk profile."""
    text = files(__package__).joinpath("receiver_replies.toml").read_text("utf-8")
    table = tomllib.loads(text)
    sources = {name: Source(**row) for name, row in table["sources"].items()}
    return tuple(profile for row in table["receivers"] for profile in _read_profiles(row, sources))


def find_profile(profile_id: str) -> Profile | None:
    """Return the profile with an id, or `None`."""
    return next((profile for profile in load_profiles() if profile.id == profile_id), None)


def _read_profiles(row: Mapping[str, Any], sources: Mapping[str, Source]) -> Sequence[Profile]:
    rules = tuple(_read_rule(rule, sources) for rule in row["rules"])
    for_all = tuple(rule for rule in rules if not rule.bulk)
    name, requirements = row["name"], row.get("requirements", "")
    profile = Profile(row["id"], name, EVERY_SENDER, requirements, for_all)
    if "bulk" not in row:
        return (profile,)
    bulk_id, of_bulk = row["id"] + BULK, row["bulk_requirements"]
    return (profile, Profile(bulk_id, name, row["bulk"], of_bulk, rules))


def _read_rule(row: Mapping[str, Any], sources: Mapping[str, Source]) -> ReplyRule:
    readers: Mapping[str, Callable[[Any], Any]] = {
        "action": Action,
        "stage": Stage,
        "source": sources.__getitem__,
        "reply": read_reply,
        "later": read_reply,
        "also": tuple,
    }
    return ReplyRule(
        **{key: readers[key](value) if key in readers else value for key, value in row.items()}
    )


def read_reply(text: str) -> Reply:
    """Parse a reply of the table: a code, an enhanced code if there is one, and a text."""
    if text == "standard":
        return STANDARD_DEFERRAL
    code, _, rest = text.partition(" ")
    enhanced, _, words = rest.partition(" ")
    if enhanced.count(".") == 2 and enhanced.replace(".", "").isdigit():
        return Reply(int(code), enhanced, words)
    return Reply(int(code), "", rest)


@cache
def _requirements_by_question(checklist_id: str) -> Mapping[str, str]:
    return {
        rule.question: rule.id
        for receiver in load_receivers()
        if receiver.id == checklist_id
        for rule in receiver.rules
    }
