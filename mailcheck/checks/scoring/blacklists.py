"""Points lost through blocklists, computed list by list."""

from collections.abc import Sequence

from msgspec import Struct

from mailcheck.checks.dnsbl.listings import (
    BLOCKING_WEIGHT,
    Listing,
    ListingStatus,
    are_listings_known,
    count,
)
from mailcheck.checks.scoring.awards import (
    BLACKLISTS_PASS_FROM,
    BLACKLISTS_WARN_FROM,
    LISTING_COSTS,
    MAXIMA,
    SHARED_LISTING_COST,
    STOPPED_IMPACT,
    Award,
    undetermined_award,
)
from mailcheck.checks.scoring.outcomes import FactorName, Status


class BlacklistsJudgement(Struct, frozen=True):
    """Points for all lists together, and a sentence that names the worst listing first."""

    award: Award
    detail: str


def judge_blacklists(listings: Sequence[Listing]) -> BlacklistsJudgement:
    """Sum up the points that the listings cost.

    Lists without an answer are free. If they have more than half of the total weight, the
    result is undetermined.
    """
    listed = sorted((r for r in listings if r.is_listed), key=lambda r: r.weight, reverse=True)
    detail = _describe(listed, listings)
    if any(row.weight >= BLOCKING_WEIGHT and not row.is_shared for row in listed):
        return BlacklistsJudgement(Award(STOPPED_IMPACT, Status.FAIL), detail)
    points = max(0, MAXIMA[FactorName.BLACKLISTS] - sum(map(_cost, listed)))
    if not are_listings_known(listings):
        half = undetermined_award(FactorName.BLACKLISTS)
        award = Award(min(points, half.points), half.status, is_determined=False)
        return BlacklistsJudgement(award, f"too few lists gave an answer. {detail}")
    status = Status.FAIL
    if points >= BLACKLISTS_PASS_FROM:
        status = Status.PASS
    elif points >= BLACKLISTS_WARN_FROM:
        status = Status.WARN
    return BlacklistsJudgement(Award(points, status), detail)


def _cost(row: Listing) -> int:
    cost = next((lost for reached, lost in LISTING_COSTS if row.weight >= reached), 0)
    return min(cost, SHARED_LISTING_COST) if row.is_shared else cost


def _describe(listed: Sequence[Listing], listings: Sequence[Listing]) -> str:
    answered = sum(row.is_known for row in listings)
    unknown = count(listings, ListingStatus.UNKNOWN)
    rest = f" No usable answer from {unknown}." if unknown else ""
    if not answered:
        return "No list answered."
    if not listed:
        return f"On none of the {answered} lists that answered.{rest}"
    names = ", ".join(row.blocklist.name for row in listed)
    return f"Listed by {names}; {answered} lists answered.{rest}"
