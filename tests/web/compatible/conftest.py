"""Fixtures for the tests of several files."""

import pytest

from tests.web.compatible.open_site import OpenSite


@pytest.fixture
def site() -> OpenSite:
    """The listeners without passwords and without a hold."""
    return OpenSite()
