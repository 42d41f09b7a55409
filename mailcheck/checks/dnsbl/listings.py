"""Listings of a target: the query, the meaning of the answer, and the findings.

A timeout does not mean "not listed", and a refusal does not mean "listed". If a resolver answers
every query, its answers are not listings.
"""

from collections.abc import Collection, Iterable, Sequence
from enum import Enum
from ipaddress import IPv4Address

from dns.rdtypes.IN.A import A
from msgspec import Struct

from mailcheck.checks.dns_answers import Answers, DnsAnswer, look_up, txt_values
from mailcheck.checks.dnsbl.catalogue import Blocklist, CodeClass, CodeRule, TargetKind, match_rules
from mailcheck.checks.findings import Finding, Severity
from mailcheck.checks.findings_table import make_finding
from mailcheck.core.network_addresses import IpAddress

BLOCKING_WEIGHT = 8
"""Weight from which a single listing stops delivery at large receivers."""


class ListingStatus(Enum):
    """The result for one list."""

    LISTED = "listed"
    CLEAN = "clean"
    UNKNOWN = "unknown"
    UNSUPPORTED = "unsupported"
    """The list does not support this kind of target."""
    DISABLED = "disabled"
    """The operator has disabled the list."""


class UnknownReason(Enum):
    """Why it is unknown whether a list has a target."""

    NO_ANSWER = "no-answer"
    """Timeout, SERVFAIL or REFUSED."""
    REFUSED_BY_LIST = "refused-by-list"
    """The list refuses queries of this resolver."""
    REWRITTEN = "rewritten"
    """The answer is not from a blocklist: the resolver rewrites it, or the zone has expired."""
    STRANGE_CODE = "strange-code"
    """A return code that the list does not document."""
    FAILED_SELF_TEST = "sick"
    """The list fails its self-test."""
    OVER_BUDGET = "over-budget"
    """The daily number of queries that the operator of the list allows is used up."""
    NO_TARGET = "no-target"
    """The addresses of the domain could not be determined."""
    NOT_PUBLIC = "not-public"
    """The mail came from an address of a private network, which no list can have."""


class Listing(Struct, frozen=True):
    """The result of one list in a check.

    ``codes`` are the return codes, and ``matched`` the listed targets. ``weight`` and ``meaning``
    belong to the worst code, and ``reason`` is the list's own text. ``is_shared`` is true if
    only shared addresses are listed. ``seconds`` is the time of its slowest answer.
    """

    blocklist: Blocklist
    status: ListingStatus
    codes: tuple[str, ...] = ()
    matched: tuple[str, ...] = ()
    weight: int = 0
    meaning: str = ""
    reason: str = ""
    is_policy: bool = False
    is_shared: bool = False
    unknown_reason: UnknownReason | None = None
    seconds: float = 0.0

    @property
    def is_listed(self) -> bool:
        """Whether the list has a target."""
        return self.status is ListingStatus.LISTED

    @property
    def is_known(self) -> bool:
        """Whether the list gave a usable answer."""
        return self.status in (ListingStatus.LISTED, ListingStatus.CLEAN)


def unknown_listing(blocklist: Blocklist, reason: UnknownReason) -> Listing:
    """Return the result of a list that could not be queried or gave no usable answer."""
    return Listing(blocklist, ListingStatus.UNKNOWN, unknown_reason=reason)


def count(listings: Sequence[Listing], status: ListingStatus) -> int:
    """Count the results with a status."""
    return sum(listing.status is status for listing in listings)


def has_usable_answer(listings: Sequence[Listing]) -> bool:
    """Return whether any list gave a usable answer."""
    return any(row.is_known for row in listings)


def are_listings_known(listings: Sequence[Listing]) -> bool:
    """Return whether the lists that answered have at least half of the total weight."""
    known = [row for row in listings if row.is_known]
    asked = [*known, *(row for row in listings if row.status is ListingStatus.UNKNOWN)]
    weight = sum(row.blocklist.weight for row in known)
    return bool(known) and 2 * weight >= sum(row.blocklist.weight for row in asked)


class Target(Struct, frozen=True):
    """One address or name; ``label`` is the part of the query name before the zone.

    ``is_shared`` marks an address that a mail provider shares among its customers. Its listing
    says little about one of them.
    """

    value: str
    kind: TargetKind
    label: str
    is_shared: bool = False


def target_address(address: IpAddress, *, is_shared: bool = False) -> Target:
    """Return the target for an address: its octets or, for IPv6, its nibbles in reverse."""
    if isinstance(address, IPv4Address):
        reverse = ".".join(reversed(str(address).split(".")))
        return Target(str(address), TargetKind.IPV4, reverse, is_shared)
    reverse = ".".join(reversed(f"{int(address):032x}"))
    return Target(str(address), TargetKind.IPV6, reverse, is_shared)


def target_domain(domain: str) -> Target:
    """Return the target for a domain name."""
    return Target(domain, TargetKind.DOMAIN, domain)


def query_name(blocklist: Blocklist, target: Target) -> str:
    """Return the name to query; the list must support the kind of target."""
    return f"{target.label}.{blocklist.query_zones[target.kind]}"


MAX_SHOWN_CODES = 8


class InterpretedAnswer(Struct, frozen=True):
    """The meaning of one answer; ``rules`` are the matching rules for listings."""

    status: ListingStatus
    codes: tuple[str, ...] = ()
    rules: tuple[CodeRule, ...] = ()
    unknown_reason: UnknownReason | None = None


CLEAN = InterpretedAnswer(ListingStatus.CLEAN)
NO_ANSWER = InterpretedAnswer(ListingStatus.UNKNOWN, unknown_reason=UnknownReason.NO_ANSWER)

_REFUSALS = range(0x7FFFFF00, 0x80000000)  # 127.255.255.0/24: Spamhaus, copied by other lists
_LOOPBACK = range(127 << 24, 128 << 24)
_NEVER_A_LISTING = 0x7F000001  # 127.0.0.1, RFC 5782 5


def interpret_answer(blocklist: Blocklist, answer: DnsAnswer) -> InterpretedAnswer:
    """Interpret an answer to an A query by the return codes of the list."""
    if not answer.records:
        return CLEAN if answer.status.is_determined else NO_ANSWER
    codes = tuple(sorted(r.address for r in answer.records if isinstance(r, A)))
    readings = [_read_code(blocklist, _number(code)) for code in codes]
    shown = codes[:MAX_SHOWN_CODES]
    for reason in (UnknownReason.REWRITTEN, UnknownReason.REFUSED_BY_LIST):
        if reason in readings:
            return InterpretedAnswer(ListingStatus.UNKNOWN, shown, unknown_reason=reason)
    rules = [rule for reading in readings if isinstance(reading, list) for rule in reading]
    listings = tuple(rule for rule in rules if rule.code_class is not CodeClass.IGNORED)
    if listings:
        return InterpretedAnswer(ListingStatus.LISTED, shown, listings)
    if UnknownReason.STRANGE_CODE in readings or not codes:
        reason = UnknownReason.STRANGE_CODE
        return InterpretedAnswer(ListingStatus.UNKNOWN, shown, unknown_reason=reason)
    return InterpretedAnswer(ListingStatus.CLEAN, shown)


def _read_code(blocklist: Blocklist, number: int) -> list[CodeRule] | UnknownReason:
    if number not in _LOOPBACK:
        return UnknownReason.REWRITTEN
    rules = match_rules(blocklist.rules, number)
    if number in _REFUSALS or (rules and rules[0].code_class is CodeClass.REFUSED):
        return UnknownReason.REFUSED_BY_LIST
    if number == _NEVER_A_LISTING:
        # Unless the list documents this code, the answer is not from the list.
        is_ignored = bool(rules) and rules[0].code_class is CodeClass.IGNORED
        return rules if is_ignored else UnknownReason.REFUSED_BY_LIST
    return rules or UnknownReason.STRANGE_CODE


def _number(code: str) -> int:
    first, second, third, fourth = map(int, code.split("."))
    return first << 24 | second << 16 | third << 8 | fourth


MAX_REASON = 300  # maximum length of the list's own text, in characters


def evaluate_listing(
    blocklist: Blocklist,
    targets: Sequence[Target],
    answers: Answers,
    *,
    unhealthy_kinds: Collection[TargetKind] = (),
) -> Listing:
    """Query one list about the targets that it supports.

    The list's own text is queried only if a target is listed.

    :param unhealthy_kinds: kinds for which the list fails its self-test. They are not queried,
        and the result is unknown.
    """
    if not blocklist.is_enabled:
        return Listing(blocklist, ListingStatus.DISABLED)
    known = [target for target in targets if blocklist.supports(target.kind)]
    if not known:
        return Listing(blocklist, ListingStatus.UNSUPPORTED)
    healthy = [target for target in known if target.kind not in unhealthy_kinds]
    readings = [
        (target, interpret_answer(blocklist, look_up(answers, query_name(blocklist, target), "A")))
        for target in healthy
    ]
    listed = [pair for pair in readings if pair[1].status is ListingStatus.LISTED]
    if listed:
        return _listed_on(blocklist, listed, answers)
    if len(healthy) < len(known):
        return unknown_listing(blocklist, UnknownReason.FAILED_SELF_TEST)
    for _, reading in readings:
        if reading.unknown_reason is not None:
            return Listing(
                blocklist,
                ListingStatus.UNKNOWN,
                codes=reading.codes,
                unknown_reason=reading.unknown_reason,
            )
    return Listing(blocklist, ListingStatus.CLEAN, codes=_codes(r for _, r in readings))


def _listed_on(
    blocklist: Blocklist, listed: Sequence[tuple[Target, InterpretedAnswer]], answers: Answers
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


def _codes(readings: Iterable[InterpretedAnswer]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(code for reading in readings for code in reading.codes))


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text[:MAX_REASON]).strip()


MAX_LISTED = 5  # maximum number of lists in one sentence


_UNKNOWN_IDS = {
    UnknownReason.REFUSED_BY_LIST: "dnsbl.refused",
    UnknownReason.REWRITTEN: "dnsbl.rewritten",
    UnknownReason.NO_ANSWER: "dnsbl.no-answer",
    UnknownReason.FAILED_SELF_TEST: "dnsbl.sick",
    UnknownReason.OVER_BUDGET: "dnsbl.over-budget",
    UnknownReason.STRANGE_CODE: "dnsbl.strange-code",
    UnknownReason.NO_TARGET: "dnsbl.no-target",
}


def describe_listings(listings: Sequence[Listing]) -> tuple[Finding, ...]:
    """Return a finding for each listing, worst first, and findings for unknown results."""
    listed = sorted(
        (row for row in listings if row.is_listed), key=lambda row: row.weight, reverse=True
    )
    unknown = {finding_id: _names(listings, reason) for reason, finding_id in _UNKNOWN_IDS.items()}
    return (
        *map(_describe_listing, listed),
        *(make_finding(finding_id, names=names) for finding_id, names in unknown.items() if names),
    )


def _describe_listing(row: Listing) -> Finding:
    severity = Severity.NOTE
    if row.weight >= BLOCKING_WEIGHT and not row.is_shared:
        severity = Severity.ERROR
    elif row.weight > 0:
        severity = Severity.WARNING
    case = "blocking"
    if row.weight == 0:
        case = "unused"
    elif row.is_shared:
        case = "shared"
    elif row.weight < BLOCKING_WEIGHT:
        case = "weighed"
    return make_finding(
        "dnsbl.listed",
        case=case,
        advice="delist" if row.blocklist.delist_url else "expires",
        severity=severity,
        name=row.blocklist.name,
        matched=", ".join(row.matched),
        what=f" as: {row.meaning}" if row.meaning else "",
        url=row.blocklist.delist_url,
    )


def _names(listings: Sequence[Listing], reason: UnknownReason) -> str:
    names = [
        row.blocklist.name
        for row in listings
        if row.status is ListingStatus.UNKNOWN and row.unknown_reason is reason
    ]
    if len(names) > MAX_LISTED:
        names = [*names[:MAX_LISTED], f"{len(names) - MAX_LISTED} more lists"]
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else "".join(names)
