"""Points lost through blocklists, computed list by list."""

from collections.abc import Sequence

from msgspec import Struct

from mailcheck.checks.dnsbl.listings import BLOCKING_WEIGHT, Listing, ListingStatus, count
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

_ANSWERED = (ListingStatus.LISTED, ListingStatus.CLEAN)
_ASKED = (*_ANSWERED, ListingStatus.UNKNOWN)


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
    if _is_mostly_unknown(listings):
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


def _is_mostly_unknown(listings: Sequence[Listing]) -> bool:
    asked = [row for row in listings if row.status in _ASKED]
    known = sum(row.blocklist.weight for row in asked if row.status in _ANSWERED)
    total = sum(row.blocklist.weight for row in asked)
    return 2 * known < total or not any(row.status in _ANSWERED for row in asked)


def _describe(listed: Sequence[Listing], listings: Sequence[Listing]) -> str:
    answered = sum(row.status in _ANSWERED for row in listings)
    unknown = count(listings, ListingStatus.UNKNOWN)
    rest = f" No usable answer from {unknown}." if unknown else ""
    if not answered:
        return "No list answered."
    if not listed:
        return f"On none of the {answered} lists that answered.{rest}"
    names = ", ".join(row.blocklist.name for row in listed)
    return f"Listed by {names}; {answered} lists answered.{rest}"
