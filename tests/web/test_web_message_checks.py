"""The checks of a message: GET /inbox/messages/{id}/checks, and the check of its links."""

import json
from typing import Any

import pytest

from mailcheck.checks.findings_table import ROWS
from mailcheck.checks.link_checks import Hop, LinkAnswer
from mailcheck.checks.press_unsubscribe import PressAnswer
from mailcheck.operations.inbox.check_message import BUDGET, DEADLINE, OF_HOST, PRESS_BUDGET
from tests.fakes.fake_hosts import FakeHosts
from tests.fakes.memory_zone import MemoryZone
from tests.house import House
from tests.table import rows
from tests.web.checking import checking_house

HEAD = (
    "From: Shop <shop@example.com>\r\n"
    "Subject: Welcome\r\n"
    "MIME-Version: 1.0\r\n"
    "Content-Type: text/html; charset=utf-8\r\n"
    "\r\n"
)
CONFIRM = "https://shop.example/confirm?token=abcdefabcdef1234"
LEAVE = "https://shop.example/leave"
HELP, NEWS = "https://shop.example/help", "https://news.example/"
HTML = (
    f'<p style="border-radius:4px">Hello <img src="https://shop.example/a.png"></p>\r\n'
    f'<a href="{CONFIRM}">Confirm your address</a>\r\n'
    f'<a href="{HELP}">Help</a> <a href="{NEWS}">News</a>\r\n'
    f'<a href="{LEAVE}">Unsubscribe</a>\r\n'
)


class Checked:
    """A house with a message whose links lead to scripted hosts."""

    def __init__(self, html: str = HTML, head: str = "") -> None:
        self.hosts = FakeHosts()
        self.house: House = checking_house(MemoryZone({}), hosts=self.hosts)
        self.house.receive(self.house.address(), raw=(head + HEAD + html).encode())
        message_id = self.house.get("/inbox/messages").json["messages"][0]["id"]
        self.path = f"/inbox/messages/{message_id}/checks"

    def ask(self, **body: Any) -> Any:
        """Begin to check links."""
        return self.house.ask("POST", f"{self.path}/links", data=json.dumps(body).encode())

    def links(self, **body: Any) -> dict[str, Any]:
        """Check links, and return the results."""
        answer = self.ask(**body).answer()
        assert answer.status == 200, answer
        return {one["url"]: one for one in answer.json["links"]}


@pytest.fixture
def checked() -> Checked:
    """A house with a message with links."""
    return Checked()


def test_the_checks_of_a_message(checked: Checked) -> None:
    """The checks contain features with lines, barriers, and links. No request is sent."""
    found = checked.house.get(checked.path).json
    radius = next(
        one for one in found["compatibility"]["findings"] if one["feature"] == "css-border-radius"
    )
    assert radius["places"][0]["line"] == 1
    assert "Outlook (Windows)" in radius["unsupported"]
    barriers = {one["id"] for one in found["accessibility"]["findings"]}
    assert barriers == {"accessibility.no-language", "accessibility.image-without-alt"}
    links = {one["url"]: one for one in found["links"]}
    assert links[CONFIRM]["isBest"]
    assert links[LEAVE]["isUnsubscribe"]
    assert links[HELP] == {"url": HELP, "words": "Help", "isBest": False, "isUnsubscribe": False}
    assert checked.hosts.looked_at == []


def test_the_score_of_a_report_does_not_change(checked: Checked) -> None:
    """Findings of these checks do not change the score."""
    assert not any(row.price or row.area for row in ROWS if row.id.startswith("accessibility."))


def test_a_message_without_html(checked: Checked) -> None:
    """A plain-text mail has links, but no results for HTML."""
    checked.house.receive(
        checked.house.address("text"), raw=b"Subject: x\r\n\r\nSee " + HELP.encode()
    )
    message_id = checked.house.get("/inbox/messages").json["messages"][0]["id"]
    found = checked.house.get(f"/inbox/messages/{message_id}/checks").json
    assert found["compatibility"] is None
    assert [one["url"] for one in found["links"]] == [HELP]


def test_links_are_requested_with_head_by_default(checked: Checked) -> None:
    """By default, the best link and the unsubscribe link are not requested."""
    checked.hosts.links[HELP] = LinkAnswer(
        HELP, "HEAD", (Hop(HELP, 301), Hop("https://shop.example/en/help", 404))
    )
    found = checked.links()
    assert checked.hosts.looked_at == [("HEAD", HELP), ("HEAD", NEWS)]
    assert found[NEWS]["verdict"] == "works"
    assert found[HELP]["verdict"] == "broken"
    assert found[HELP]["status"] == 404
    assert found[HELP]["finalUrl"] == "https://shop.example/en/help"
    assert found[HELP]["redirects"] == [
        {"url": HELP, "status": 301},
        {"url": "https://shop.example/en/help", "status": 404},
    ]


def test_named_links_are_requested(checked: Checked) -> None:
    """Links that are named are requested, including the best link. GET is allowed for one link."""
    assert checked.links(urls=[CONFIRM], method="GET")[CONFIRM]["method"] == "GET"
    assert checked.hosts.looked_at == [("GET", CONFIRM)]


@rows(
    {"urls": ["https://elsewhere.example/"]},
    {"urls": [HELP + "?x"]},
    {"urls": [HELP, NEWS], "method": "GET"},
    {"urls": [], "method": "GET"},
    {"method": "GET"},
    {"method": "POST"},
    {"urls": HELP},
    {"urls": [7]},
    {"url": HELP},
)
def test_invalid_requests(checked: Checked, body: Any) -> None:
    """Links outside the mail, and GET for several links, are rejected without any request."""
    assert checked.ask(**body).answer().status == 400
    assert checked.hosts.looked_at == []


def test_an_account_has_a_limit() -> None:
    """Beyond the limit, links are not checked until the next minute. Accounts have own limits."""
    checked = Checked("".join(f'<a href="https://h{n}.example/">{n} is it</a>' for n in range(80)))
    verdicts = [one["verdict"] for _ in range(3) for one in checked.links().values()]
    assert verdicts.count("works") == BUDGET.per_minute
    assert verdicts.count("not-checked") == 3 * 80 - BUDGET.per_minute
    assert len(checked.hosts.looked_at) == BUDGET.per_minute
    checked.house.pass_time(60)
    assert {one["verdict"] for one in checked.links().values()} == {"works"}


def test_two_requests_at_a_time_for_each_host() -> None:
    """Each host gets two requests at a time. Links without a turn in time are not checked."""
    checked = Checked("".join(f'<a href="{HELP}/{n}">Page {n}</a>' for n in range(9)))
    checked.hosts.is_stalling = True
    pending = checked.ask()
    assert not pending.is_answered
    assert len(checked.hosts.looked_at) == OF_HOST
    for _ in range(int(DEADLINE) + 1):
        checked.house.pass_time(1)
    found = pending.answer().json["links"]
    assert {one["problem"] for one in found} == {"busy"}
    assert len(found) == 9


# One-click unsubscribe.

ONE_CLICK = "https://shop.example/one-click?id=1"
BULK_HEAD = (
    f"List-Unsubscribe: <mailto:leave@shop.example>,\r\n <{ONE_CLICK}>\r\n"
    "List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n"
)


def bulk_mail(head: str = BULK_HEAD) -> Checked:
    """Return a house with a mail of a mailing list."""
    return Checked(HTML, head)


def press(checked: Checked) -> Any:
    """Press the unsubscribe of the mail."""
    answer = checked.house.ask("POST", f"{checked.path}/unsubscribe").answer()
    assert answer.status == 200, answer
    return answer.json


def test_unsubscribing_is_pressed_on_request() -> None:
    """Only this route sends the request; the result says what came back and what is wrong."""
    checked = bulk_mail()
    checked.house.get(checked.path)
    checked.links()
    assert ("POST", ONE_CLICK) not in checked.hosts.looked_at
    accepted = press(checked)
    assert checked.hosts.looked_at[-1] == ("POST", ONE_CLICK)
    assert (accepted["verdict"], accepted["status"], accepted["fix"]) == ("accepted", 200, None)
    checked.hosts.pressed[ONE_CLICK] = PressAnswer(ONE_CLICK, 302, "https://shop.example/login")
    refused = press(checked)
    assert (refused["verdict"], refused["problem"]) == ("refused", "login")
    assert refused["location"] == "https://shop.example/login"


@rows("", BULK_HEAD.replace("-Post", "-Pest"), BULK_HEAD.replace("https", "http"))
def test_a_mail_without_one_click(head: str) -> None:
    """Without an https address and the second field, no request is sent."""
    checked = bulk_mail(head)
    found = press(checked)
    assert (found["verdict"], found["problem"], found["url"]) == ("not-sent", "not-offered", None)
    assert checked.hosts.looked_at == []


def test_presses_are_limited() -> None:
    """An account presses a limited number of times a minute."""
    checked = bulk_mail()
    found = [press(checked)["problem"] for _ in range(PRESS_BUDGET.per_minute + 1)]
    assert found == [None] * PRESS_BUDGET.per_minute + ["budget"]
