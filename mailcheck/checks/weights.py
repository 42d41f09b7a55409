"""What costs points: the prices of measured findings, and limits.

In tenths of a point, off a perfect 100. The prices of all other findings stand in their rows
(`mailcheck.checks.findings_table`). Reasons are the published rules of
Google, Yahoo and Microsoft (2024-2026) and the scores of the common content
filters: all three providers want SPF or DKIM of every sender and DMARC of
large ones, refuse mail that has none of them, and a single major blocklist
stops delivery. ``docs/deliverability-tests.md`` publishes these tables. Count
`mailcheck.checks.findings_of_mails.SCORING_VERSION` up with every change here, too.

The points of a domain's reputation (``GET /tools/reputation``) are others:
those stand in ``checks/scoring/awards.py``.
"""

from decimal import ROUND_HALF_UP, Decimal

from msgspec import Struct

from mailcheck.checks.finding_row import BadTable
from mailcheck.checks.findings import Area, ChargedFinding, Finding, RecordToPublish
from mailcheck.checks.findings_table import FINDINGS, make_finding

QUALITY_AREAS = (Area.HEADERS, Area.CONTENT, Area.TRANSPORT, Area.LINKS, Area.UNSUBSCRIBE)
"""Areas of how a mail is made. The content filter judges many of these things too, with weights
learned from real mail; prices are only on what receivers' own rules name."""

MAX_QUALITY = 15
"""Tenths for the making of a mail: it does not weigh as much as who sent it."""

MEASURED = frozenset({"dnsbl.listed", "spamassassin.points"})
"""Findings whose price is measured, by `cost_of_listing` and `cost_of_points`."""


class ListingTier(Struct, frozen=True):
    """What one listing costs; the first tier whose weight is reached."""

    weight: int
    tenths: int
    reason: str


LISTING_TIERS = (
    ListingTier(8, 30, "one such listing stops delivery at large receivers"),
    ListingTier(5, 15, "many receivers weigh it heavily"),
    ListingTier(3, 7, "some receivers weigh it"),
    ListingTier(1, 2, "a few receivers mind"),
    ListingTier(0, 0, "hardly any receiver minds"),
)

MAX_LISTINGS = 50
"""Tenths for all listings together: beyond that the mail is lost anyway."""

FILTER_FACTOR = 8
"""Tenths for each point of the content filter: 4.0 at its threshold of 5."""

FILTER_MAX_POINTS = 5.0
"""Points that count: above the threshold mail is spam, however far."""


def cost_of_listing(weight: int) -> int:
    """Give the tenths for a listing on a list of this weight."""
    return next((tier.tenths for tier in LISTING_TIERS if weight >= tier.weight), 0)


def cost_of_points(points: float) -> int:
    """Give the tenths for a filter's points, halves rounded up."""
    counted = Decimal(str(min(max(points, 0.0), FILTER_MAX_POINTS)))
    return int((FILTER_FACTOR * counted).to_integral_value(ROUND_HALF_UP))


def price_finding(finding: Finding, measured: int = 0) -> ChargedFinding:
    """Return a finding with its price; without one it costs nothing.

    :param measured: tenths of a finding that is `MEASURED`.
    """
    is_measured = finding.id in MEASURED
    return _charged(finding, measured if is_measured else FINDINGS[finding.id].price or 0)


def uncharged(finding: Finding) -> ChargedFinding:
    """Return a finding that costs nothing here, whatever it costs elsewhere."""
    return _charged(finding, 0)


def charge(
    name: str, meaning: str, fix: str | None = None, record: RecordToPublish | None = None
) -> ChargedFinding:
    """Return a new finding with its price, and the advice of its row if `fix` is `None`."""
    return price_finding(make_finding(name, meaning, fix, record))


def _charged(finding: Finding, tenths: int) -> ChargedFinding:
    area = FINDINGS[finding.id].area
    if area is None:
        raise BadTable(f"{finding.id} belongs to no area, so no mail's report can have it")
    return ChargedFinding(area, finding, tenths)
