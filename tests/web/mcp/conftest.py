"""Fixtures for the tests of several files."""

import pytest

from tests.house import House
from tests.web.mcp.agent import STATELESS, Agent


@pytest.fixture
def agent(house: House, request: pytest.FixtureRequest) -> Agent:
    """A stateless agent, or one of the revision that the test names."""
    return Agent(house, version=getattr(request, "param", STATELESS))
