"""The rules of large receivers for a mail."""

import tomllib
from collections.abc import Callable, Mapping, Set
from enum import Enum
from functools import cache
from importlib.resources import files
from types import MappingProxyType

import msgspec
from msgspec import Struct

from mailcheck.checks.quality.facts import MailFacts
from mailcheck.checks.quality.hosts import is_freemail, is_gmail
from mailcheck.checks.quality.unsubscribe import (
    OneClick,
    find_one_click,
    is_bulk_looking,
)

CANNOT_BE_DETERMINED = "cannot be determined"
"""The question of rules that one mail cannot show, such as a spam rate."""

MIN_KEY_BITS = 1024
"""Minimum number of bits of an RSA key that Google requires (and RFC 8301 3.2)."""


class RuleResult(Enum):
    """Whether a mail meets a rule."""

    MET = "met"
    NOT_MET = "not-met"
    NOT_APPLICABLE = "not-applicable"
    UNDETERMINED = "undetermined"
    """Could not be determined, or cannot be determined from a single mail; never "not met"."""


class FormatProblem(Enum):
    """A way in which a mail does not follow RFC 5322."""

    NO_AUTHOR = "no From field with a mailbox"
    SEVERAL_FROM_FIELDS = "several From fields"
    SEVERAL_AUTHORS = "several mailboxes in From"
    NO_SENDER = "several mailboxes in From and no Sender field"
    NO_DATE = "no readable Date field"
    REPEATED_FIELDS = "repeated fields that must be single"
    LONG_LINES = "lines over 998 octets"
    NO_MESSAGE_ID = "no valid Message-ID"
    RAW_HEADER = "octets over 127 in the header without SMTPUTF8"


INVALID_FORMAT = frozenset(
    {
        FormatProblem.NO_AUTHOR,
        FormatProblem.SEVERAL_FROM_FIELDS,
        FormatProblem.NO_DATE,
        FormatProblem.REPEATED_FIELDS,
        FormatProblem.LONG_LINES,
    }
)
"""The problems that break the format of RFC 5322 3.6 for large receivers."""


class Evidence(Struct, frozen=True):
    """Evidence about a mail; `None` means that a value could not be determined.

    ``spf_passes`` is about MAIL FROM. ``any_aligned`` is whether a passing SPF or DKIM identifier
    is aligned with the author domain. ``key_bits`` is the size of the shortest RSA key among the
    valid signatures, or `None` if there is none or all keys are Ed25519. ``tls_used`` is `None`
    if TLS was not offered. ``claims_gmail`` and ``claims_freemail`` are about the author domain,
    ``can_receive_replies`` is about its MX.

    ``fails_reject`` and ``fails_quarantine`` are whether DMARC fails with that policy.
    ``spf_allows_none`` is whether the record of MAIL FROM allows no address at all. ``is_listed``
    is whether Spamhaus lists the address for abuse, ``is_dynamic`` whether it lists the address as
    one that must not send mail directly. ``sender_exists`` and ``sender_receives_mail`` are about
    the domain of MAIL FROM, if ``has_sender``; ``author_exists`` is about the author domain, if
    there is a single one. ``address_problem`` says why the client's address cannot be checked, and
    is empty if it can.
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
    format_problems: frozenset[FormatProblem] = frozenset()
    fails_reject: bool | None = None
    fails_quarantine: bool | None = None
    spf_fails: bool | None = None
    has_spf_error: bool | None = None
    spf_allows_none: bool | None = None
    is_listed: bool | None = None
    is_dynamic: bool | None = None
    has_sender: bool = True
    sender_exists: bool | None = None
    sender_receives_mail: bool | None = None
    author_exists: bool | None = None
    client_ip: str = ""
    author_domain: str = ""
    address_problem: str = ""


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
    return msgspec.convert(tomllib.loads(text)["receivers"], tuple[Receiver, ...])


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


def _result_if(applies: bool, claim: bool | None) -> RuleResult:
    return _result(claim) if applies else RuleResult.NOT_APPLICABLE


def _negated(claim: bool | None) -> RuleResult:
    return _result(None if claim is None else not claim)


def _has_no(problem: FormatProblem) -> Callable[[Evidence], RuleResult]:
    return lambda evidence: _result(problem not in evidence.format_problems)


def _is_not_on_spamhaus(evidence: Evidence) -> RuleResult:
    if evidence.is_listed or evidence.is_dynamic:
        return RuleResult.NOT_MET
    is_unknown = evidence.is_listed is None or evidence.is_dynamic is None
    return RuleResult.UNDETERMINED if is_unknown else RuleResult.MET


def _can_be_unsubscribed(evidence: Evidence) -> RuleResult:
    has_way = evidence.has_unsubscribe_link or evidence.has_list_unsubscribe
    return _result_if(evidence.is_bulk_looking, has_way)


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
        "gmail address is genuine": lambda evidence: _result_if(
            evidence.claims_gmail, evidence.any_aligned
        ),
        "freemail address is genuine": lambda evidence: _result_if(
            evidence.claims_freemail, evidence.any_aligned
        ),
        "author can receive replies": lambda evidence: _result(evidence.can_receive_replies),
        "one-click works": lambda evidence: _result_if(
            evidence.is_bulk_looking, evidence.has_one_click
        ),
        "unsubscribe link is visible": lambda evidence: _result_if(
            evidence.is_bulk_looking, evidence.has_unsubscribe_link
        ),
        "some way to unsubscribe": _can_be_unsubscribed,
        "one from field": _has_no(FormatProblem.SEVERAL_FROM_FIELDS),
        "author is present": _has_no(FormatProblem.NO_AUTHOR),
        "one author": _has_no(FormatProblem.SEVERAL_AUTHORS),
        "several authors have a sender": _has_no(FormatProblem.NO_SENDER),
        "date is valid": _has_no(FormatProblem.NO_DATE),
        "no repeated fields": _has_no(FormatProblem.REPEATED_FIELDS),
        "lines are short": _has_no(FormatProblem.LONG_LINES),
        "message-id is valid": _has_no(FormatProblem.NO_MESSAGE_ID),
        "header is ascii or smtputf8": _has_no(FormatProblem.RAW_HEADER),
        "dmarc does not request rejection": lambda evidence: _negated(evidence.fails_reject),
        "dmarc does not request quarantine": lambda evidence: _negated(evidence.fails_quarantine),
        "spf does not fail": lambda evidence: _negated(evidence.spf_fails),
        "spf record is valid": lambda evidence: _negated(evidence.has_spf_error),
        "sender domain sends mail": lambda evidence: _negated(evidence.spf_allows_none),
        "address is not on spamhaus": _is_not_on_spamhaus,
        "address is not on spamhaus for abuse": lambda evidence: _negated(evidence.is_listed),
        "address is not dynamic": lambda evidence: _negated(evidence.is_dynamic),
        "sender domain exists": lambda evidence: _result_if(
            evidence.has_sender, evidence.sender_exists
        ),
        "sender domain receives mail": lambda evidence: _result_if(
            evidence.has_sender, evidence.sender_receives_mail
        ),
        "author domain exists": lambda evidence: _result_if(
            bool(evidence.author_domain), evidence.author_exists
        ),
        CANNOT_BE_DETERMINED: lambda evidence: RuleResult.UNDETERMINED,
    }
)
"""The questions in the tables of rules and replies, and the functions that answer them."""


def find_format_problems(
    facts: MailFacts, *, is_smtputf8: bool = False
) -> frozenset[FormatProblem]:
    """Return the ways in which a mail does not follow RFC 5322 2.1.1, 2.2 and 3.6.

    :param is_smtputf8: whether the client announced UTF-8 in the header (RFC 6531 3.4).
    """
    has_several_authors = facts.author_fields == 1 and len(facts.authors) > 1
    message_id = facts.message_id
    found = {
        FormatProblem.NO_AUTHOR: not facts.author_domains,
        FormatProblem.SEVERAL_FROM_FIELDS: facts.author_fields > 1,
        FormatProblem.SEVERAL_AUTHORS: has_several_authors,
        FormatProblem.NO_SENDER: has_several_authors and not facts.sender_address,
        FormatProblem.NO_DATE: facts.date is None or facts.date.instant is None,
        FormatProblem.REPEATED_FIELDS: bool(facts.repeated_fields),
        FormatProblem.LONG_LINES: facts.long_lines > 0,
        FormatProblem.NO_MESSAGE_ID: message_id is None or not message_id.is_well_formed,
        FormatProblem.RAW_HEADER: bool(facts.raw_8bit_fields) and not is_smtputf8,
    }
    return frozenset(problem for problem, is_found in found.items() if is_found)


def evidence_from_mail(
    facts: MailFacts, signed_fields: Set[str] | None, *, is_smtputf8: bool = False
) -> Evidence:
    """Return the evidence from the mail itself; the caller adds the results of the checks.

    :param signed_fields: as for `find_one_click`.
    :param is_smtputf8: as for `find_format_problems`.
    """
    one_click = find_one_click(facts, signed_fields)
    problems = find_format_problems(facts, is_smtputf8=is_smtputf8)
    return Evidence(
        is_format_valid=not problems & INVALID_FORMAT,
        format_problems=problems,
        claims_gmail=any(map(is_gmail, facts.author_domains)),
        claims_freemail=any(map(is_freemail, facts.author_domains)),
        is_bulk_looking=is_bulk_looking(facts),
        has_one_click=None if one_click is OneClick.UNDETERMINED else one_click is OneClick.WORKS,
        has_unsubscribe_link=facts.unsubscribe.body_links > 0,
        has_list_unsubscribe=bool(facts.unsubscribe.uris),
    )
