"""A house with cheap password hashes, and a browser for its pages."""

import pytest

from mailcheck.config.options import AccountsOptions, WebOptions
from mailcheck.core.accounts import Account
from tests.house import CHEAP_HASH, House, config_in_memory
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.inbox_visit import sign_up

CHEAP = AccountsOptions(password_cost=CHEAP_HASH, registration="open")


def house_at(public_url: str) -> House:
    """Return a house at a public address, with open registration."""
    return House(config_in_memory(web=WebOptions(public_url=public_url), accounts=CHEAP))


@pytest.fixture
def house() -> House:
    """Create a house with one account, which has a key and no password."""
    return House(config_in_memory(accounts=CHEAP))


@pytest.fixture
def bob(house: House) -> Browser:
    """Sign up a second account, from another address."""
    browser = Browser(house, "192.0.2.11")
    browser.sign_up("bob")
    return browser


@pytest.fixture
def browser(house: House) -> Browser:
    """Return a browser that is not signed in."""
    return Browser(house)


@pytest.fixture
def ann(browser: Browser) -> Browser:
    """Return the browser, signed up as ann."""
    browser.sign_up("ann")
    return browser


@pytest.fixture
def account(browser: Browser) -> Account:
    """Return the account for which the browser has signed up."""
    return sign_up(browser)
