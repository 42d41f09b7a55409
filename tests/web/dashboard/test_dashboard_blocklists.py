"""The tab of blocklist checks: a row for each list, and events for their answers."""

import re
from urllib.parse import quote

import pytest

from mailcheck.config.options import LimitsOptions
from tests.fakes.memory_zone import MemoryZone
from tests.web.checking import zone_with
from tests.web.dashboard.tools_visit import MARKUP, visit_tools

LISTED = {
    "bad.example": {"A": ["8.8.4.1"]},
    "bad.example.multi.uribl.com": {"A": ["127.0.0.2"], "TXT": [f"See {MARKUP}"]},
    "bad.example.dbl.spamhaus.org": {"A": ["127.0.1.2"], "TXT": ["spam"]},
}
CHECK = "/p/me/domains/bad.example/blocklists"
LIVE = f"{CHECK}/live"
SLOW = "bad.example.dbl.spamhaus.org"
DEADLINE = 3.0


def rows(body: bytes) -> list[tuple[str, str]]:
    """Return zone and status of each row in the order of the page."""
    found = re.findall(r'<tr id="list-([^"]+)" class="(\w+)">', body.decode())
    return [(zone, status) for zone, status in found]


def row(body: bytes, zone: str) -> str:
    """Return the markup of one row."""
    text = body.decode()
    begin = text.index(f'<tr id="list-{zone}"')
    return text[begin : text.index("</tr>", begin)]


@pytest.fixture
def zone() -> MemoryZone:
    """Return a zone in which a domain is on two lists."""
    return zone_with(LISTED)


def test_the_page_has_a_row_for_each_list(zone: MemoryZone) -> None:
    """The page has all rows before any list is queried; without scripts it loads the result."""
    browser = visit_tools(zone)
    answer = browser.open(CHECK)
    assert [status for _, status in rows(answer.body)] == ["pending"] * 32
    assert zone.asked == []
    body = answer.body.decode()
    assert f'data-live="{LIVE}"' in body
    whole = f"{CHECK}?whole=true"
    assert f'<noscript><meta http-equiv="refresh" content="0;url={whole}"></noscript>' in body


def test_the_finished_table(zone: MemoryZone) -> None:
    """Lists with the domain come first, with weight, meaning, reason and the link for removal."""
    browser = visit_tools(zone)
    answer = browser.open(f"{CHECK}?whole=true")
    shown = rows(answer.body)
    assert len(shown) == 32
    assert shown[:2] == [("dbl.spamhaus.org", "listed"), ("multi.uribl.com", "listed")]
    assert {status for _, status in shown[2:]} == {"clean"}
    text = row(answer.body, "multi.uribl.com")
    for words in ("spam domain (black)", "<strong>8</strong> of 10", "https://lookup.uribl.com/"):
        assert words in text
    assert "&lt;script&gt;alert(1)" in text
    assert "<script>alert" not in answer.body.decode()
    assert "bad.example is on 2 of the 32 lists that answered." in browser.page.text


def test_unknown_is_neither_good_nor_bad(zone: MemoryZone) -> None:
    """A list that does not answer is unknown, with the reason, and follows the listings."""
    zone.silent.add(SLOW)
    browser = visit_tools(zone)
    stream = browser.stream(LIVE)
    browser.house.pass_time(DEADLINE)
    told = next(one for one in stream.named("row") if one["zone"] == "dbl.spamhaus.org")
    assert told["status"] == "unknown"
    assert '<span class="badge unknown">unknown</span>' in told["html"]
    assert "The list did not answer in time." in told["html"]
    assert "good" not in told["html"]
    (done,) = stream.named("done")
    assert done["order"][:2] == ["multi.uribl.com", "dbl.spamhaus.org"]
    assert "1 list could not be queried" in done["html"]
    assert stream.has_ended


def test_rows_are_sent_as_lists_answer(zone: MemoryZone) -> None:
    """Each list has one event as soon as it has answered, and the last event follows them."""
    zone.silent.add(SLOW)
    browser = visit_tools(zone)
    stream = browser.stream(LIVE)
    for _ in range(2):  # the lists that have it are asked for their reason
        browser.house.pass_time(0.1)
    first = [one["zone"] for one in stream.named("row")]
    assert len(first) == len(set(first)) == 31
    assert "dbl.spamhaus.org" not in first
    assert stream.named("done") == []
    browser.house.pass_time(DEADLINE)
    assert [one["zone"] for one in stream.named("row")][31:] == ["dbl.spamhaus.org"]
    assert len(stream.named("done")) == 1


@pytest.mark.parametrize("query", ["10.0.0.1", "x", "a b", "<script>"])
def test_invalid_queries(zone: MemoryZone, query: str) -> None:
    """An invalid query is explained, and no list is queried."""
    browser = visit_tools(zone)
    answer = browser.open(f"/domains/{quote(query, safe='')}/blocklists")
    assert answer.status == 400
    assert "<script>alert" not in answer.body.decode()
    assert zone.asked == []


def test_over_the_limit(zone: MemoryZone) -> None:
    """A stream over the account's limit reports the limit and queries no list."""
    browser = visit_tools(zone, limits=LimitsOptions(requests_per_minute=1))
    assert browser.open(f"{CHECK}?whole=true").status == 200
    asked = len(zone.asked)
    stream = browser.stream(LIVE)
    (problem,) = stream.named("problem")
    assert "limit of 1 check per minute on the pages" in problem["problem"]
    assert len(zone.asked) == asked
    assert browser.open(f"{CHECK}?whole=true").status == 429
