"""The rules of large receivers for a mail."""

import tomllib
from collections.abc import Callable, Mapping, Set
from enum import Enum
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from msgspec import Struct

from mailcheck.checks.quality.facts import MailFacts
from mailcheck.checks.quality.hosts import is_freemail, is_gmail
from mailcheck.checks.quality.unsubscribe import (
    OneClick,
    find_one_click,
    is_bulk_looking,
)

MIN_KEY_BITS = 1024
"""Minimum number of bits of an RSA key that Google requires (and RFC 8301 3.2)."""


class RuleResult(Enum):
    """Whether a mail meets a rule."""

    MET = "met"
    NOT_MET = "not-met"
    NOT_APPLICABLE = "not-applicable"
    UNDETERMINED = "undetermined"
    """Could not be determined, or cannot be determined from a single mail; never "not met"."""


class Evidence(Struct, frozen=True):
    """Evidence about a mail; `None` means that a value could not be determined.

    ``spf_passes`` is about MAIL FROM. ``any_aligned`` is whether a passing SPF or DKIM identifier
    is aligned with the author domain. ``key_bits`` is the size of the shortest RSA key among the
    valid signatures, or `None` if there is none or all keys are Ed25519. ``tls_used`` is `None`
    if TLS was not offered. ``claims_gmail`` and ``claims_freemail`` are about the author domain,
    ``can_receive_replies`` is about its MX.
    """

    spf_passes: bool | None = None
    dkim_passes: bool | None = None
    any_aligned: bool | None = None
    has_dmarc_record: bool | None = None
    is_ptr_confirmed: bool | None = None
    tls_used: bool | None = None
    key_bits: int | None = None
    is_format_valid: bool | None = None
    claims_gmail: bool = False
    claims_freemail: bool = False
    can_receive_replies: bool | None = None
    is_bulk_looking: bool = False
    has_one_click: bool | None = None
    has_unsubscribe_link: bool = False
    has_list_unsubscribe: bool = False


class RuleOutcome(Struct, frozen=True):
    """One rule of a receiver with its result; ``id`` is stable, like ``google.tls``."""

    id: str
    text: str
    source: str
    result: RuleResult


class Checklist(Struct, frozen=True):
    """All rules of one receiver, in its order."""

    id: str
    name: str
    source: str
    rules: tuple[RuleOutcome, ...]

    @property
    def is_met(self) -> bool:
        """Whether no rule is known to be broken."""
        return all(rule.result is not RuleResult.NOT_MET for rule in self.rules)


def judge_by_receivers(evidence: Evidence) -> tuple[Checklist, ...]:
    """Check the rules of every receiver, in the order of the table."""
    return tuple(
        Checklist(
            receiver.id,
            receiver.name,
            receiver.source,
            tuple(
                RuleOutcome(rule.id, rule.text, receiver.source, QUESTIONS[rule.question](evidence))
                for rule in receiver.rules
            ),
        )
        for receiver in load_receivers()
    )


class Rule(Struct, frozen=True):
    """A rule of the table."""

    id: str
    question: str
    text: str


class Receiver(Struct, frozen=True):
    """A receiver of the table."""

    id: str
    name: str
    source: str
    rules: tuple[Rule, ...]


@cache
def load_receivers() -> tuple[Receiver, ...]:
    """Load the table that ships with the package."""
    text = files(__package__).joinpath("receivers.toml").read_text("utf-8")
    return tuple(
        Receiver(
            row["id"], row["name"], row["source"], tuple(Rule(**rule) for rule in row["rules"])
        )
        for row in tomllib.loads(text)["receivers"]
    )


def _result(claim: bool | None) -> RuleResult:
    if claim is None:
        return RuleResult.UNDETERMINED
    return RuleResult.MET if claim else RuleResult.NOT_MET


def _spf_or_dkim_passes(evidence: Evidence) -> RuleResult:
    if evidence.spf_passes or evidence.dkim_passes:
        return RuleResult.MET
    # If one of them failed and the other is unknown, the unknown one may pass.
    is_unknown = evidence.spf_passes is None or evidence.dkim_passes is None
    return RuleResult.UNDETERMINED if is_unknown else RuleResult.NOT_MET


def _key_is_long_enough(evidence: Evidence) -> RuleResult:
    if evidence.key_bits is not None:
        return _result(evidence.key_bits >= MIN_KEY_BITS)
    is_unknown = evidence.dkim_passes is None
    return RuleResult.UNDETERMINED if is_unknown else RuleResult.NOT_APPLICABLE


def _gmail_is_genuine(evidence: Evidence) -> RuleResult:
    return _result(evidence.any_aligned) if evidence.claims_gmail else RuleResult.NOT_APPLICABLE


def _freemail_is_genuine(evidence: Evidence) -> RuleResult:
    return _result(evidence.any_aligned) if evidence.claims_freemail else RuleResult.NOT_APPLICABLE


def _one_click_works(evidence: Evidence) -> RuleResult:
    return (
        _result(evidence.has_one_click) if evidence.is_bulk_looking else RuleResult.NOT_APPLICABLE
    )


def _link_is_visible(evidence: Evidence) -> RuleResult:
    if not evidence.is_bulk_looking:
        return RuleResult.NOT_APPLICABLE
    return _result(evidence.has_unsubscribe_link)


def _can_be_unsubscribed(evidence: Evidence) -> RuleResult:
    if not evidence.is_bulk_looking:
        return RuleResult.NOT_APPLICABLE
    return _result(evidence.has_unsubscribe_link or evidence.has_list_unsubscribe)


QUESTIONS: Mapping[str, Callable[[Evidence], RuleResult]] = MappingProxyType(
    {
        "spf passes": lambda evidence: _result(evidence.spf_passes),
        "dkim passes": lambda evidence: _result(evidence.dkim_passes),
        "spf or dkim passes": _spf_or_dkim_passes,
        "spf or dkim is aligned": lambda evidence: _result(evidence.any_aligned),
        "dmarc record is present": lambda evidence: _result(evidence.has_dmarc_record),
        "reverse dns is confirmed": lambda evidence: _result(evidence.is_ptr_confirmed),
        "tls was used": lambda evidence: _result(evidence.tls_used),
        "key has 1024 bits": _key_is_long_enough,
        "format is valid": lambda evidence: _result(evidence.is_format_valid),
        "gmail address is genuine": _gmail_is_genuine,
        "freemail address is genuine": _freemail_is_genuine,
        "author can receive replies": lambda evidence: _result(evidence.can_receive_replies),
        "one-click works": _one_click_works,
        "unsubscribe link is visible": _link_is_visible,
        "some way to unsubscribe": _can_be_unsubscribed,
        "cannot be determined": lambda evidence: RuleResult.UNDETERMINED,
    }
)
"""The questions in the table and the functions that answer them."""


def is_rfc5322_format(facts: MailFacts) -> bool:
    """Return whether a mail meets RFC 5322 3.6.

    It has one From field with a mailbox, a readable Date, no repeated field that must be single,
    and no line over 998 octets.
    """
    has_author = facts.author_fields == 1 and bool(facts.author_domains)
    has_date = facts.date is not None and facts.date.instant is not None
    return has_author and has_date and not facts.repeated_fields and not facts.long_lines


def evidence_from_mail(facts: MailFacts, signed_fields: Set[str] | None) -> Evidence:
    """Return the evidence from the mail itself; the caller adds the results of the checks.

    :param signed_fields: as for `find_one_click`.
    """
    one_click = find_one_click(facts, signed_fields)
    return Evidence(
        is_format_valid=is_rfc5322_format(facts),
        claims_gmail=any(map(is_gmail, facts.author_domains)),
        claims_freemail=any(map(is_freemail, facts.author_domains)),
        is_bulk_looking=is_bulk_looking(facts),
        has_one_click=None if one_click is OneClick.UNDETERMINED else one_click is OneClick.WORKS,
        has_unsubscribe_link=facts.unsubscribe.body_links > 0,
        has_list_unsubscribe=bool(facts.unsubscribe.uris),
    )
