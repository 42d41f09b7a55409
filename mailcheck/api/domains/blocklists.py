"""Blocklist checks and the catalogue of blocklists as JSON (docs/reference/contract.md)."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

from mailcheck.api.shapes import ABSENT, Absent, Count, Shape, Texts, Timestamp, doc, shape_from
from mailcheck.checks.dnsbl import listings as verdicts
from mailcheck.checks.dnsbl.catalogue import Blocklist, Catalogue, TargetKind
from mailcheck.checks.dnsbl.health import ZoneHealth
from mailcheck.checks.dnsbl.listings import ListingStatus, UnknownReason, count
from mailcheck.core.instants import SECOND, format_instant
from mailcheck.operations.domains.check_blocklists import BlocklistCheck
from mailcheck.operations.domains.zone_health import ListBudgets, ZoneHealthCheck

ROWS = 32
"""Number of rows of every check: one per blocklist."""

Profile = Literal["ip", "domain"]

Weight = Annotated[
    int, doc("importance of the list; from 8 on, a listing blocks delivery", ge=0, le=10)
]

WHY_UNKNOWN = {
    UnknownReason.NO_ANSWER: "The list did not answer in time.",
    UnknownReason.REFUSED_BY_LIST: "The list refuses queries from the resolver of this service.",
    UnknownReason.REWRITTEN: "The answer is not from a blocklist; a resolver may have replaced it.",
    UnknownReason.STRANGE_CODE: "The list returned a code that its operator does not document.",
    UnknownReason.FAILED_SELF_TEST: ("The list fails its self-test, so its answers are ignored."),
    UnknownReason.OVER_BUDGET: "The daily query limit of this list is used up.",
    UnknownReason.NO_TARGET: "The addresses of the domain's mail hosts could not be determined.",
    UnknownReason.NOT_PUBLIC: "The mail came from a private address, which no list contains.",
}

_UNREACHABLE = (UnknownReason.NO_ANSWER, UnknownReason.NO_TARGET)


class Listing(Shape):
    """The result of one blocklist."""

    name: Annotated[str, doc("name of the list")]
    zone: Annotated[str, doc("DNS zone of the list")]
    listed: Annotated[bool, doc("true only if the status is listed")]
    response_time: Annotated[int, doc("milliseconds", ge=0)]
    status: Annotated[ListingStatus, doc("unknown: undetermined, which does not mean clean")]
    codes: Annotated[Texts, doc("addresses that the list returned")]
    meaning: Annotated[str | None, doc("meaning of the answer, or why it is unknown")]
    reason: Annotated[str | None, doc("TXT record of the listing")]
    weight: Weight
    delist_url: Annotated[str | None, doc("where to request removal")]
    matched: Annotated[Texts, doc("listed parts of the query")]


class BlacklistCheck(Shape):
    """The results of all blocklists for an address or a domain."""

    query: Annotated[str, doc("the checked value")]
    query_type: Profile
    total_checked: Annotated[int, doc("number of queried lists", ge=0, le=ROWS)]
    total_listed: Annotated[int, doc("number of lists with a listing", ge=0, le=ROWS)]
    total_unknown: Annotated[int, doc("number of lists without a usable answer", ge=0)]
    addresses: Annotated[Texts, doc("IP addresses that were checked for the domain")]
    results: Annotated[
        tuple[Listing, ...], doc("one row per list", min_length=ROWS, max_length=ROWS)
    ]
    hint: Annotated[
        str | Absent, doc(f"why fewer than {ROWS} lists were queried; absent: all were")
    ] = ABSENT


class BlacklistsUnanswered(Shape):
    """No list answered. `partial` contains the rows."""

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
    kinds: Annotated[tuple[TargetKind, ...], doc("what the list contains")]
    weight: Weight
    enabled: Annotated[bool, doc("false: switched off by the operator")]
    delist_url: str | None
    access: Annotated[str | None, doc("terms of use of the list")]
    profiles: Annotated[tuple[Profile, ...], doc("the checks that query this list")]
    daily_budget: Annotated[int | None, doc("maximum number of queries a day; null: no limit")]
    asked_today: Count
    health: Literal["healthy", "sick", "unreachable", "untested", "disabled"]
    tests: Annotated[tuple[SelfTest, ...], doc("the self-test for each kind of target")]


class Blacklists(Shape):
    """The catalogue of blocklists."""

    blocklists: tuple[CatalogueEntry, ...]
    tested_at: Annotated[Timestamp | None, doc("time of the last self-test; null: not yet tested")]


def render_blocklist_check(check: BlocklistCheck) -> BlacklistCheck:
    """Render the 32 rows of a check and their totals."""
    listings = check.listings
    queried = [row for row in listings if row.status is not ListingStatus.DISABLED]
    return BlacklistCheck(
        query=check.query,
        query_type="ip" if check.is_address else "domain",
        total_checked=len(queried) - count(queried, ListingStatus.UNSUPPORTED),
        total_listed=count(listings, ListingStatus.LISTED),
        total_unknown=count(listings, ListingStatus.UNKNOWN),
        addresses=tuple(check.addresses),
        results=tuple(map(render_listing, listings)),
        hint=explain_unqueried(check) or ABSENT,
    )


def render_no_answer(check: BlocklistCheck) -> BlacklistsUnanswered:
    """Render the error for a check without any usable answer."""
    return BlacklistsUnanswered(
        f"no blocklist answered about {check.query}: {explain_no_answer(check)}",
        render_blocklist_check(check),
    )


def explain_unqueried(check: BlocklistCheck) -> str:
    """Return why some lists were not queried, or an empty string if all were."""
    unsupported = count(check.listings, ListingStatus.UNSUPPORTED)
    disabled = count(check.listings, ListingStatus.DISABLED)
    if check.is_address:
        content = f"no {'IPv6' if ':' in check.query else 'IPv4'} addresses"
    elif check.addresses:
        content = "neither domain names nor the kind of addresses that its mail hosts have"
    else:
        content = "only IP addresses, and the domain has no mail host with a public address"
    reasons = [
        *([f"{_lists(unsupported, 'contains')} {content}"] if unsupported else ()),
        *([f"the operator has switched off {_lists(disabled)}"] if disabled else ()),
    ]
    if not reasons:
        return ""
    total = len(check.listings)
    asked = total - unsupported - disabled
    return f"{asked} of {total} lists were queried: {'; '.join(reasons)}"


def _lists(number: int, verb: str = "") -> str:
    """Return a number of lists, with a verb in the third person."""
    if number == 1:
        return f"1 list {verb}".strip()
    return f"{number} lists {verb.removesuffix('s')}".strip()


def explain_no_answer(check: BlocklistCheck) -> str:
    """Return why no list gave a usable answer, and what to do."""
    listings = check.listings
    unknown = [row for row in listings if row.unknown_reason is not None]
    if not unknown:
        return "the operator of this service has switched off all lists"
    if all(row.unknown_reason in _UNREACHABLE for row in unknown):
        return (
            "the resolver of this service does not reach them; try again in a minute, or set"
            " [blocklists] resolvers to a resolver of your own"
        )
    sick = sum(row.unknown_reason is UnknownReason.FAILED_SELF_TEST for row in unknown)
    others = len(unknown) - sick
    failed = [f"{sick} fail their self-test"] if sick else []
    refused = [f"{others} gave no usable answer"] if others else []
    return (
        f"{' and '.join(failed + refused)}; try again when the lists have recovered, or set"
        " [blocklists] resolvers to a resolver of your own, since lists refuse public ones"
    )


def render_listing(listing: verdicts.Listing) -> Listing:
    """Render the row of a list. The ``meaning`` of an unknown result is its reason."""
    blocklist = listing.blocklist
    meaning = listing.meaning
    if listing.unknown_reason is not None:
        meaning = WHY_UNKNOWN[listing.unknown_reason]
    return shape_from(
        Listing,
        listing,
        name=blocklist.name,
        zone=blocklist.zone,
        response_time=round(listing.seconds * SECOND),
        meaning=meaning,
        delist_url=blocklist.delist_url,
    )


def render_catalogue(
    catalogue: Catalogue,
    health: ZoneHealthCheck,
    budgets: ListBudgets,
    asked_today: Mapping[str, int],
) -> Blacklists:
    """Render all lists with their health and today's number of queries, without access keys."""
    tested_at = health.tested_at
    return Blacklists(
        tuple(
            _render_entry(
                blocklist,
                catalogue,
                health.of(blocklist),
                budgets.limit_of(blocklist),
                asked_today[blocklist.zone],
            )
            for blocklist in catalogue.blocklists
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
    tests = tuple(shape_from(SelfTest, zone, status=zone.status.value) for zone in health)
    return shape_from(
        CatalogueEntry,
        blocklist,
        kinds=tuple(blocklist.query_zones),
        profiles=tuple(name for name, lists in profiles.items() if blocklist in lists),
        daily_budget=daily_budget,
        asked_today=asked_today,
        health=_worst_of(tests, is_enabled=blocklist.is_enabled),
        tests=tests,
    )


def _worst_of(
    tests: Iterable[SelfTest], *, is_enabled: bool
) -> Literal["healthy", "sick", "unreachable", "untested", "disabled"]:
    statuses = {test.status for test in tests}
    for status in ("sick", "unreachable", "healthy"):
        if status in statuses:
            return status
    return "untested" if is_enabled else "disabled"
