"""The published prices; no other test states them."""

import hashlib
import json

from mailcheck.checks.finding_row import ERROR_TENTHS
from mailcheck.checks.findings_table import ROWS
from mailcheck.checks.weights import (
    FILTER_FACTOR,
    FILTER_MAX_POINTS,
    LISTING_TIERS,
    MAX_LISTINGS,
    MAX_QUALITY,
    SCORING_VERSION,
)

PUBLISHED = {"2": "8aeed07bbece59b4"}
"""Digest of all prices by the version of the score. Each version adds a line, and a released line
never changes."""


def digest() -> str:
    """Return a digest of everything that determines prices."""
    prices = {row.id: row.price for row in ROWS if row.price is not None}
    tiers = [(tier.weight, tier.tenths) for tier in LISTING_TIERS]
    limits = (ERROR_TENTHS, MAX_QUALITY, MAX_LISTINGS, FILTER_FACTOR, FILTER_MAX_POINTS)
    text = json.dumps([prices, tiers, limits], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def test_a_changed_price_is_another_version() -> None:
    """Scores of one version are comparable, so each change of a price needs a new version."""
    assert list(PUBLISHED)[-1] == SCORING_VERSION
    assert PUBLISHED[SCORING_VERSION] == digest()
    assert len(set(PUBLISHED.values())) == len(PUBLISHED)
