"""The published deductions are those that are charged."""

import re
from pathlib import Path

from mailcheck.checks.deliverability.weights import COSTS, LISTING_TIERS, MAX_LISTINGS
from mailcheck.checks.quality.weights import MAX_TENTHS, TENTHS

TEXT = Path(__file__).parents[2].joinpath("docs", "deliverability-tests.md").read_text("utf-8")


def rows(name: str) -> list[list[str]]:
    """Give the cells of a table, its head left out."""
    match = re.search(rf"<!-- {name} -->\n(.*?)<!-- /{name} -->", TEXT, re.DOTALL)
    assert match is not None
    lines = match[1].strip().splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_costs() -> None:
    """Every finding that is charged stands in the table with its points and its reason."""
    assert rows("costs") == [
        [f"`{finding_id}`", f"{cost.tenths / 10:.1f}", cost.when, cost.reason]
        for finding_id, cost in COSTS.items()
    ]


def test_listings() -> None:
    """So does every tier of blocklists, and their cap."""
    assert rows("listings") == [
        [f"{tier.weight} and more", f"{tier.tenths / 10:.1f}", tier.reason]
        for tier in LISTING_TIERS
    ]
    assert f"{MAX_LISTINGS / 10:.1f} at most for all together" in TEXT


def test_format() -> None:
    """So does everything about the making of a mail, and its cap."""
    assert rows("format") == [
        [f"`{finding_id}`", f"{tenths / 10:.1f}"] for finding_id, tenths in TENTHS.items()
    ]
    assert f"{MAX_TENTHS / 10:.1f} at most for all together" in TEXT
