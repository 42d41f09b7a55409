"""All pages in a real browser: accessibility in both themes, width, number and size of requests."""

from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Response

from tests.browser.conftest import one_browser
from tests.browser.people import make_account
from tests.browser.tool_world import ToolWorld, running_tool_world
from tests.browser.watching import OneBrowser, Watched, watched_page
from tests.house import mail

__all__ = ["one_browser"]

pytestmark = pytest.mark.end_to_end

WIDTHS = (320, 375, 700, 768, 825, 1280)  # pixels
MOST_REQUESTS = 10
MOST_BYTES = 80_000
"""Maximum number of bytes that a first visit of a page receives, compressed."""

OF_STRANGERS = ["/", "/sign-in", "/sign-up", "/api", "/api/inbox", "/api/types", "/docs/no-page"]

INVITATION = (
    b"From: ann@example.com\r\nSubject: Invitation\r\nContent-Type: text/calendar\r\n\r\n"
    b"BEGIN:VCALENDAR\r\nMETHOD:REQUEST\r\nBEGIN:VEVENT\r\nDTSTART:20261201T100000Z\r\n"
    b"SUMMARY:Planning\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToolWorld]:
    """Run a daemon beside good and bad domains."""
    with running_tool_world(tmp_path_factory.mktemp("every-page")) as world:
        yield world


def fill(watched: Watched, world: ToolWorld) -> list[str]:
    """Sign up, fill all pages, and return their paths."""
    person, page = make_account(watched, world.daemon), watched.page
    for number in range(3):
        person.get_mail(mail(f"Mail {number}"), "signup")
    person.get_mail(INVITATION)
    tests = []
    for _ in range(2):
        watched.go("/tests")
        page.get_by_role("button", name="Create test address").click()
        page.locator("#address").wait_for()
        tests.append(urlsplit(page.url).path)
    watched.go(tests[0])
    world.send(page.locator("#address").inner_text(), mail())
    page.locator("#verdict-title").wait_for()
    report = page.locator("#share-link").get_attribute("href") or ""
    watched.go("/webhooks")
    page.get_by_label("URL", exact=True).fill("https://ci.example.com/mail")
    page.get_by_role("button", name="Create webhook").click()
    watched.go("/webhooks")
    page.get_by_role("button", name="Test").click()
    watched.go("/inbox")
    messages = [one.get_attribute("href") or "" for one in page.locator("#mails a").all()]
    watched.go(messages[0])
    shared = page.locator("#share-link").get_attribute("href") or ""
    watched.go("/")
    menu = [
        urlsplit(one.get_attribute("href") or "").path for one in page.locator("header a").all()
    ]
    return [
        *dict.fromkeys(menu),
        "/inbox?q=is:unread&all=true",
        "/inbox?q=no-such-word",
        "/inbox?q=larger:x",
        *messages[:2],
        f"{messages[1]}?view=headers",
        f"{messages[1]}/checks",
        urlsplit(shared).path,
        urlsplit(report).path,
        *tests,
        f"{tests[0]}/preflight",
        "/account/activity",
        "/projects",
        "/api/webhooks",
        "/api/responses",
        "/no-such-page",
    ]


def fill_domains(watched: Watched, world: ToolWorld) -> list[str]:
    """Sign up, watch domains, and return the paths of their pages."""
    make_account(watched, world.daemon)
    for domain in ("good.test", "poor.test", "listed.test"):
        watched.go(f"/domains/{domain}")
        watched.page.locator(".score-card").wait_for()
        watched.page.get_by_role("switch").click()
        watched.page.locator("[role=switch][aria-checked=true]").wait_for()
    tabs = ("", "/checks", "/reports", "/history")
    return [
        *(f"/domains/poor.test{tab}" for tab in tabs),
        "/domains/listed.test/blocklists",
        "/domains",
        "/reports",
        "/traffic",
    ]


def show_strangers(_: Watched, __: ToolWorld) -> list[str]:
    """Return the paths of the pages that visitors see."""
    return OF_STRANGERS


def faults_of(watched: Watched, path: str) -> list[str]:
    """Return what is wrong with a page."""
    page, faults = watched.page, []
    received: list[Response] = []

    def note(response: Response) -> None:
        received.append(response)

    page.on("response", note)
    page.goto(watched.origin + path, wait_until="load")
    page.remove_listener("response", note)
    sizes = [
        one.request.sizes()["responseBodySize"]
        for one in received
        if "event-stream" not in one.headers.get("content-type", "")
    ]
    if len(received) > MOST_REQUESTS:
        faults.append(f"{path} sends {len(received)} requests")
    if sum(sizes) > MOST_BYTES:
        faults.append(f"{path} receives {sum(sizes)} bytes")
    for theme in ("light", "dark"):
        # Without motion, so that colours are not judged in the middle of a transition.
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        try:
            watched.require_accessible()
        except AssertionError as failure:
            faults.append(f"{path} in the {theme} theme: {failure}")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        excess = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        if excess > 0:
            faults.append(f"{path} is {excess} pixels wider than {width}")
    faults += [f"{path} asks {one}" for one in watched.elsewhere]
    return faults


def look_at(
    one_browser: OneBrowser, world: ToolWorld, fill: Callable[[Watched, ToolWorld], list[str]]
) -> list[str]:
    """Fill the pages of a new account, and return what is wrong with each."""
    port = world.daemon.http_port
    with one_browser.lent() as browser, watched_page(browser, port) as watched:
        paths = fill(watched, world)
        state = watched.context.storage_state()
    faults = []
    for path in paths:
        # The browser is lent again for each page, so that a busy machine has time for all.
        with (
            one_browser.lent() as browser,
            watched_page(browser, port, storage_state=state) as watched,
        ):
            faults += faults_of(watched, path)
    return faults


@pytest.mark.parametrize("filling", [fill, fill_domains, show_strangers])
def test_every_page(
    one_browser: OneBrowser,
    world: ToolWorld,
    filling: Callable[[Watched, ToolWorld], list[str]],
) -> None:
    """No page has serious accessibility issues, is too wide, or takes long to load."""
    faults = look_at(one_browser, world, filling)
    assert not faults, "\n".join(faults)
