"""What listings cost: each by the weight of its list."""

from collections.abc import Sequence

from mailcheck.checks.charges import Area, ChargedFinding
from mailcheck.checks.deliverability.charging import cap, unknown
from mailcheck.checks.deliverability.weights import MAX_LISTINGS, cost_of_listing
from mailcheck.checks.dnsbl.listings import Listing, ListingStatus, UnknownReason, describe_listings
from mailcheck.checks.findings import ELSEWHERE

_ANSWERED = (ListingStatus.LISTED, ListingStatus.CLEAN)


def charge_blocklists(listings: Sequence[Listing]) -> tuple[ChargedFinding, ...]:
    """Charge every listing, the worst first, up to the cap; lists that are silent cost nothing."""
    asked = [row for row in listings if row.unknown_reason is not UnknownReason.NO_TARGET]
    listed = sorted((r for r in asked if r.is_listed), key=lambda row: row.weight, reverse=True)
    findings = describe_listings(asked)
    costs = [cost_of_listing(row.weight) for row in listed]
    costs += [0] * (len(findings) - len(listed))
    charged = cap(
        (
            ChargedFinding(Area.BLACKLIST, finding, cost)
            for finding, cost in zip(findings, costs, strict=True)
        ),
        MAX_LISTINGS,
    )
    if len(asked) < len(listings):
        return (*charged, _without_address())
    return charged if are_listings_known(listings) else (*charged, _too_few_answers())


def _without_address() -> ChargedFinding:
    return unknown(
        Area.BLACKLIST,
        "blacklist.no-address",
        "The mail came from an address that is not reachable from the Internet, so no blocklist"
        " was asked about it.",
        ELSEWHERE,
    )


def _too_few_answers() -> ChargedFinding:
    return unknown(
        Area.BLACKLIST,
        "blacklist.undetermined",
        "Too few blocklists gave an answer to say that the mail is on none.",
        "Check the test again later; GET /tools/blacklists shows which lists don't answer the"
        " resolver of this service.",
    )


def are_listings_known(listings: Sequence[Listing]) -> bool:
    """Tell whether the lists that answered hold at least half of the weight of all."""
    asked = [row for row in listings if row.status in (*_ANSWERED, ListingStatus.UNKNOWN)]
    known = [row for row in asked if row.status in _ANSWERED]
    weight = sum(row.blocklist.weight for row in known)
    return bool(known) and 2 * weight >= sum(row.blocklist.weight for row in asked)
