"""Fixtures for the tests of several files."""

import pytest

from tests.house import House
from tests.web.mcp.agent import HANDSHAKE, STATELESS, Agent


@pytest.fixture(params=[HANDSHAKE, STATELESS])
def agent(house: House, request: pytest.FixtureRequest) -> Agent:
    """An agent in each mode."""
    return Agent(house, version=request.param)
