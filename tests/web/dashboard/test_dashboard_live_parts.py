"""Live parts of pages, and the icons of all pages."""

import re
from importlib.resources import files

from mailcheck.core.accounts import Account
from mailcheck.operations.follow_account import PACE
from tests.house import House
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.inbox_visit import receive
from tests.web.raw_http import RawHttp, request

TEMPLATES = files("mailcheck.web.dashboard").joinpath("templates")


class LiveParts:
    """The open event stream of a page."""

    def __init__(self, browser: Browser) -> None:
        self._house = browser.house
        self.connection = RawHttp(browser.house, browser.peer)
        cookies = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
        self.connection.send(request("/p/me/live", f"Cookie: {cookies}"))

    @property
    def text(self) -> str:
        """Return everything that was received."""
        return self.connection.received().decode()

    def changes(self) -> int:
        """Return the number of changes until now."""
        self._house.clock.advance(PACE)
        return self.text.count("event: changed")


def test_a_change_of_the_account_is_announced(
    house: House, browser: Browser, account: Account, bob: Browser
) -> None:
    """A new mail, a deletion and a new test are changes for the account only."""
    own, strange = LiveParts(browser), LiveParts(bob)
    assert own.changes() == 0
    message_id = receive(house, account)
    assert own.changes() == 1
    browser.submit("/inbox/delete", id=message_id)
    assert own.changes() == 2
    browser.submit("/tests")
    assert own.changes() == 3
    assert strange.changes() == 0
    own.connection.hang_up()
    strange.connection.hang_up()
    assert house.assembly.follow.count() == 0


def test_many_mails_are_few_changes(house: House, browser: Browser, account: Account) -> None:
    """Mails that arrive together are announced at once and once more, not each alone."""
    stream = LiveParts(browser)
    for _ in range(20):
        receive(house, account)
    assert stream.changes() == 2
    assert stream.changes() == 2
    stream.connection.hang_up()


def test_a_stream_ends_when_the_daemon_stops(house: House, ann: Browser) -> None:
    """At the end of the daemon the page is told to connect again later."""
    stream = LiveParts(ann)
    house.assembly.follow.close()
    assert "The service is restarting." in stream.text
    assert stream.text.endswith("0\r\n\r\n")


def test_every_icon_is_in_the_sprite() -> None:
    """Each icon that a template shows is a symbol of the sprite, which has a licence."""
    sprite = TEMPLATES.joinpath("icon_sprite.html").read_text()
    symbols = set(re.findall(r'<symbol id="i-([a-z0-9-]+)"', sprite))
    shown = {
        name
        for file in TEMPLATES.iterdir()
        for name in re.findall(r'icon\("([a-z0-9-]+)"\)', file.read_text())
    }
    assert shown <= symbols, shown - symbols
    assert "ISC License" in sprite
