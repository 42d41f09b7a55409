"""Reading the answer of a list: the part that most tools get wrong.

A time-out is not "clean", a refusal is not "listed", and a resolver that
answers everything lists nobody.
"""

from dataclasses import dataclass

from dns.rdtypes.IN.A import A

from mailcheck.checks.dns_answers import DnsAnswer
from mailcheck.checks.dnsbl.catalogue import Blocklist, CodeClass, CodeRule
from mailcheck.checks.dnsbl.code_rules import match_rules
from mailcheck.checks.dnsbl.listings import ListingStatus, UnknownReason

MAX_SHOWN_CODES = 8


@dataclass(frozen=True, slots=True)
class Reading:
    """What one answer means; ``rules`` are the listing rules that it fits."""

    status: ListingStatus
    codes: tuple[str, ...] = ()
    rules: tuple[CodeRule, ...] = ()
    unknown_reason: UnknownReason | None = None


CLEAN = Reading(ListingStatus.CLEAN)
NO_ANSWER = Reading(ListingStatus.UNKNOWN, unknown_reason=UnknownReason.NO_ANSWER)

_REFUSALS = range(0x7FFFFF00, 0x80000000)  # 127.255.255.0/24: Spamhaus and those who copy it
_LOOPBACK = range(127 << 24, 128 << 24)
_NEVER_A_LISTING = 0x7F000001  # 127.0.0.1, RFC 5782 5


def read_answer(blocklist: Blocklist, answer: DnsAnswer) -> Reading:
    """Say what an answer to an A question means, by the list's own codes."""
    if not answer.records:
        return CLEAN if answer.status.is_determined else NO_ANSWER
    codes = tuple(sorted(r.address for r in answer.records if isinstance(r, A)))
    readings = [_read_code(blocklist, _number(code)) for code in codes]
    shown = codes[:MAX_SHOWN_CODES]
    for reason in (
        UnknownReason.REWRITTEN,
        UnknownReason.REFUSED_BY_LIST,
    ):
        if reason in readings:
            return Reading(ListingStatus.UNKNOWN, shown, unknown_reason=reason)
    rules = [rule for reading in readings if isinstance(reading, list) for rule in reading]
    listings = tuple(rule for rule in rules if rule.code_class is not CodeClass.IGNORED)
    if listings:
        return Reading(ListingStatus.LISTED, shown, listings)
    if UnknownReason.STRANGE_CODE in readings or not codes:
        reason = UnknownReason.STRANGE_CODE
        return Reading(ListingStatus.UNKNOWN, shown, unknown_reason=reason)
    return Reading(ListingStatus.CLEAN, shown)


def _read_code(blocklist: Blocklist, number: int) -> list[CodeRule] | UnknownReason:
    if number not in _LOOPBACK:
        return UnknownReason.REWRITTEN
    rules = match_rules(blocklist.rules, number)
    if number in _REFUSALS or (rules and rules[0].code_class is CodeClass.REFUSED):
        return UnknownReason.REFUSED_BY_LIST
    if number == _NEVER_A_LISTING:
        # Unless the list says what it means by it, somebody else has answered.
        is_ignored = bool(rules) and rules[0].code_class is CodeClass.IGNORED
        return rules if is_ignored else UnknownReason.REFUSED_BY_LIST
    return rules or UnknownReason.STRANGE_CODE


def _number(code: str) -> int:
    first, second, third, fourth = map(int, code.split("."))
    return first << 24 | second << 16 | third << 8 | fourth
