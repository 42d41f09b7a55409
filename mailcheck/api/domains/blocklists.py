"""Blocklist checks and the catalogue as JSON (docs/reference/contract.md)."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

from mailcheck.api.shapes import Count, Shape, Texts, Timestamp, doc
from mailcheck.checks.dnsbl import listings as verdicts
from mailcheck.checks.dnsbl.catalogue import Blocklist, Catalogue, TargetKind
from mailcheck.checks.dnsbl.health import ZoneHealth
from mailcheck.checks.dnsbl.listings import ListingStatus, UnknownReason, count
from mailcheck.core.instants import SECOND, format_instant
from mailcheck.operations.domains.check_blocklists import BlocklistCheck
from mailcheck.operations.domains.zone_health import ListBudgets, ZoneHealthCheck

ROWS = 32
"""Rows of every check (docs/reference/contract.md)."""

Profile = Literal["ip", "domain"]

Weight = Annotated[int, doc("how much it matters; 8 and more stop delivery at once", ge=0, le=10)]

WHY_UNKNOWN = {
    UnknownReason.NO_ANSWER: "It did not answer in time.",
    UnknownReason.REFUSED_BY_LIST: "It refuses to answer the resolver of this service.",
    UnknownReason.REWRITTEN: "What came is no answer of a blocklist.",
    UnknownReason.STRANGE_CODE: "It gave an answer that it does not document.",
    UnknownReason.FAILED_SELF_TEST: "It fails its self-test and is not believed until it recovers.",
    UnknownReason.OVER_BUDGET: "It has been asked as often today as its operator allows.",
    UnknownReason.NO_TARGET: "The addresses of the domain's mail hosts could not be found out.",
    UnknownReason.NOT_PUBLIC: "The mail came from an address that no list can know.",
}

_SILENCE = (UnknownReason.NO_ANSWER, UnknownReason.NO_TARGET)


class Listing(Shape):
    """The answer of one blocklist."""

    name: Annotated[str, doc("of the list")]
    zone: Annotated[str, doc("DNS zone of the list")]
    listed: Annotated[bool, doc("true only when the list says so; see status for the rest")]
    response_time: Annotated[int, doc("milliseconds", ge=0)]
    status: Annotated[ListingStatus, doc("unknown: could not be found out, which is not a no")]
    codes: Annotated[Texts, doc("the addresses that the list answered")]
    meaning: Annotated[str | None, doc("what the answer means, or why it is unknown")]
    reason: Annotated[str | None, doc("what the list itself says (TXT)")]
    weight: Weight
    delist_url: Annotated[str | None, doc("where to ask for removal")]
    matched: Annotated[Texts, doc("what of the query is listed")]


class BlacklistCheck(Shape):
    """What all blocklists say about an address or a domain."""

    query: Annotated[str, doc("the value that was checked")]
    query_type: Profile
    total_checked: Annotated[int, doc("lists that were asked", ge=0, le=ROWS)]
    total_listed: Annotated[int, doc("lists that have it", ge=0, le=ROWS)]
    total_unknown: Annotated[int, doc("lists of which nothing is known", ge=0)]
    addresses: Annotated[Texts, doc("the mail addresses that stood in for the domain")]
    results: Annotated[
        tuple[Listing, ...], doc("one row for each list", min_length=ROWS, max_length=ROWS)
    ]


class BlacklistsUnanswered(Shape):
    """No list answered; `partial` has the rows."""

    error: str
    partial: BlacklistCheck


class SelfTest(Shape):
    """The self-test of a list for one kind of target (RFC 5782)."""

    kind: TargetKind
    status: Literal["healthy", "sick", "unreachable", "untested"]
    reason: str | None


class CatalogueEntry(Shape):
    """A blocklist of the catalogue."""

    name: str
    zone: str
    operator: str | None
    kinds: Annotated[tuple[TargetKind, ...], doc("what it knows")]
    weight: Weight
    enabled: Annotated[bool, doc("false: the operator has switched it off")]
    delist_url: str | None
    access: Annotated[str | None, doc("what it asks of those who use it")]
    profiles: Annotated[tuple[Profile, ...], doc("the checks it is asked in")]
    daily_budget: Annotated[int | None, doc("questions a day; null: any number")]
    asked_today: Count
    health: Literal["healthy", "sick", "unreachable", "untested", "disabled"]
    tests: Annotated[tuple[SelfTest, ...], doc("the self-test of each kind")]


class Blacklists(Shape):
    """The catalogue."""

    blocklists: tuple[CatalogueEntry, ...]
    tested_at: Annotated[Timestamp | None, doc("when the lists were tested last; null: not yet")]


def render_blocklist_check(check: BlocklistCheck) -> BlacklistCheck:
    """Give the 32 rows and their totals."""
    listings = check.listings
    asked = [row for row in listings if row.status is not ListingStatus.DISABLED]
    return BlacklistCheck(
        query=check.query,
        query_type="ip" if check.is_address else "domain",
        total_checked=len(asked) - count(asked, ListingStatus.UNSUPPORTED),
        total_listed=count(listings, ListingStatus.LISTED),
        total_unknown=count(listings, ListingStatus.UNKNOWN),
        addresses=tuple(check.addresses),
        results=tuple(map(render_listing, listings)),
    )


def render_no_answer(check: BlocklistCheck) -> BlacklistsUnanswered:
    """Give the error for a check about which no list told anything."""
    return BlacklistsUnanswered(
        f"no blocklist answered about {check.query}: {explain_silence(check)}",
        render_blocklist_check(check),
    )


def explain_silence(check: BlocklistCheck) -> str:
    """Say why nothing is known, and what to do."""
    listings = check.listings
    unknown = [row for row in listings if row.unknown_reason is not None]
    if not unknown:
        return "the operator of this service has switched all of them off"
    if all(row.unknown_reason in _SILENCE for row in unknown):
        return "the resolver of this service does not reach them; try again in a minute"
    sick = sum(row.unknown_reason is UnknownReason.FAILED_SELF_TEST for row in unknown)
    rest = len(unknown) - sick
    failed = [f"{sick} fail their self-test"] if sick else []
    refused = [f"{rest} gave no usable answer"] if rest else []
    return (
        f"{' and '.join(failed + refused)}; what they say is known again when they recover, or"
        " when this service has a resolver that they answer"
    )


def render_listing(listing: verdicts.Listing) -> Listing:
    """Give one list's row; of one that is unknown ``meaning`` says why."""
    blocklist = listing.blocklist
    meaning = listing.meaning
    if listing.unknown_reason is not None:
        meaning = WHY_UNKNOWN[listing.unknown_reason]
    return Listing(
        name=blocklist.name,
        zone=blocklist.zone,
        listed=listing.is_listed,
        response_time=round(listing.seconds * SECOND),
        status=listing.status,
        codes=tuple(listing.codes),
        meaning=meaning or None,
        reason=listing.reason or None,
        weight=listing.weight,
        delist_url=blocklist.delist_url or None,
        matched=tuple(listing.matched),
    )


def render_catalogue(
    catalogue: Catalogue,
    health: ZoneHealthCheck,
    budgets: ListBudgets,
    asked_today: Mapping[str, int],
) -> Blacklists:
    """Give all lists with their health, and questions of today by zone; never their keys."""
    tested_at = health.tested_at
    return Blacklists(
        tuple(
            _render_entry(
                one, catalogue, health.of(one), budgets.limit_of(one), asked_today[one.zone]
            )
            for one in catalogue.blocklists
        ),
        None if tested_at is None else format_instant(tested_at),
    )


def _render_entry(
    blocklist: Blocklist,
    catalogue: Catalogue,
    health: Iterable[ZoneHealth],
    daily_budget: int | None,
    asked_today: int,
) -> CatalogueEntry:
    profiles: dict[Profile, Iterable[Blocklist]] = {
        "ip": catalogue.address_profile,
        "domain": catalogue.domain_profile,
    }
    tests = tuple(SelfTest(one.kind, one.status.value, one.reason or None) for one in health)
    return CatalogueEntry(
        name=blocklist.name,
        zone=blocklist.zone,
        operator=blocklist.operator or None,
        kinds=tuple(blocklist.query_zones),
        weight=blocklist.weight,
        enabled=blocklist.is_enabled,
        delist_url=blocklist.delist_url or None,
        access=blocklist.access or None,
        profiles=tuple(name for name, lists in profiles.items() if blocklist in lists),
        daily_budget=daily_budget,
        asked_today=asked_today,
        health=_worst_of(tests, is_enabled=blocklist.is_enabled),
        tests=tests,
    )


def _worst_of(
    tests: Iterable[SelfTest], *, is_enabled: bool
) -> Literal["healthy", "sick", "unreachable", "untested", "disabled"]:
    statuses = {one.status for one in tests}
    for status in ("sick", "unreachable", "healthy"):
        if status in statuses:
            return status
    return "untested" if is_enabled else "disabled"
