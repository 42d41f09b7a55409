"""Blocklist checks and the catalogue as JSON (SPEC.md 2.2, DECISIONS.md section 2)."""

from collections.abc import Iterable

from mailcheck.checks.dnsbl.catalogue import Blocklist, Catalogue
from mailcheck.checks.dnsbl.health import ZoneHealth
from mailcheck.checks.dnsbl.listings import Listing, ListingStatus, UnknownReason, count
from mailcheck.core.instants import SECOND, format_instant
from mailcheck.operations.domains.check_blocklists import BlocklistCheck
from mailcheck.operations.domains.list_budgets import ListBudgets
from mailcheck.operations.domains.zone_health import ZoneHealthCheck
from mailcheck.wire.json_values import JsonObject, JsonValue

WHY_UNKNOWN = {
    UnknownReason.NO_ANSWER: "It did not answer in time.",
    UnknownReason.REFUSED_BY_LIST: "It refuses to answer the resolver of this service.",
    UnknownReason.REWRITTEN: "What came is no answer of a blocklist.",
    UnknownReason.STRANGE_CODE: "It gave an answer that it does not document.",
    UnknownReason.SICK: "It fails its self-test and is not believed until it recovers.",
    UnknownReason.OVER_BUDGET: "It has been asked as often today as its operator allows.",
    UnknownReason.NO_TARGET: "The addresses of the domain's mail hosts could not be found out.",
}


def render_blocklist_check(check: BlocklistCheck) -> JsonObject:
    """Give the 32 rows and their totals."""
    listings = check.listings
    asked = [row for row in listings if row.status is not ListingStatus.DISABLED]
    return {
        "query": check.query,
        "queryType": "ip" if check.is_address else "domain",
        "totalChecked": len(asked) - count(asked, ListingStatus.UNSUPPORTED),
        "totalListed": count(listings, ListingStatus.LISTED),
        "totalUnknown": count(listings, ListingStatus.UNKNOWN),
        "addresses": list(check.addresses),
        "results": [render_listing(row) for row in listings],
    }


def render_no_answer(check: BlocklistCheck) -> JsonObject:
    """Give the error for a check that no list answered."""
    return {
        "error": f"no blocklist answered about {check.query}: the resolver of this service"
        " does not reach them; try again in a minute",
        "partial": render_blocklist_check(check),
    }


def render_listing(listing: Listing) -> JsonObject:
    """Give one list's row; of one that is unknown ``meaning`` says why."""
    blocklist = listing.blocklist
    meaning = listing.meaning
    if listing.unknown_reason is not None:
        meaning = WHY_UNKNOWN[listing.unknown_reason]
    return {
        "name": blocklist.name,
        "zone": blocklist.zone,
        "listed": listing.is_listed,
        "responseTime": round(listing.seconds * SECOND),
        "status": listing.status.value,
        "codes": list(listing.codes),
        "meaning": meaning or None,
        "reason": listing.reason or None,
        "weight": listing.weight,
        "delistUrl": blocklist.delist_url or None,
        "matched": list(listing.matched),
    }


def render_catalogue(
    catalogue: Catalogue, health: ZoneHealthCheck, budgets: ListBudgets
) -> JsonObject:
    """Give all lists with their health; never their keys."""
    tested_at = health.tested_at
    profiles = {"ip": catalogue.address_profile, "domain": catalogue.domain_profile}
    return {
        "blocklists": [
            {
                **_blocklist(one),
                "profiles": [name for name, lists in profiles.items() if one in lists],
                "dailyBudget": budgets.limit_of(one),
                "askedToday": budgets.asked_today(one),
                **_health(one, health.of(one)),
            }
            for one in catalogue.blocklists
        ],
        "testedAt": None if tested_at is None else format_instant(tested_at),
    }


def _blocklist(blocklist: Blocklist) -> dict[str, JsonValue]:
    return {
        "name": blocklist.name,
        "zone": blocklist.zone,
        "operator": blocklist.operator or None,
        "kinds": [kind.value for kind in blocklist.query_zones],
        "weight": blocklist.weight,
        "enabled": blocklist.is_enabled,
        "delistUrl": blocklist.delist_url or None,
        "access": blocklist.access or None,
    }


def _health(blocklist: Blocklist, found: Iterable[ZoneHealth]) -> dict[str, JsonValue]:
    """Give the worst health of a list's kinds, and each."""
    kinds = [
        {"kind": one.kind.value, "status": one.status.value, "reason": one.reason or None}
        for one in found
    ]
    order = ("sick", "unreachable", "healthy")
    untested = "untested" if blocklist.is_enabled else "disabled"
    statuses = {str(one["status"]) for one in kinds}
    worst = next((status for status in order if status in statuses), untested)
    return {"health": worst, "tests": kinds}
