"""Judging one list: is any of the targets on it?"""

from collections.abc import Collection, Iterable, Sequence

from mailcheck.checks.dns_answers import Answers
from mailcheck.checks.dns_records import txt_values
from mailcheck.checks.dnsbl.catalogue import Blocklist, CodeClass, TargetKind
from mailcheck.checks.dnsbl.listings import (
    Listing,
    ListingStatus,
    UnknownReason,
    unknown_listing,
)
from mailcheck.checks.dnsbl.reading import Reading, read_answer
from mailcheck.checks.dnsbl.targets import Target, query_name
from mailcheck.checks.lookups import look_up

MAX_REASON = 300  # characters of a list's own text


def evaluate_listing(
    blocklist: Blocklist,
    targets: Sequence[Target],
    answers: Answers,
    *,
    sick_kinds: Collection[TargetKind] = (),
) -> Listing:
    """Ask one list about those of the targets that it knows.

    The list's own text is asked for only where a target is listed.

    :param sick_kinds: what the list fails its self-test for: not asked, unknown.
    """
    if not blocklist.is_enabled:
        return Listing(blocklist, ListingStatus.DISABLED)
    known = [target for target in targets if blocklist.knows(target.kind)]
    if not known:
        return Listing(blocklist, ListingStatus.UNSUPPORTED)
    healthy = [target for target in known if target.kind not in sick_kinds]
    readings = [
        (target, read_answer(blocklist, look_up(answers, query_name(blocklist, target), "A")))
        for target in healthy
    ]
    listed = [pair for pair in readings if pair[1].status is ListingStatus.LISTED]
    if listed:
        return _listed(blocklist, listed, answers)
    if len(healthy) < len(known):
        return unknown_listing(blocklist, UnknownReason.SICK)
    for _, reading in readings:
        if reading.unknown_reason is not None:
            return Listing(
                blocklist,
                ListingStatus.UNKNOWN,
                codes=reading.codes,
                unknown_reason=reading.unknown_reason,
            )
    return Listing(blocklist, ListingStatus.CLEAN, codes=_codes(r for _, r in readings))


def _listed(
    blocklist: Blocklist, listed: Sequence[tuple[Target, Reading]], answers: Answers
) -> Listing:
    rules = [rule for _, reading in listed for rule in reading.rules]
    gravest = max(rules, key=lambda rule: rule.weight)
    meanings = dict.fromkeys(rule.meaning for rule in rules if rule.meaning)
    texts = [
        text
        for target, _ in listed
        for text in txt_values(look_up(answers, query_name(blocklist, target), "TXT"))
    ]
    return Listing(
        blocklist=blocklist,
        status=ListingStatus.LISTED,
        codes=_codes(reading for _, reading in listed),
        matched=tuple(target.value for target, _ in listed),
        weight=gravest.weight,
        meaning="; ".join(meanings),
        reason=_printable(texts[0]) if texts else "",
        is_policy=all(rule.code_class is CodeClass.POLICY for rule in rules),
        is_shared=all(target.is_shared for target, _ in listed),
    )


def _codes(readings: Iterable[Reading]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(code for reading in readings for code in reading.codes))


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text[:MAX_REASON]).strip()
