"""Fixtures: an address for each test (`mail_address`, from the client), and the shop."""

import pytest
from shop import app

pytest_plugins = ["mailcheck_client"]


@pytest.fixture
def shop():
    """Return a Flask test client for the shop."""
    return app.test_client()
