"""Deliverability tests in a real browser, from the test address to the shared report."""

import re
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, expect

from tests.browser.tool_world import ToolWorld
from tests.browser.watching import Watched, watched_page

MAIL_COMMAND = re.compile(r"\bmail from:<ann@good\.test>", re.IGNORECASE)
"""Python's smtplib writes it in capitals up to 3.12."""

MAIL = (
    b"From: Ann Example <ann@poor.test>\r\nTo: you@mailcheck.example\r\n"
    b"Subject: Your invoice\r\nDate: Sun, 22 Nov 2026 00:00:00 +0000\r\n"
    b"Message-ID: <1.invoice@poor.test>\r\n\r\nYour invoice: https://poor.test/invoice\r\n"
)

WORST = (
    b"From: Ann Example <ann@poor.test>\r\nFrom: other@poor.test\r\n"
    b"Subject: FREE MONEY!!! 100% free\r\n"
    b"MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n"
    b"--b\r\nContent-Type: text/html\r\n\r\n<form><script>go()</script>"
    b'<img src="http://images.test/a.png"><a href="http://192.0.2.1/x">https://bank.test</a>\r\n'
    b"--b\r\nContent-Type: application/octet-stream; name=a.exe\r\n"
    b"Content-Disposition: attachment; filename=a.exe\r\n\r\nMZ\r\n--b--\r\n"
)

MOST_PAGES = 4
"""Maximum number of printed pages of a report."""

WIDTHS = (390, 820, 1440)  # pixels; the last one is a desktop's
HIGHEST = 2_600  # pixels of a report on a desktop
LARGEST = 80_000  # characters of a report's page


def make_address(visitor: Watched) -> str:
    """Create a test by its button and return the address."""
    visitor.go("/tests")
    visitor.page.get_by_role("button", name="Create test address").click()
    expect(visitor.page.locator("#live")).to_contain_text("updates automatically")
    return visitor.page.locator("#address").inner_text()


def open_all(visitor: Watched) -> None:
    """Unfold everything on the page."""
    page = visitor.page
    for details in page.locator("main details").all():
        details.evaluate("details => details.open = true")
    for details in page.locator("main details[data-part-id]").all():
        # Wait for parts that are loaded when they are opened.
        page.locator(f"#{details.get_attribute('data-part-id')}").wait_for()


def test_from_the_address_to_the_shared_report(
    visitor: Watched, world: ToolWorld, browser: Browser
) -> None:
    """The report appears without a reload; it can be checked again, tried and shared."""
    page = visitor.page
    address = make_address(visitor)
    visitor.require_accessible()
    page.evaluate("window.isSamePage = true")
    world.send(address, MAIL)
    page.locator("#issues-title").wait_for()
    assert page.evaluate("window.isSamePage"), "there was a reload"
    expect(page.get_by_role("heading", level=1)).to_have_text(
        "This mail may be treated as spam."
        " Gmail, Yahoo and Outlook.com reject it from a bulk sender"
    )
    expect(page.locator("#mail-subject")).to_have_text("Your invoice")
    expect(page.locator("#mail .plain")).to_contain_text("https://poor.test/invoice")
    expect(page).to_have_title("7.2 of 10: Your invoice - mailcheck")
    expect(page.locator("#news")).to_have_text("The report is ready.")
    costs = page.locator(".issues .minus").all_inner_texts()
    assert round(10 + sum(map(float, costs)), 1) == 7.2
    open_all(visitor)
    expect(page.locator(".transcript")).to_contain_text(MAIL_COMMAND)
    visitor.require_accessible()

    link = urlsplit(page.locator("#share-link").get_attribute("href") or "").path
    with watched_page(browser, world.daemon.http_port) as stranger:
        stranger.go(link)
        expect(stranger.page.get_by_role("img", name="Score 7.2 of 10")).to_be_visible()
        expect(stranger.page.get_by_role("button", name="Check again")).to_have_count(0)
        open_all(stranger)
        stranger.require_accessible()
        stranger.require_quiet()

    page.get_by_role("button", name="Check again").click()
    expect(page.locator(".notice")).to_contain_text("All checks are running again.")
    page.locator("#issues-title").wait_for()
    page.get_by_role("link", name="Try DNS records").click()
    expect(page.get_by_label("Name").first).to_have_value("_dmarc.poor.test")
    page.get_by_role("button", name="Add a record").click()
    expect(page.get_by_label("Name")).to_have_count(4)
    page.get_by_label("Name").last.fill("poor.test")
    page.get_by_label("Value").last.fill("v=spf1 -all")
    page.get_by_role("button", name="Calculate the score").click()
    expect(page.get_by_role("img", name="Real score 7.2 of 10")).to_be_visible()
    expect(page.locator(".versus")).to_contain_text("preflight")
    visitor.require_accessible()

    visitor.go("/tests")
    expect(page.locator(".tests li").first).to_contain_text("Your invoice")
    expect(page.locator(".tests li").first).to_contain_text("7.2 of 10")
    visitor.require_accessible()


def require_fits(visitor: Watched, highest: int) -> None:
    """Fail if a page is too wide, too long, or has serious issues in either theme."""
    page = visitor.page
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for theme in ("light", "dark"):
            # Disable transitions: intermediate colours have too little contrast.
            page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            visitor.require_accessible()
    assert page.evaluate("document.documentElement.scrollHeight") <= highest


def test_a_report_fits(visitor: Watched, world: ToolWorld) -> None:
    """The folded report is short, small and not too wide, and shows its mail in the frame."""
    page = visitor.page
    newsletter = MAIL.replace(
        b"\r\n\r\n",
        b"\r\nMIME-Version: 1.0\r\nContent-Type: text/html\r\n\r\n<h1>Your invoice</h1>",
    )
    world.send(make_address(visitor), newsletter)
    frame = page.frame_locator("#mail iframe")
    expect(frame.get_by_role("heading", name="Your invoice")).to_be_visible()
    require_fits(visitor, HIGHEST)
    assert len(page.content()) < LARGEST
    page.get_by_text("Download", exact=True).click()
    with page.expect_download() as waiting:
        page.get_by_role("link", name="one HTML file").click()
    file = waiting.value.path().read_text("utf-8")
    assert "srcdoc=" in file


def count_pages(page: Page) -> int:
    """Print a page as a PDF, and return its number of pages."""
    return len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4")))


def test_a_report_is_printed(visitor: Watched, world: ToolWorld) -> None:
    """A printed report shows what to fix on at most four pages; all details are apart."""
    page = visitor.page
    for mail in (MAIL, WORST):
        world.send(make_address(visitor), mail)
        page.locator("#issues-title").wait_for()
        path = urlsplit(page.url).path
        assert count_pages(page) <= MOST_PAGES
    page.emulate_media(media="print")
    expect(page.locator(".card > .issues .fix").last).to_be_visible()
    expect(page.locator("#check-spf .facts")).to_be_hidden()
    expect(page.locator(".report-bar")).to_be_hidden()
    expect(page.get_by_role("navigation", name="Main")).to_be_hidden()
    page.emulate_media(media="null")
    page.get_by_text("Download", exact=True).click()
    page.get_by_role("link", name="Open all details").click()
    page.wait_for_url(f"**{path}?details=true")
    expect(page.locator("#check-spf .facts")).to_be_visible()
    assert count_pages(page) > MOST_PAGES
