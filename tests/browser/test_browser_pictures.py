"""Pictures of the pages, in three widths and two themes, to be looked at: ``make pictures``.

They are put into ``pictures/``, named by page, theme and width.
"""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.people import sign_up
from tests.browser.watching import Watched, watched_page
from tests.house import mail
from tests.servers.daemon import Daemon

pytestmark = [pytest.mark.end_to_end, pytest.mark.pictures]

PICTURES = Path(__file__).parents[2] / "pictures"
WIDTHS = (390, 820, 1440)  # pixels
HEIGHT = 900
THEMES = ("light", "dark")
STRANGERS = ("/", "/sign-in", "/sign-up")
PNG = b"\x89PNG\r\n"


def own_pages(watched: Watched) -> list[str]:
    """List the paths of the main menu, of the account's page, and of the newest mail."""
    watched.go("/inbox")
    page = watched.page
    links = [
        *page.locator("nav[aria-label=Main] a").all(),
        page.locator("header .owner"),
        page.locator("#mails a").first,
    ]
    return [(link.get_attribute("href") or "").removeprefix(watched.origin) for link in links]


def take_pictures(watched: Watched, paths: list[str], look: str) -> Iterator[Path]:
    """Take a picture of each page, as long as the page is; what a mail is called is no name."""
    for path in paths:
        watched.go(path)
        name = "message" if path.startswith("/inbox/messages/") else path.strip("/")
        picture = PICTURES / f"{name.replace('/', '-') or 'first'}-{look}.png"
        watched.page.screenshot(path=picture, full_page=True)
        yield picture


@pytest.mark.parametrize(("theme", "width"), list(itertools.product(THEMES, WIDTHS)))
def test_pages_are_pictured(browser: Browser, pages_daemon: Daemon, theme: str, width: int) -> None:
    """Each page, a stranger's and one's own, is there as a picture to look at."""
    options = {"color_scheme": theme, "viewport": {"width": width, "height": HEIGHT}}
    look = f"{theme}-{width}"
    with watched_page(browser, pages_daemon.http_port, **options) as watched:
        pictures = list(take_pictures(watched, list(STRANGERS), f"stranger-{look}"))
        person = sign_up(watched, pages_daemon)
        person.get_mail(mail(), "signup")
        pictures += take_pictures(watched, own_pages(watched), look)
        watched.require_quiet()
    assert len(set(pictures)) == len(pictures)
    assert all(picture.read_bytes().startswith(PNG) for picture in pictures)
