"""Fixtures for the tests of several files."""

from collections.abc import Iterator

import pytest

from tests.web.scored_house import ScoredHouse


@pytest.fixture
def scored() -> Iterator[ScoredHouse]:
    """A house with the zone of a perfect sender, which scores mail."""
    scored = ScoredHouse()
    yield scored
    scored.close()
