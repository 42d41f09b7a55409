"""Fixtures for the tests of several files."""

import pytest

from tests.web.scored_house import ScoredHouse


@pytest.fixture
def scored() -> ScoredHouse:
    """A house with the zone of a perfect sender, which scores mail."""
    return ScoredHouse()
