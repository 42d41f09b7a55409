"""The overview: what needs attention, the newest mails and tests, and the first steps."""

import re

import pytest

from mailcheck.core.accounts import Account
from mailcheck.core.domains.watches import WatchSettings
from tests.fakes.fake_hosts import FakeHosts
from tests.fakes.memory_zone import MemoryZone
from tests.house import House, mail, run
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.inbox_visit import fetch, receive
from tests.web.dashboard.tools_visit import visit_scored, visit_tools

MAX_PAGE = 80_000
"""Bytes of a page before compression."""


def body(browser: Browser) -> str:
    """Return the HTML of the overview."""
    return browser.open("/").body.decode()


def test_the_first_steps(house: House, browser: Browser, account: Account) -> None:
    """A new account sees three steps; they are folded when some mails have arrived."""
    page = body(browser)
    assert '<details class="card first-steps" open' in page
    assert "0 of 3 steps" in browser.read("/")
    assert f"--mail-rcpt {account.mailbox_name}+signup@mailcheck.example" in browser.page.text
    answer = browser.submit("/inbox/sample", tag="signup", next="/")
    assert answer.headers["location"] == "/p/me/?done=sample-sent"
    page = body(browser)
    assert "1 of 3 steps" in browser.read("/")
    browser.find(r'id="first-code">(\d+)<')
    for _ in range(3):
        receive(house, account)
    assert '<details class="card first-steps" id' in body(browser)


def test_the_newest_mails(house: House, browser: Browser, account: Account) -> None:
    """Mails have their code and link; a key copies the code of the newest mail that has one."""
    receive(house, account, mail("With a code"), "signup")
    receive(house, account, b"From: a@b.example\r\nSubject: Plain\r\n\r\nHello.\r\n")
    page = body(browser)
    assert page.index("Plain") < page.index("With a code")
    assert "+signup" in page
    assert page.count('aria-keyshortcuts="c"') == 1
    assert re.search(r'aria-label="Copy code 482913"[^>]*aria-keyshortcuts="c"', page)
    assert re.search(r'href="https://[^"]+" target="_blank" rel="noopener noreferrer', page)
    assert "2 unread mails" in browser.read("/")


def test_a_new_test_shows_its_address_in_place() -> None:
    """A test that is created on the overview is shown there; later its score and the trend."""
    scored, browser = visit_scored()
    assert "Last test" not in browser.read("/")
    for number in range(2):
        assert browser.submit("/tests", next="/").headers["location"] == "/p/me/"
        browser.open("/")
        scored.send(browser.find(r'id="test-([^"]+)"><span class="part">test-'))
        assert ("Scores of the newest tests" in body(browser)) == bool(number)
    assert re.search(r"Last test \d+\.\d of 10", browser.read("/"))
    assert body(browser).count('aria-keyshortcuts="t"') == 1


@pytest.fixture
def zone() -> MemoryZone:
    """Create a zone with a good and a bad domain."""
    zone = MemoryZone({})
    zone.publish("bad.example", "A", "192.0.2.1")
    return zone


def test_the_domains_that_need_attention(zone: MemoryZone) -> None:
    """Each domain has a card with its grade and its gravest problem."""
    browser = visit_tools(zone, FakeHosts())
    house = browser.house
    account = run(house.assembly.accounts.keep.find("ann"))
    keep = house.assembly.watches.keep
    assert "domain needs attention" not in browser.read("/")
    made = run(keep.create(account.id, "bad.example", WatchSettings()))
    assert "The first check is running." in browser.read("/")
    run(keep.run(account.id, made.watch.id))
    page = browser.read("/")
    assert "1 domain needs attention" in page
    assert "Grade F" in page
    assert "problems" in page
    assert len(body(browser)) < MAX_PAGE


def test_the_places_of_the_command_palette(browser: Browser, account: Account) -> None:
    """The palette finds pages that are not in the menu, and tests and domains of the project."""
    test = browser.submit("/tests").headers["location"]
    browser.submit("/domains/good.example/watch", on="true")
    answer = fetch(browser, "/places")
    places = {one["title"]: one["href"] for one in answer.json}
    assert places["Received reports"] == "/p/me/reports"
    assert places["Projects"] == "/projects"
    assert places["Domain good.example"] == "/p/me/domains/good.example"
    assert test in places.values()
