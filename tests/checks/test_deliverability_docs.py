"""The published deductions are those that are charged."""

import re
from collections.abc import Mapping
from pathlib import Path

from mailcheck.checks.weights import (
    LISTING_TIERS,
    MAX_LISTINGS,
    MAX_MAKING,
    OF_MAKING,
    OF_SENDER,
    Cost,
)

TEXT = Path(__file__).parents[2].joinpath("docs", "deliverability-tests.md").read_text("utf-8")


def rows(name: str) -> list[list[str]]:
    """Give the cells of a table, its head left out."""
    match = re.search(rf"<!-- {name} -->\n(.*?)<!-- /{name} -->", TEXT, re.DOTALL)
    assert match is not None
    lines = match[1].strip().splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def rows_of(costs: Mapping[str, Cost]) -> list[list[str]]:
    """Give the cells that say what findings cost."""
    return [
        [f"`{finding_id}`", f"{cost.tenths / 10:.1f}", cost.when, cost.reason]
        for finding_id, cost in costs.items()
    ]


def test_costs() -> None:
    """Every finding that is charged stands in the table with its points and its reason."""
    assert rows("costs") == rows_of(OF_SENDER)


def test_listings() -> None:
    """So does every tier of blocklists, and their cap."""
    assert rows("listings") == [
        [f"{tier.weight} and more", f"{tier.tenths / 10:.1f}", tier.reason]
        for tier in LISTING_TIERS
    ]
    assert f"{MAX_LISTINGS / 10:.1f} at most for all together" in TEXT


def test_format() -> None:
    """So does everything about the making of a mail, and its cap."""
    assert rows("format") == rows_of(OF_MAKING)
    assert f"{MAX_MAKING / 10:.1f} at most for all together" in TEXT
