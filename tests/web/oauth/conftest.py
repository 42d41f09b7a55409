"""A house with OAuth, a person who is signed in, and a program to connect."""

import pytest

from tests.house import House
from tests.web.dashboard.browser import Browser
from tests.web.oauth.program import Program, add_client, oauth_house


@pytest.fixture
def house() -> House:
    """Create a house with OAuth."""
    return oauth_house()


@pytest.fixture
def ann(house: House) -> Browser:
    """Return the browser of a person who is signed in."""
    browser = Browser(house)
    browser.sign_up("ann")
    return browser


@pytest.fixture
def program(ann: Browser) -> Program:
    """Return a program that the operator has registered, without a secret."""
    return Program(ann, add_client(ann.house)[0].id)
