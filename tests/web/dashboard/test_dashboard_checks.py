"""The checks of a mail on the pages of a message and of a test."""

import re
from urllib.parse import urlencode

import pytest

from mailcheck.checks.link_checks import Hop, LinkAnswer
from mailcheck.checks.press_unsubscribe import PressAnswer
from mailcheck.core.accounts import Account
from tests.fakes.fake_hosts import FakeHosts
from tests.fakes.memory_zone import MemoryZone
from tests.house import config_in_memory
from tests.table import rows
from tests.web.checking import checking_house
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.conftest import CHEAP
from tests.web.dashboard.inbox_visit import html_mail, receive, sign_up

CONFIRM = "https://shop.example/confirm?token=abcdefabcdef1234"
HELP, NEWS = "https://shop.example/help", "https://news.example/"
MAIL = html_mail(
    '<p style="border-radius:4px">Hello <img src="https://shop.example/a.png"></p>\r\n'
    f'<a href="{CONFIRM}">Confirm your address</a>\r\n'
    f'<a href="{HELP}">Help &lt;b&gt;</a> <a href="{NEWS}">News</a>\r\n'
    '<a href="https://shop.example/leave">Unsubscribe</a>'
)


class Visited:
    """A signed-in account with a mail, and scripted hosts for its links."""

    def __init__(self) -> None:
        self.hosts = FakeHosts()
        config = config_in_memory(accounts=CHEAP)
        self.house = checking_house(MemoryZone({}), config, self.hosts)
        self.browser = Browser(self.house)
        self.account: Account = sign_up(self.browser)
        self.path = f"/p/me/inbox/messages/{receive(self.house, self.account, MAIL)}"

    def open(self, path: str = "/checks") -> str:
        """Open a page of the mail and return its HTML."""
        answer = self.browser.open(self.path + path)
        assert answer.status == 200, answer
        return answer.body.decode()

    def ask(self, *fields: tuple[str, str]) -> str:
        """Submit the form for link checks and return the page."""
        token = ("form-token", self.browser.page.form_token)
        body = urlencode([token, *fields]).encode()
        answer = self.browser.send("POST", f"{self.path}/checks/links", body)
        assert answer.status == 200, answer
        return answer.body.decode()


@pytest.fixture
def visited() -> Visited:
    """Create an account with a mail."""
    return Visited()


def test_a_message_links_to_its_checks(visited: Visited) -> None:
    """The page of a mail links to its checks, which run only on request."""
    assert f'href="{visited.path}/checks"' in visited.open("")


def test_the_page_has_all_three(visited: Visited) -> None:
    """The page shows compatibility with lines, accessibility issues with fixes, and the links."""
    text = visited.open()
    assert "https://www.caniemail.com/features/css-border-radius/" in text
    assert "Outlook (Windows)" in text
    counts = [int(one) for one in re.findall(r"(\d+) of \d+ features", text)]
    assert counts == sorted(counts), "the families that support least come first"
    assert counts
    assert "2026-" in text
    assert "MIT" in text
    assert "Add an alt text to every image" in text
    assert "Help &lt;b&gt;" in text
    ticked = [line for line in text.splitlines() if 'name="link"' in line]
    assert [" checked" in line for line in ticked] == [False, True, True, False]
    assert visited.hosts.looked_at == []


def test_selected_links_are_checked(visited: Visited) -> None:
    """Each selected link gets its result; GET is offered where HEAD was rejected."""
    visited.hosts.links[HELP] = LinkAnswer(HELP, "HEAD", (Hop(HELP, 301), Hop(NEWS, 405)))
    visited.open()
    text = visited.ask(("link", "1"), ("link", "2"))
    assert visited.hosts.looked_at == [("HEAD", HELP), ("HEAD", NEWS)]
    assert "Checked 2 links: 1 works, 1 unclear." in text
    assert "301" in text
    assert 'name="get" value="1"' in text
    assert 'name="get" value="2"' not in text
    visited.hosts.links[HELP] = LinkAnswer(HELP, "GET", (Hop(HELP, 200),))
    assert "Checked 1 link: 1 works." in visited.ask(("get", "1"), ("link", "2"))
    assert visited.hosts.looked_at[2:] == [("GET", HELP)]


def test_no_link_selected(visited: Visited) -> None:
    """Without a selected link no request is sent, and the page says so."""
    visited.open()
    assert "No link is selected." in visited.ask()
    assert visited.hosts.looked_at == []


def test_a_test_has_the_checks_of_its_mail(visited: Visited) -> None:
    """A report links to the same checks, which other accounts cannot see."""
    made = visited.browser.submit(f"{visited.path}/test")
    visited.path = made.headers["location"]
    visited.house.pass_time(60)
    text = visited.open()
    assert "css-border-radius" in text
    assert "Back to the report" in text
    assert "Checked 1 link" in visited.ask(("link", "2"))
    stranger = Browser(visited.house, "192.0.2.11")
    sign_up(stranger, "bob")
    assert stranger.open(f"{visited.path}/checks").status == 404


ONE_CLICK = "https://shop.example/one-click?id=1"
BULK = (
    f"List-Unsubscribe: <{ONE_CLICK}>\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n"
).encode() + MAIL


def test_unsubscribing_is_pressed_by_a_person(visited: Visited) -> None:
    """The checks of a mail have a button, which says what came back; opening them sends nothing."""
    visited.path = f"/p/me/inbox/messages/{receive(visited.house, visited.account, BULK)}"
    visited.hosts.pressed[ONE_CLICK] = PressAnswer(ONE_CLICK, 405)
    assert f'action="{visited.path}/checks/unsubscribe"' in visited.open()
    assert visited.hosts.looked_at == []
    answer = visited.browser.submit(f"{visited.path}/checks/unsubscribe")
    assert visited.hosts.looked_at == [("POST", ONE_CLICK)]
    assert "refused, 405" in answer.body.decode()
    assert "does not accept POST" in answer.body.decode()
    assert "/checks/unsubscribe" not in Visited().open(), "a mail that offers none"


@rows("4", "-1", "x", "99999", "\u0661")
def test_invalid_link_numbers(visited: Visited, number: str) -> None:
    """Only links of the mail can be checked."""
    visited.open()
    body = urlencode([("form-token", visited.browser.page.form_token), ("link", number)]).encode()
    assert visited.browser.send("POST", f"{visited.path}/checks/links", body).status == 400
    assert visited.hosts.looked_at == []
