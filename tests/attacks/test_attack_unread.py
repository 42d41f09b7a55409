"""What one person opens and does not read is bounded, for all doors together."""

import pytest

from mailcheck.assembly.doors.compatible import build_open
from mailcheck.assembly.doors.providers import build_provider_site
from mailcheck.connections.policies import offer_no_tls
from mailcheck.operations.parked_waits import PAGES_OF_PERSON
from mailcheck.web.dashboard.inbox.live import MOST_REPLAYED
from mailcheck.web.site.response_buffers import MAX_BUFFERED_OF_CLIENT, STALLED
from tests.house import House, mail, run
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.conftest import browser as browser
from tests.web.dashboard.conftest import house as house
from tests.web.dashboard.inbox_visit import sign_up
from tests.web.raw_http import RawHttp, request
from tests.web.slow_reader import SlowTransport

pytestmark = pytest.mark.attack


def stream(
    browser: Browser, path: str, transport: type[SlowTransport] = SlowTransport
) -> SlowTransport:
    """Open a stream that nobody reads; return its transport."""
    connection = RawHttp(browser.house, browser.peer, transport)
    cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    connection.send(request(path, f"Cookie: {cookie}"))
    opened: SlowTransport = connection.transport
    return opened


def test_live_pages_of_a_person(house: House, browser: Browser) -> None:
    """A person has a limited number of live pages, in all projects together; others have theirs."""
    ann = sign_up(browser)
    run(house.assembly.accounts.projects.create(ann, "shop"))
    paths = ("/p/me/live", "/p/me/inbox/live")
    opened = [stream(browser, paths[number % 2]) for number in range(PAGES_OF_PERSON)]
    assert not any(b"problem" in one.unread for one in opened)
    browser.open("/projects")
    refused = stream(browser, "/p/me/inbox/live")
    assert b"live pages open, the maximum" in refused.unread
    other = Browser(house, "192.0.2.11")
    sign_up(other, "bob")
    assert b"problem" not in stream(other, "/p/me/inbox/live").unread


@pytest.mark.parametrize(("query", "repeated"), [("", 0), ("?after=c0", MOST_REPLAYED)])
def test_a_live_page_repeats_what_it_shows(
    house: House, browser: Browser, query: str, repeated: int
) -> None:
    """Without a cursor nothing is repeated, and with one at most what the page shows."""
    ann = sign_up(browser)
    for number in range(MOST_REPLAYED + 5):
        house.receive(house.address(account=ann), raw=mail(f"{number}"))
    sent = stream(browser, f"/p/me/inbox/live{query}")
    text = b""
    while sent.unread:
        text += sent.take(len(sent.unread))
    assert text.count(b"event: mail\n") == repeated


def test_streams_that_wait_unread_are_counted(house: House, browser: Browser) -> None:
    """A stream whose client does not read counts as a response; at the maximum it is closed."""
    ann, buffers = sign_up(browser), house.site.response_buffers
    opened = [stream(browser, "/p/me/inbox/live") for _ in range(3)]
    for number in range(90):
        house.receive(house.address(account=ann), raw=mail(f"{number} {'x' * 400}"))
    assert buffers.size == 3 * STALLED
    release = buffers.hold(bytes(MAX_BUFFERED_OF_CLIENT - 4 * STALLED), browser.peer, print)
    opened += [stream(browser, "/p/me/inbox/live?after=c0") for _ in range(4)]
    assert [one.disconnecting for one in opened] == [False] * 4 + [True] * 3
    release()
    house.pass_time(30)
    assert buffers.size == 0
    assert all(one.disconnecting for one in opened), "none of them has been read"


def test_all_doors_share_the_memory(house: House) -> None:
    """The listeners of pages, providers and Mailpit's clients have one maximum together."""
    sites = (
        house.site,
        build_provider_site(house.assembly),
        build_open(house.assembly, offer_no_tls).site,
    )
    assert len({id(one.response_buffers) for one in sites}) == 1
