"""Signed-in browsers for the pages of checks, and event streams."""

from typing import Any

from mailcheck.operations.deliverability.run_test_checks import Analyse
from tests.fakes.fake_hosts import FakeHosts
from tests.fakes.memory_zone import MemoryZone
from tests.house import config_in_memory
from tests.web.checking import checking_house
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.conftest import CHEAP
from tests.web.scored_house import ScoredHouse

MARKUP = "<script>alert(1)</script>'\"&"


def visit_tools(zone: MemoryZone, hosts: FakeHosts | None = None, **sections: Any) -> Browser:
    """Sign up in a house whose checks query this zone."""
    browser = Browser(checking_house(zone, config_in_memory(accounts=CHEAP, **sections), hosts))
    browser.sign_up()
    return browser


def visit_scored(
    zone: MemoryZone | None = None, analyse: Analyse | None = None, **options: Any
) -> tuple[ScoredHouse, Browser]:
    """Sign up in a house that receives and scores mail."""
    scored = ScoredHouse(zone, config_in_memory(accounts=CHEAP, **options), analyse)
    browser = Browser(scored.house)
    browser.sign_up()
    return scored, browser
