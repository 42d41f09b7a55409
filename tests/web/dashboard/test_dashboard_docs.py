"""Addresses of the documentation that do not exist."""

import pytest

from tests.house import House
from tests.web.dashboard.browser import Browser


@pytest.mark.parametrize("path", ["/docs/no/such", "/docs/nonsense.html"])
def test_a_browser_gets_a_page(house: House, path: str) -> None:
    """A browser gets a page with the menu of its session, and a program gets JSON."""
    browser = Browser(house)
    browser.sign_up("ann")
    answer = browser.open(path)
    assert answer.status == 404
    assert "Back to the overview" in browser.page.text
    assert "/p/me/inbox" in browser.page.addresses
    assert "documentation" in house.open(path).answer().json["error"]
