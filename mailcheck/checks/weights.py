"""Prices of measured findings, and limits.

Prices are in tenths of a point, subtracted from a perfect 100. The prices of all other findings
are in their rows (`mailcheck.checks.findings_table`). They follow the published rules of Google,
Yahoo and Microsoft (2024-2026) and the scores of the common content filters. All three providers
require SPF or DKIM from every sender and DMARC from large senders, and reject mail that has none
of them. A single major blocklist stops delivery. ``docs/explanation/scores.md`` publishes these
tables.

The points of a domain's reputation (``GET /tools/reputation``) are separate and defined in
``checks/scoring/awards.py``.
"""

from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from msgspec import Struct

from mailcheck.checks.finding_row import BadTable
from mailcheck.checks.findings import Area, ChargedFinding, Finding
from mailcheck.checks.findings_table import FINDINGS, make_finding

SCORING_VERSION = "2"
"""Version of a mail's score; increment it with every change of a price, here or in a row."""

QUALITY_AREAS = (Area.HEADERS, Area.CONTENT, Area.TRANSPORT, Area.LINKS, Area.UNSUBSCRIBE)
"""Areas of a mail's format. The content filter scores many of these properties too, with weights
learned from real mail. Prices exist only for properties named in the receivers' own rules."""

MAX_QUALITY = 15
"""Maximum deduction for the format of a mail, in tenths: less than for the authentication of its
sender."""

MEASURED = frozenset({"dnsbl.listed", "rspamd.points", "spamassassin.points"})
"""Findings with a measured price (`cost_of_listing`, `cost_of_points`)."""


class ListingTier(Struct, frozen=True):
    """The price of a listing on a list of at least this weight."""

    weight: int
    tenths: int
    reason: str


LISTING_TIERS = (
    ListingTier(8, 30, "One such listing stops delivery at large receivers"),
    ListingTier(5, 15, "Many receivers give it much weight"),
    ListingTier(3, 7, "Some receivers give it weight"),
    ListingTier(1, 2, "A few receivers consider it"),
    ListingTier(0, 0, "Hardly any receiver considers it"),
)

MAX_LISTINGS = 50
"""Maximum deduction for all listings together, in tenths. With more the mail is lost anyway."""

FILTER_FACTOR = 8
"""Tenths for each point of the content filter; its threshold of 5 points costs 4.0."""

FILTER_MAX_POINTS = 5.0
"""Maximum number of filter points that count; above the threshold a mail is spam in any case."""


def cost_of_listing(weight: int) -> int:
    """Return the tenths for a listing on a list of this weight."""
    return next((tier.tenths for tier in LISTING_TIERS if weight >= tier.weight), 0)


def cost_of_points(points: float) -> int:
    """Return the tenths for a filter's points, rounded half up."""
    counted = Decimal(str(min(max(points, 0.0), FILTER_MAX_POINTS)))
    return int((FILTER_FACTOR * counted).to_integral_value(ROUND_HALF_UP))


def price_finding(finding: Finding, measured: int = 0) -> ChargedFinding:
    """Return a finding with its price; a finding without one costs nothing.

    :param measured: tenths of a finding in `MEASURED`.
    """
    is_measured = finding.id in MEASURED
    return _charged(finding, measured if is_measured else FINDINGS[finding.id].price or 0)


def uncharged(finding: Finding) -> ChargedFinding:
    """Return a finding without its price, as information only."""
    return _charged(finding, 0)


def charge(row_id: str, /, *, case: str = "", **places: Any) -> ChargedFinding:
    """Return a new finding with its price; see `make_finding`."""
    return price_finding(make_finding(row_id, case=case, **places))


def _charged(finding: Finding, tenths: int) -> ChargedFinding:
    area = FINDINGS[finding.id].area
    if area is None:
        raise BadTable(f"{finding.id} has no area, so a mail's report cannot contain it")
    return ChargedFinding(area, finding, tenths)
