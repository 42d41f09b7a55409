"""The inbox, its messages and shared mail in a real browser."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.people import Person, make_account
from tests.browser.watching import Watched, watched_page
from tests.house import mail
from tests.servers.daemon import Daemon, running_daemon

SEEN_MAILS = """[...document.querySelectorAll("#mails li")]
  .filter(row => row.getBoundingClientRect().bottom <= innerHeight).length"""

NOTE_SHIFTS = """window.shifts = 0;
new PerformanceObserver(list => {
  for (const one of list.getEntries()) if (!one.hadRecentInput) window.shifts += one.value;
}).observe({ type: "layout-shift", buffered: true });"""
"""Sums up the layout shifts that the reader did not cause, as browsers report them."""

SHIFTS = """() => new Promise(done => requestAnimationFrame(
  () => requestAnimationFrame(() => done(window.shifts))))"""


def open_inbox(watched: Watched, query: str = "") -> None:
    """Open the inbox and wait until it is live."""
    watched.go(f"/inbox{query}")
    watched.page.locator("#live[data-state=open]").wait_for()


def test_mail_appears_live_and_can_be_read_shared_and_deleted(
    person: Person, watched: Watched, browser: Browser
) -> None:
    """A message appears live, is read and shared, and disappears everywhere when deleted."""
    page = watched.page
    open_inbox(watched)
    person.get_mail(mail("Confirm it"), "signup")
    row = page.get_by_role("link", name="Confirm it")
    row.wait_for()
    expect(page.locator("#mails")).to_contain_text("+signup")
    expect(page.locator("#mails")).to_contain_text("482913")
    watched.require_accessible()
    row.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Confirm it")
    expect(page.locator("#code-1")).to_have_text("482913")
    expect(page.locator("#best-link")).to_have_attribute(
        "href", "https://example.com/confirm?t=7f3a"
    )
    watched.require_accessible()
    share = page.locator("#share-link").get_attribute("href") or ""
    path = share.partition("/share/")[2]
    with watched_page(browser, person.daemon.http_port) as stranger:
        stranger.go(f"/share/{path}")
        expect(stranger.page.get_by_role("heading", level=1)).to_have_text("Confirm it")
        expect(stranger.page.get_by_role("button", name="Sign out")).to_have_count(0)
        stranger.require_accessible()
        stranger.require_quiet()
        page.get_by_role("button", name="Delete", exact=True).click()
        expect(page.locator("#toast")).to_contain_text("Message deleted.")
        expect(page.locator("#mails li:visible")).to_have_count(0)
        stranger.go(f"/share/{path}")
        expect(stranger.page.locator("main")).to_contain_text("is not valid")
        page.locator("#toast").get_by_role("button", name="Undo").click()
        expect(page.locator("#mails li:visible")).to_have_count(1)
        stranger.go(f"/share/{path}")
        expect(stranger.page.get_by_role("heading", level=1)).to_have_text("Confirm it")
    watched.require_quiet()


def test_the_toolbar_acts_on_the_whole_list(person: Person, watched: Watched) -> None:
    """All messages of all pages are selected, deleted and back again, by mouse or keyboard."""
    page = watched.page
    for number in range(5):
        person.get_mail(mail(f"Mail {number}"), "x")
    open_inbox(watched, "?limit=2")
    page.get_by_role("button", name="Select all 5").click()
    expect(page.locator("#mails input:checked")).to_have_count(2)
    expect(page.locator("#selected")).to_have_text("5 selected: clear")
    page.get_by_role("button", name="Mark read").click()
    expect(page.locator("#mails li.unread")).to_have_count(0)
    page.get_by_role("button", name="Delete selected").wait_for()
    page.keyboard.press("a")
    page.get_by_role("button", name="Delete selected").click()
    expect(page.locator("#toast")).to_contain_text("5 messages deleted.")
    expect(page.locator("#mails li")).to_have_count(0)
    page.keyboard.press("z")
    expect(page.locator("#mails li")).to_have_count(2)
    page.locator("#mails input").first.check()
    expect(page.locator("#selected")).to_have_text("1 selected: clear")
    page.keyboard.press("Delete")
    expect(page.locator("#toast")).to_contain_text("Message deleted.")
    page.locator("#undo-delete").click()
    expect(page.locator("#selected")).to_have_text("Select all 5")
    watched.require_accessible()
    watched.require_quiet()


def test_a_code_in_a_row_is_copied(person: Person, watched: Watched) -> None:
    """A click on the code of a row copies it and does not open the message."""
    watched.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = watched.page
    person.get_mail(mail())
    open_inbox(watched)
    page.get_by_role("button", name="Copy code 482913").click()
    expect(page.locator("[data-copy-state]")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == "482913"
    expect(page.locator("#mail")).to_have_count(0)
    watched.require_quiet()


def test_a_wide_mail_is_fitted_to_its_width(person: Person, watched: Watched) -> None:
    """A mail that is wider than its frame is shrunk on request, and others are not."""
    page = watched.page
    page.set_viewport_size({"width": 1024, "height": 800})
    head = b"From: a@example.com\r\nSubject: Wide\r\nContent-Type: text/html\r\n\r\n"
    person.get_mail(head + b"<table width=1600><tr><td>left<td align=right>right</table>\r\n")
    watched.go("/inbox")
    page.get_by_role("link", name="Wide").click()
    frame = page.frame_locator("iframe.mail-frame")
    box, right = page.locator(".mail-body").bounding_box(), frame.get_by_text("right")
    assert box is not None
    button = page.get_by_role("button", name="Fit to width")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    shown = right.bounding_box()
    assert shown is not None
    assert shown["x"] + shown["width"] <= box["x"] + box["width"]
    watched.require_quiet()


def test_a_mail_is_fitted_on_phones_and_the_choice_is_kept(
    person: Person, watched: Watched
) -> None:
    """On a phone a wide mail is fitted to its width until the reader chooses otherwise."""
    page = watched.page
    page.set_viewport_size({"width": 390, "height": 844})
    head = b"From: a@example.com\r\nSubject: Wide\r\nContent-Type: text/html\r\n\r\n"
    person.get_mail(head + b"<table width=1600><tr><td>left<td align=right>right</table>\r\n")
    watched.go("/inbox")
    page.get_by_role("link", name="Wide").click()
    button = page.get_by_role("button", name="Fit to width")
    expect(button).to_have_attribute("aria-pressed", "true")
    button.click()
    page.reload()
    expect(button).to_have_attribute("aria-pressed", "false")


def test_eight_mails_are_seen_beside_a_message(person: Person, watched: Watched) -> None:
    """On a screen of 1280 x 800 pixels eight mails of the list are seen, also beside a message."""
    page = watched.page
    page.set_viewport_size({"width": 1280, "height": 800})
    for number in range(12):
        person.get_mail(mail(f"Mail {number} with a subject that is longer than its line"), "tag")
    open_inbox(watched)
    assert page.evaluate(SEEN_MAILS) >= 8
    page.get_by_role("link", name="Mail 11").click()
    page.locator("#mail").wait_for()
    assert page.evaluate(SEEN_MAILS) >= 8


@pytest.mark.parametrize("size", [(1280, 800), (390, 844)], ids=["desk", "phone"])
def test_a_page_keeps_its_layout_while_it_loads(
    person: Person, watched: Watched, size: tuple[int, int]
) -> None:
    """The cumulative layout shift of a message, short or long, and of the list is below 0.1."""
    page = watched.page
    page.set_viewport_size({"width": size[0], "height": size[1]})
    head = b"From: a@example.com\r\nSubject: Layout\r\nContent-Type: text/html\r\n\r\n"
    for length in (1, 100):
        person.get_mail(head + b"<p>A paragraph of this mail.</p>\r\n" * length)
    open_inbox(watched)
    paths = [one.get_attribute("href") or "" for one in page.locator("#mails a").all()]
    page.add_init_script(NOTE_SHIFTS)
    for path in ("/inbox", *paths):
        watched.go(path)
        page.locator(".measuring").wait_for(state="detached")
        assert page.evaluate(SHIFTS) < 0.1, path


def test_a_test_mail_arrives_at_the_tagged_address(person: Person, watched: Watched) -> None:
    """The tag field shows the tagged address, and the test mail arrives there without a reload."""
    page = watched.page
    open_inbox(watched)
    page.get_by_label("Tag", exact=True).fill("try-1")
    expect(page.locator("#address")).to_have_text(person.tagged("try-1"))
    page.get_by_role("button", name="Send a test mail").click()
    page.get_by_role("link", name="Confirm your address").wait_for()
    expect(page.locator("#mails li")).to_have_count(1)
    expect(page.locator("#mails")).to_contain_text("+try-1")
    expect(page.locator("#empty")).to_have_count(0)
    page.get_by_role("link", name="Confirm your address").click()
    frame = page.frame_locator("iframe.mail-frame")
    expect(frame.get_by_role("link", name="Confirm your address")).to_be_visible()
    code = page.locator("#code-1").inner_text()
    expect(frame.get_by_text(code)).to_be_visible()
    watched.require_quiet()


def test_a_search_stays_live(person: Person, watched: Watched) -> None:
    """A search adds new messages that match it, and no others."""
    page = watched.page
    person.get_mail(mail("Needle one"))
    watched.go("/inbox")
    page.get_by_label("Search messages").fill("needle")
    page.get_by_role("button", name="Search").click()
    page.locator("#live[data-state=open]").wait_for()
    person.get_mail(mail("Haystack"))
    person.get_mail(mail("Needle two"))
    page.get_by_role("link", name="Needle two").wait_for()
    expect(page.locator("#mails .subject")).to_have_text(["Needle two", "Needle one"])
    watched.require_quiet()


def test_the_list_goes_on_after_a_connection_is_lost(browser: Browser, tmp_path: Path) -> None:
    """Messages that arrive while the connection is lost are shown once when it is back."""
    with running_daemon(tmp_path) as daemon, watched_page(browser, daemon.http_port) as watched:
        person = make_account(watched, daemon)
        page = watched.page
        open_inbox(watched)
        person.get_mail(mail("Before"))
        page.get_by_role("link", name="Before").wait_for()
        daemon.kill()  # a stopping daemon would tell its pages to reconnect later
        page.locator("#live[data-state=closed]").wait_for()
        daemon.start()
        person.get_mail(mail("Meanwhile"))
        page.get_by_role("link", name="Meanwhile").wait_for()
        expect(page.locator("#mails .subject")).to_have_text(["Meanwhile", "Before"])
        assert watched.elsewhere == []


def test_remote_images_are_shown_when_asked_for(person: Person, watched: Watched) -> None:
    """Remote images keep their place, and are loaded only on request."""
    page = watched.page
    head = "From: a@example.com\r\nSubject: Images\r\nContent-Type: text/html\r\n\r\n"
    html = "<p>hello</p><img src='https://images.test/1.gif' alt='one' width=300 height=90>\r\n"
    person.get_mail((head + html).encode())
    watched.go("/inbox")
    page.get_by_role("link", name="Images").click()
    expect(page.locator(".remote")).to_contain_text("1 image from other servers not loaded")
    assert watched.elsewhere == []
    blocked = page.frame_locator("iframe.mail-frame").locator("img").bounding_box()
    assert blocked is not None
    assert (blocked["width"], blocked["height"]) == (300, 90)
    watched.require_accessible()
    page.get_by_role("link", name="Show remote content").click()
    expect(page.locator(".remote")).to_contain_text("are shown")
    page.frame_locator("iframe.mail-frame").get_by_text("hello").wait_for()
    assert watched.elsewhere == ["image https://images.test/1.gif"]
    watched.take_unloaded_images()
    watched.require_quiet()


@pytest.mark.parametrize("view", ["html", "text", "markup", "headers", "source"])
def test_every_view_is_accessible(person: Person, watched: Watched, view: str) -> None:
    """No view of a message has serious accessibility issues."""
    page = watched.page
    open_inbox(watched)
    page.get_by_role("button", name="Send a test mail").click()
    page.get_by_role("link", name="Confirm your address").click()
    page.locator("#mail").wait_for()
    watched.go(page.url.removeprefix(watched.origin) + f"?view={view}")
    watched.require_accessible()
    watched.require_quiet()


def test_a_closed_page_leaves_no_wait(
    person: Person, watched: Watched, pages_daemon: Daemon
) -> None:
    """A closed page leaves no wait behind, so that the next page is live."""
    for _ in range(5):
        open_inbox(watched)
        watched.go("/keys")
    open_inbox(watched)
    watched.require_quiet()
