"""What the lists say about a target: what is asked, how an answer is read, and what that means.

A time-out is not "clean", a refusal is not "listed", and a resolver that
answers everything lists nobody.
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

STOPS_DELIVERY = 8
"""Weight from which on one listing stops delivery at large receivers."""


class ListingStatus(Enum):
    """The outcome for one list."""

    LISTED = "listed"
    CLEAN = "clean"
    UNKNOWN = "unknown"
    UNSUPPORTED = "unsupported"
    """The list does not know this kind of target."""
    DISABLED = "disabled"
    """The operator has switched the list off."""


class UnknownReason(Enum):
    """Why a list's opinion is not known."""

    NO_ANSWER = "no-answer"
    """Time-out, SERVFAIL or REFUSED."""
    REFUSED_BY_LIST = "refused-by-list"
    """The list answers, but not to this resolver."""
    REWRITTEN = "rewritten"
    """The answer is no answer of a blocklist: a resolver rewrites, or the zone has expired."""
    STRANGE_CODE = "strange-code"
    """An answer that the list does not document."""
    FAILED_SELF_TEST = "sick"
    """The list fails its self-test."""
    OVER_BUDGET = "over-budget"
    """The list has been asked as often today as its operator allows."""
    NO_TARGET = "no-target"
    """It could not be found out which addresses the domain has."""
    NOT_PUBLIC = "not-public"
    """A mail came from an address of a private network, which no list can know."""


class Listing(Struct, frozen=True):
    """One row of a check: a list and what it says.

    ``codes`` are the answers, ``matched`` the targets that are listed,
    ``weight`` that of the worst code, ``meaning`` what the list calls it and
    ``reason`` its own text. ``is_shared`` tells that only shared addresses
    are listed. ``seconds`` is what its slowest answer took.
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
        """Tell whether the list has a target."""
        return self.status is ListingStatus.LISTED


def unknown_listing(blocklist: Blocklist, reason: UnknownReason) -> Listing:
    """Make the row of a list that can't be asked, or was asked in vain."""
    return Listing(blocklist, ListingStatus.UNKNOWN, unknown_reason=reason)


def count(listings: Sequence[Listing], status: ListingStatus) -> int:
    """Count the rows of one status."""
    return sum(listing.status is status for listing in listings)


def has_usable_answer(listings: Sequence[Listing]) -> bool:
    """Tell whether any list told something: the others are silent, sick, refusing or off."""
    return any(row.status in (ListingStatus.LISTED, ListingStatus.CLEAN) for row in listings)


class Target(Struct, frozen=True):
    """One address or name. ``label`` is what stands before the zone in a question.

    ``is_shared`` marks an address of a mail provider that others use too: its
    listing says little about the one who asks.
    """

    value: str
    kind: TargetKind
    label: str
    is_shared: bool = False


def target_address(address: IpAddress, *, is_shared: bool = False) -> Target:
    """Make the target for an address: octets, or for IPv6 nibbles, in reverse."""
    if isinstance(address, IPv4Address):
        reverse = ".".join(reversed(str(address).split(".")))
        return Target(str(address), TargetKind.IPV4, reverse, is_shared)
    reverse = ".".join(reversed(f"{int(address):032x}"))
    return Target(str(address), TargetKind.IPV6, reverse, is_shared)


def target_domain(domain: str) -> Target:
    """Make the target for a domain name."""
    return Target(domain, TargetKind.DOMAIN, domain)


def query_name(blocklist: Blocklist, target: Target) -> str:
    """Give the name to ask for; the list must know the kind of target."""
    return f"{target.label}.{blocklist.query_zones[target.kind]}"


MAX_SHOWN_CODES = 8


class InterpretedAnswer(Struct, frozen=True):
    """What one answer means; ``rules`` are the listing rules that it fits."""

    status: ListingStatus
    codes: tuple[str, ...] = ()
    rules: tuple[CodeRule, ...] = ()
    unknown_reason: UnknownReason | None = None


CLEAN = InterpretedAnswer(ListingStatus.CLEAN)
NO_ANSWER = InterpretedAnswer(ListingStatus.UNKNOWN, unknown_reason=UnknownReason.NO_ANSWER)

_REFUSALS = range(0x7FFFFF00, 0x80000000)  # 127.255.255.0/24: Spamhaus and those who copy it
_LOOPBACK = range(127 << 24, 128 << 24)
_NEVER_A_LISTING = 0x7F000001  # 127.0.0.1, RFC 5782 5


def interpret_answer(blocklist: Blocklist, answer: DnsAnswer) -> InterpretedAnswer:
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
        # Unless the list says what it means by it, somebody else has answered.
        is_ignored = bool(rules) and rules[0].code_class is CodeClass.IGNORED
        return rules if is_ignored else UnknownReason.REFUSED_BY_LIST
    return rules or UnknownReason.STRANGE_CODE


def _number(code: str) -> int:
    first, second, third, fourth = map(int, code.split("."))
    return first << 24 | second << 16 | third << 8 | fourth


MAX_REASON = 300  # characters of a list's own text


def evaluate_listing(
    blocklist: Blocklist,
    targets: Sequence[Target],
    answers: Answers,
    *,
    unhealthy_kinds: Collection[TargetKind] = (),
) -> Listing:
    """Ask one list about those of the targets that it knows.

    The list's own text is asked for only where a target is listed.

    :param unhealthy_kinds: what the list fails its self-test for: not asked, unknown.
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


MAX_NAMED = 5  # lists that are named in one sentence


def describe_listings(listings: Sequence[Listing]) -> tuple[Finding, ...]:
    """Give a finding for each list that has a target, worst first, and for those not known."""
    listed = sorted(
        (row for row in listings if row.is_listed), key=lambda row: row.weight, reverse=True
    )
    findings = [_describe_listing(row) for row in listed]
    refusing = _names(listings, UnknownReason.REFUSED_BY_LIST)
    if refusing:
        findings.append(
            make_finding(
                "dnsbl.refused",
                f"{refusing} refuse to answer the resolver of this service, so what they say is"
                " not known.",
            )
        )
    rewritten = _names(listings, UnknownReason.REWRITTEN)
    if rewritten:
        findings.append(
            make_finding(
                "dnsbl.rewritten",
                f"The answers for {rewritten} are those of no blocklist: the list has expired, or"
                " the resolver of this service rewrites answers.",
            )
        )
    return (*findings, *_other_unknowns(listings))


def _other_unknowns(listings: Sequence[Listing]) -> list[Finding]:
    sentences = {
        UnknownReason.NO_ANSWER: ("dnsbl.no-answer", "did not answer in time"),
        UnknownReason.FAILED_SELF_TEST: (
            "dnsbl.sick",
            "fail their self-test and are not believed until they recover",
        ),
        UnknownReason.OVER_BUDGET: (
            "dnsbl.over-budget",
            "have been asked as often today as their operators allow",
        ),
        UnknownReason.STRANGE_CODE: (
            "dnsbl.strange-code",
            "gave an answer that they do not document",
        ),
        UnknownReason.NO_TARGET: (
            "dnsbl.no-target",
            (
                "could not be asked, for the addresses of the domain's mail servers could not be"
                " found out"
            ),
        ),
    }
    return [
        make_finding(finding_id, f"{names} {sentence}, so what they say is not known.")
        for reason, (finding_id, sentence) in sentences.items()
        if (names := _names(listings, reason))
    ]


def _describe_listing(row: Listing) -> Finding:
    severity = Severity.NOTE
    if row.weight >= STOPS_DELIVERY and not row.is_shared:
        severity = Severity.ERROR
    elif row.weight > 0:
        severity = Severity.WARNING
    what = f" as: {row.meaning}" if row.meaning else ""
    consequence = "Many receivers refuse mail because of it."
    if row.is_shared:
        consequence = "The address belongs to a mail provider and is shared with others."
    elif row.weight < STOPS_DELIVERY:
        consequence = "Some receivers count it against your mail."
    if row.weight == 0:
        consequence = "Hardly any receiver minds."
    return make_finding(
        "dnsbl.listed",
        f"{row.blocklist.name} lists {', '.join(row.matched)}{what}. {consequence}",
        _delisting(row.blocklist),
        severity=severity,
    )


def _delisting(blocklist: Blocklist) -> str:
    fix = "Find and end what caused the listing"
    if blocklist.delist_url:
        return f"{fix}, then ask for removal at {blocklist.delist_url}"
    return f"{fix}; the listing ends by itself."


def _names(listings: Sequence[Listing], reason: UnknownReason) -> str:
    names = [
        row.blocklist.name
        for row in listings
        if row.status is ListingStatus.UNKNOWN and row.unknown_reason is reason
    ]
    if len(names) > MAX_NAMED:
        names = [*names[:MAX_NAMED], f"{len(names) - MAX_NAMED} more lists"]
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else "".join(names)
