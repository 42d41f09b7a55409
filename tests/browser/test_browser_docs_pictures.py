"""The pictures in docs/, taken from the pages of a real daemon by ``make pictures``.

Each shows one screen in the light theme.
"""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.people import make_account
from tests.browser.tool_world import running_tool_world
from tests.browser.watching import Watched, watched_page
from tests.house import mail

pytestmark = [pytest.mark.end_to_end, pytest.mark.pictures]

PICTURES = Path(__file__).parents[2] / "docs" / "_static" / "pictures"
SCREEN = {"width": 1280, "height": 720}  # pixels
LARGEST = 150_000  # bytes

SIGN_UP = "Your code is 482913\n\nOr confirm your address: https://shop.test/confirm?t=7f3a\n"
MAILS = (
    ("orders", "Order 40172 is on its way", "It arrives tomorrow.\n"),
    ("reset", "Choose a new password", "Follow https://shop.test/reset?t=91ac within an hour.\n"),
    ("signup", "Confirm your address", SIGN_UP),
)
INVOICE = (
    b"From: Ann Example <ann@poor.test>\r\nTo: you@mailcheck.example\r\n"
    b"Subject: Your invoice\r\nDate: Sun, 22 Nov 2026 00:00:00 +0000\r\n"
    b"Message-ID: <1.invoice@poor.test>\r\n\r\nYour invoice: https://poor.test/invoice\r\n"
)


def take(watched: Watched, name: str) -> None:
    """Take a screenshot, and fail if it is too large for a page."""
    path = PICTURES / f"{name}.png"
    watched.page.screenshot(path=path)
    assert path.stat().st_size < LARGEST


def test_pictures_of_the_documentation(browser: Browser, tmp_path: Path) -> None:
    """Take pictures of the inbox, of a report and of a domain check."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    options = {"color_scheme": "light", "viewport": SCREEN}
    with (
        running_tool_world(tmp_path) as world,
        watched_page(browser, world.daemon.http_port, **options) as watched,
    ):
        person = make_account(watched, world.daemon)
        for tag, subject, text in MAILS:
            person.get_mail(mail(subject, text.replace("\n", "\r\n"), "Shop <shop@shop.test>"), tag)
        watched.go_until("/inbox", lambda: watched.page.locator("#mails a").count() >= len(MAILS))
        watched.page.locator("#mails a").first.click()
        watched.page.locator("#code-1").wait_for()
        watched.page.locator("summary:has-text('Authentication') .badge").first.wait_for()
        watched.page.mouse.move(0, 0)  # no link is shown as hovered
        take(watched, "inbox")
        watched.go("/tests")
        watched.page.get_by_role("button", name="Create test address").click()
        world.send(watched.page.locator("#address").inner_text(), INVOICE)
        watched.page.locator("#issues-title").wait_for()
        take(watched, "report")
        watched.go("/domains/poor.test")
        watched.page.locator(".score-card").wait_for()
        take(watched, "domain")
