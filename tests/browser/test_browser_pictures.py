"""Pictures of all pages, in three widths and two themes, to be reviewed: ``make pictures``.

They are written to ``pictures/`` and named by page, theme and width.
"""

import itertools
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser

from tests.browser.people import make_account
from tests.browser.tool_world import ToolWorld, running_tool_world
from tests.browser.watching import Watched, watched_page
from tests.house import mail
from tests.servers.daemon import Daemon

pytestmark = [pytest.mark.end_to_end, pytest.mark.pictures]

PICTURES = Path(__file__).parents[2] / "pictures"
WIDTHS = (390, 1024, 1440)  # pixels
HEIGHT = 900
THEMES = ("light", "dark")
STRANGERS = ("/", "/sign-in", "/sign-up")
PNG = b"\x89PNG\r\n"


def own_pages(watched: Watched) -> list[str]:
    """Return the paths of the main menu, of the account page, and of the newest message."""
    watched.go("/inbox")
    page = watched.page
    links = [
        *page.locator("nav[aria-label=Main] a").all(),
        page.locator("header .owner"),
        page.locator("#mails a").first,
    ]
    return [(link.get_attribute("href") or "").removeprefix(watched.origin) for link in links]


def take_pictures(watched: Watched, paths: list[str], look: str) -> Iterator[Path]:
    """Take a picture of the whole of each page; ids of messages are not part of the name."""
    for path in paths:
        watched.go(path)
        name = "message" if path.startswith("/inbox/messages/") else path.strip("/")
        picture = PICTURES / f"{name.replace('/', '-') or 'first'}-{look}.png"
        watched.page.screenshot(path=picture, full_page=True)
        yield picture


@pytest.mark.parametrize(("theme", "width"), list(itertools.product(THEMES, WIDTHS)))
def test_pictures_of_pages(browser: Browser, pages_daemon: Daemon, theme: str, width: int) -> None:
    """Take pictures of all pages, for visitors and for a signed-in account."""
    options = {"color_scheme": theme, "viewport": {"width": width, "height": HEIGHT}}
    look = f"{theme}-{width}"
    with watched_page(browser, pages_daemon.http_port, **options) as watched:
        pictures = list(take_pictures(watched, list(STRANGERS), f"stranger-{look}"))
        person = make_account(watched, pages_daemon)
        person.get_mail(mail(), "signup")
        pictures += take_pictures(watched, own_pages(watched), look)
        watched.require_quiet()
    assert len(set(pictures)) == len(pictures)
    assert all(picture.read_bytes().startswith(PNG) for picture in pictures)


MAIL_TO_JUDGE = (
    b"From: Ann <ann@poor.test>\r\nTo: you@mailcheck.example\r\nSubject: Your invoice\r\n"
    b"Date: Sun, 22 Nov 2026 00:00:00 +0000\r\nMessage-ID: <1.invoice@poor.test>\r\n"
    b"MIME-Version: 1.0\r\nContent-Type: text/html\r\n\r\n<h1>Your invoice</h1><p>Thank you.</p>"
)

BETTER_MAIL = MAIL_TO_JUDGE.replace(b"text/html", b"text/plain")


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToolWorld]:
    """Run an environment with good and bad domains."""
    with running_tool_world(tmp_path_factory.mktemp("pictured")) as world:
        yield world


@pytest.mark.parametrize(("theme", "width"), list(itertools.product(THEMES, WIDTHS)))
def test_pictures_of_results(browser: Browser, tools: ToolWorld, theme: str, width: int) -> None:
    """Take pictures of reports, a comparison, a domain check and blocklists."""
    options = {"color_scheme": theme, "viewport": {"width": width, "height": HEIGHT}}
    with watched_page(browser, tools.daemon.http_port, **options) as watched:
        make_account(watched, tools.daemon)
        page = watched.page
        for to_judge in (MAIL_TO_JUDGE, BETTER_MAIL):
            watched.go("/tests")
            page.get_by_role("button", name="Create test address").click()
            tools.send(page.locator("#address").inner_text(), to_judge)
            page.locator("#verdict-title").wait_for()
        changes = page.locator(".compared a").get_attribute("href") or ""
        shown = {
            "report": (urlsplit(page.url).path, "#verdict-title"),
            "changes": (changes, ".versus"),
            "domains": ("/domains?check=poor.test", "#checked .score-of"),
            "domain-poor": ("/domains/poor.test", ".score-card"),
            "domain-checks": ("/domains/poor.test/checks", "#known-title"),
            "domain-history": ("/domains/poor.test/history", "#settings-title"),
            "blocklists-listed": ("/domains/listed.test/blocklists", ".total"),
        }
        for name, (path, is_there) in shown.items():
            watched.go(path)
            page.locator(is_there).wait_for()
            page.screenshot(path=PICTURES / f"{name}-{theme}-{width}.png", full_page=True)
        watched.require_quiet()
