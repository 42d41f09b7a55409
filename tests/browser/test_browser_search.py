"""Search suggestions, attachment previews and desktop notifications in a real browser."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.people import Person
from tests.browser.watching import Watched
from tests.house import mail


@pytest.fixture
def inbox(person: Person, watched: Watched) -> Page:
    """Open an inbox of two tagged messages, one of them read."""
    person.get_mail(mail("Read already"), "a")
    person.get_mail(mail("Welcome"), "signup")
    watched.go("/inbox")
    watched.page.get_by_role("link", name="Read already").click()
    watched.page.locator("#mail").wait_for()
    watched.go("/inbox")
    watched.page.locator("#live[data-state=open]").wait_for()
    return watched.page


def test_a_search_is_suggested(inbox: Page, watched: Watched) -> None:
    """The field suggests operators and values; keys select one, and a complete term searches."""
    field = inbox.get_by_role("combobox", name="Search messages")
    options = inbox.get_by_role("option")
    inbox.keyboard.press("/")
    expect(options.first).to_be_visible()
    watched.require_accessible()
    inbox.keyboard.type("is:u")
    expect(options).to_have_count(1)
    inbox.keyboard.press("ArrowDown")
    expect(options.first).to_have_attribute("aria-selected", "true")
    watched.press_to_leave("Enter", "**q=is%3Aunread*")
    expect(inbox.locator("#mails li")).to_have_count(1)
    field.click()
    field.press("End")
    inbox.keyboard.type(" tag:")
    options.get_by_text("tag:signup").click()
    inbox.wait_for_url("**tag%3Asignup*")
    watched.require_accessible()
    expect(inbox.locator("#mails li")).to_have_count(1)
    inbox.get_by_role("link", name="Unread Remove the filter").click()
    inbox.wait_for_url(lambda url: "is%3Aunread" not in url)
    inbox.get_by_role("link", name="tag:signup Remove the filter").click()
    expect(inbox.locator("#mails li")).to_have_count(2)
    watched.require_quiet()


def test_a_word_is_suggested_for_its_fields(inbox: Page, watched: Watched) -> None:
    """A word is suggested for sender, subject and recipient; Escape closes, Enter searches."""
    field = inbox.get_by_role("combobox", name="Search messages")
    field.click()
    inbox.keyboard.type("wel")
    offered = inbox.locator("[role=option] code")
    expect(offered).to_have_text(["from:wel", "subject:wel", "to:wel"])
    inbox.keyboard.press("Escape")
    expect(inbox.get_by_role("option")).to_have_count(0)
    watched.press_to_leave("Enter", "**q=wel")
    expect(inbox.locator("#mails li")).to_have_count(1)


def test_desktop_notifications(inbox: Page, watched: Watched, person: Person) -> None:
    """Only the user can enable notifications, which then announce mail while the page is hidden."""
    inbox.get_by_text("New address / Send a test mail").click()
    inbox.evaluate(
        """() => {
          window.told = [];
          Notification.requestPermission = async () => "granted";
          Object.defineProperty(Notification, "permission", {get: () => "granted"});
          window.Notification = class extends EventTarget {
            static permission = "granted";
            constructor(title, options) { super(); window.told.push([title, options.body]); }
          };
          Object.defineProperty(document, "hidden", {get: () => true});
        }"""
    )
    person.get_mail(mail("News"), "a")
    watched.wait_until("window.told.length === 1")
    assert inbox.evaluate("window.told") == [["News", "Shop\n482913"]]
    watched.require_quiet()
