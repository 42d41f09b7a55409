"""Keyboard shortcuts of the inbox, with a message beside the list, in a real browser."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.people import Person
from tests.browser.watching import Watched, watched_page
from tests.house import mail


@pytest.fixture
def inbox(person: Person, watched: Watched) -> Page:
    """Open an inbox of three messages, "Third" on top, on a wide screen."""
    for subject, tag in (("First", "a"), ("Second", "b"), ("Third", "a")):
        person.get_mail(mail(subject), tag)
    watched.page.set_viewport_size({"width": 1440, "height": 900})
    watched.go("/inbox")
    watched.page.locator("#live[data-state=open]").wait_for()
    return watched.page


def expect_subjects(page: Page, *subjects: str) -> None:
    """Wait until the visible rows have these subjects; rows not drawn yet have no inner text."""
    expect(page.locator("#mails li:visible .subject")).to_have_text(subjects)


def press(page: Page, *keys: str) -> None:
    """Press keys, one after the other."""
    for key in keys:
        page.keyboard.press(key)


def test_messages_are_opened_by_keyboard(inbox: Page, watched: Watched) -> None:
    """j, k and Enter open the messages beside the list; u and the back button close them."""
    press(inbox, "j", "j", "Enter")
    expect(inbox.locator("#mail h1")).to_have_text("Second")
    expect_subjects(inbox, "Third", "Second", "First")  # beside it
    expect(inbox.locator("#mails li.current .subject")).to_have_text("Second")
    expect(inbox.locator("summary", has_text="Authentication")).to_contain_text("not checked")
    press(inbox, "j")
    expect(inbox.locator("#mail h1")).to_have_text("First")
    press(inbox, "k")
    expect(inbox.locator("#mail h1")).to_have_text("Second")
    watched.require_accessible()
    press(inbox, "u")
    expect(inbox.locator("#mail")).to_have_count(0)
    expect(inbox).to_have_url(f"{watched.origin}/p/me/inbox")
    inbox.go_back()
    expect(inbox.locator("#mail h1")).to_have_text("Second")
    inbox.reload()
    expect(inbox.locator("#mail h1")).to_have_text("Second")
    expect_subjects(inbox, "Third", "Second", "First")
    watched.require_quiet()


def test_the_first_mail_is_near(inbox: Page) -> None:
    """Tab, the skip link and another Tab focus the first message."""
    press(inbox, "Tab", "Enter", "Tab")
    expect(inbox.locator("#mails a").first).to_be_focused()


def test_many_are_selected_at_once(inbox: Page) -> None:
    """Shift selects all rows between two boxes, which are deleted together."""
    boxes = inbox.locator("#mails input[type=checkbox]")
    boxes.nth(0).click()
    boxes.nth(2).click(modifiers=["Shift"])
    expect(inbox.locator("#mails input:checked")).to_have_count(3)
    inbox.get_by_role("button", name="Delete selected").click()
    expect_subjects(inbox)


def test_the_filter_stays_in_the_address(inbox: Page, watched: Watched) -> None:
    """A filter stays in the address while messages are read, and afterwards."""
    inbox.get_by_role("link", name="+a 2").click()
    inbox.get_by_role("link", name="First").click()
    expect(inbox.locator("#mail h1")).to_have_text("First")
    assert "tag=a" in inbox.url
    inbox.reload()
    expect_subjects(inbox, "Third", "First")
    inbox.get_by_role("link", name="Newer").click()
    expect(inbox.locator("#mail h1")).to_have_text("Third")
    inbox.get_by_role("link", name="Headers").click()
    expect(inbox.get_by_role("region", name="The mail's header")).to_be_visible()
    assert "tag=a" in inbox.url
    inbox.get_by_role("link", name="Back to the inbox").click()
    expect_subjects(inbox, "Third", "First")
    watched.require_quiet()


def test_keyboard_shortcuts(inbox: Page, watched: Watched) -> None:
    """? shows the shortcuts, / searches, g and a letter go to a page, Ctrl+K opens the palette."""
    press(inbox, "?")
    expect(inbox.get_by_role("dialog", name="Keyboard shortcuts")).to_contain_text(
        "next / previous message"
    )
    watched.require_accessible()
    press(inbox, "Escape", "/")
    expect(inbox.get_by_label("Search messages")).to_be_focused()
    press(inbox, "j")  # in the field it is a letter
    expect(inbox.get_by_label("Search messages")).to_have_value("j")
    inbox.get_by_label("Search messages").fill("")
    inbox.locator("h1").evaluate("document.activeElement.blur()")
    press(inbox, "Control+k")
    inbox.get_by_label("Search pages and commands").fill("domain")
    watched.press_to_leave("Enter", "**/domains")
    watched.go("/inbox")
    press(inbox, "g")
    watched.press_to_leave("t", "**/tests")
    watched.require_quiet()


def test_a_frame_is_as_high_as_its_mail(person: Person, watched: Watched) -> None:
    """The frame is as high as its mail, also at the width of a phone."""
    page = watched.page
    head = "From: a@example.com\r\nSubject: Long\r\nContent-Type: text/html\r\n\r\n"
    html = "<html dir=rtl lang=ar><body>" + "<p>word word word word word</p>" * 200 + "<p>end</p>"
    person.get_mail((head + html + "\r\n").encode())
    watched.go("/inbox")
    page.get_by_role("link", name="Long").click()
    frame = page.frame_locator("iframe.mail-frame")
    frame.get_by_text("end").wait_for()
    watched.wait_until("document.querySelector('.mail-frame').clientHeight > 4000")
    assert frame.locator("html").get_attribute("dir") == "rtl"
    assert frame.locator("html").get_attribute("lang") == "ar"
    page.get_by_role("button", name="Phone").click()
    watched.wait_until("document.querySelector('.mail-frame').clientWidth === 390")
    page.get_by_role("button", name="Dark", exact=True).first.click()
    assert frame.locator("html").evaluate("(one) => getComputedStyle(one).colorScheme") == "dark"
    watched.require_accessible()
    watched.require_quiet()


def test_the_theme_is_kept(person: Person, watched: Watched) -> None:
    """The dark theme stays on all pages, also if the system is light."""
    page = watched.page
    watched.go("/inbox?tag=a")
    page.get_by_role("group", name="Theme").get_by_role("button", name="Dark").click()
    assert page.url.endswith("/inbox?tag=a")
    for path in ("/inbox", "/keys"):
        watched.go(path)
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(14, 19, 27)"
        watched.require_accessible()
    page.get_by_role("group", name="Theme").get_by_role("button", name="System").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(14, 19, 27)"
    watched.require_quiet()


def test_a_phone_shows_mail_at_once(person: Person, watched: Watched) -> None:
    """On a phone the first row begins in the first 40 % of the screen; a message fills it."""
    page = watched.page
    person.get_mail(mail("First"), "a")
    page.set_viewport_size({"width": 390, "height": 844})
    watched.go("/inbox")
    page.locator("#live[data-state=open]").wait_for()
    box = page.locator("#mails li").first.bounding_box()
    assert box is not None
    assert box["y"] <= 0.4 * 844
    page.get_by_role("link", name="First").click()
    expect(page.locator("#mail h1")).to_be_visible()
    expect(page.locator("#mails")).to_be_hidden()
    code = page.locator("#code-1").bounding_box()
    assert code is not None
    assert code["y"] <= 0.4 * 844
    watched.require_accessible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_what_was_deleted_elsewhere_is_gone(inbox: Page, watched: Watched, person: Person) -> None:
    """An open list removes rows, counts and tags that another page deletes; so does a message."""
    state = watched.context.storage_state()
    browser = watched.context.browser
    assert browser is not None
    press(inbox, "j", "Enter")
    expect(inbox.locator("#mail h1")).to_have_text("Third")
    press(inbox, "u")
    with watched_page(browser, person.daemon.http_port, storage_state=state) as other:
        other.go("/inbox")
        press(other.page, "j", "j", "#")
        other.go("/keys")
        expect(inbox.locator("#mails li")).to_have_count(2)
        expect(inbox.locator("#mails li a").first).to_be_focused()
        expect(inbox.locator("#total")).to_have_text("2")
        expect(inbox.locator(".tags [data-tag=b]")).to_have_count(0)
        press(inbox, "Enter")
        expect(inbox.locator("#mail h1")).to_have_text("Third")
        other.go("/inbox")
        other.page.get_by_role("button", name="Select all 2").click()
        other.page.get_by_role("button", name="Delete selected").click()
        expect(inbox.get_by_text("This message has been deleted.")).to_be_visible()
        press(inbox, "u")
        expect(inbox.locator("#mails li")).to_have_count(0)
    expect(inbox).to_have_title("Inbox - mailcheck")


def test_new_tags_are_counted_live(inbox: Page, person: Person) -> None:
    """A message to a new tag adds a link, and a hidden tab counts it in its title."""
    person.get_mail(mail("Fourth"), "fresh")
    expect(inbox.locator(".tags [data-tag=fresh] .count")).to_have_text("1")
    expect(inbox.locator("#total")).to_have_text("4")
    expect(inbox).to_have_title(re.compile(r"\(4\) Inbox"))


def test_space_selects(inbox: Page) -> None:
    """Space selects the focused row like x, and does not scroll."""
    press(inbox, "j", " ", "j", "j", "Shift+X")
    expect(inbox.locator("#mails input:checked")).to_have_count(3)
