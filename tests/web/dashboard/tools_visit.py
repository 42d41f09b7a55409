"""Signed-in browsers for the pages of checks, and event streams."""

import json
from typing import Any

from mailcheck.operations.deliverability.run_test_checks import Analyse
from tests.fakes.fake_hosts import FakeHosts
from tests.fakes.memory_zone import MemoryZone
from tests.house import config_in_memory
from tests.web.checking import checking_house
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.conftest import CHEAP
from tests.web.raw_http import RawHttp, request
from tests.web.scored_house import ScoredHouse

MARKUP = "<script>alert(1)</script>'\"&"


def visit_tools(zone: MemoryZone, hosts: FakeHosts | None = None, **sections: Any) -> Browser:
    """Sign up in a house whose checks query this zone."""
    browser = Browser(checking_house(zone, config_in_memory(accounts=CHEAP, **sections), hosts))
    browser.sign_up()
    return browser


class Events:
    """An open event stream."""

    def __init__(self, browser: Browser, path: str) -> None:
        self.connection = RawHttp(browser.house, browser.peer)
        cookies = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
        self.connection.send(request(path, f"Cookie: {cookies}", "Accept: text/event-stream"))

    @property
    def all(self) -> list[tuple[str, Any]]:
        """Name and data of each event so far."""
        body = self.connection.received().decode().partition("\r\n\r\n")[2]
        text = "".join(body.split("\r\n")[1::2])
        found = []
        for block in text.split("\n\n"):
            fields = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line)
            if "data" in fields:
                found.append((fields["event"], json.loads(fields["data"])))
        return found

    def named(self, name: str) -> list[Any]:
        """Return the data of all events with a name."""
        return [data for event, data in self.all if event == name]

    @property
    def has_ended(self) -> bool:
        """Whether the response is complete."""
        return self.connection.received().endswith(b"0\r\n\r\n")


def visit_scored(
    zone: MemoryZone | None = None, analyse: Analyse | None = None, **options: Any
) -> tuple[ScoredHouse, Browser]:
    """Sign up in a house that receives and scores mail."""
    scored = ScoredHouse(zone, config_in_memory(accounts=CHEAP, **options), analyse)
    browser = Browser(scored.house)
    browser.sign_up()
    return scored, browser
