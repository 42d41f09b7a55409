"""Sign-up, sign-in, API keys and the account in a real browser: mouse, keyboard, no scripts."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.people import PASSWORD, Person, sign_up
from tests.browser.watching import Watched, watched_page
from tests.servers.daemon import Daemon

pytestmark = pytest.mark.end_to_end


@pytest.fixture
def scriptless(browser: Browser, pages_daemon: Daemon) -> Iterator[Watched]:
    """Open a page in a browser without scripts."""
    with watched_page(browser, pages_daemon.http_port, java_script_enabled=False) as watched:
        yield watched


def create_key(watched: Watched, name: str) -> str:
    """Create a key on the page of API keys and return its secret."""
    watched.go("/keys")
    watched.page.get_by_label("Name", exact=True).fill(name)
    watched.page.get_by_role("button", name="Create key").click()
    secret = watched.page.locator("#new-key").inner_text()
    assert re.fullmatch(r"mck_[a-z2-7]{32}", secret)
    return secret


def test_from_the_first_page_to_a_key(watched: Watched, pages_daemon: Daemon) -> None:
    """A newcomer gets from the first page to a working key, and the browser logs no problem."""
    watched.go("/")
    watched.page.get_by_role("link", name="Create an account").click()
    person = sign_up(watched, pages_daemon)
    secret = create_key(watched, "CI")
    inbox = pages_daemon.request("GET", "/inbox", {"X-API-Key": secret}).json
    assert inbox["address"] == person.address
    watched.go("/keys")
    expect(watched.page.get_by_text("1 of 100,000,000 today")).to_be_visible()
    watched.require_quiet()


def test_a_key_is_copied(watched: Watched, person: Person) -> None:
    """The copy buttons copy key and snippets to the clipboard, and say so."""
    watched.context.grant_permissions(["clipboard-read", "clipboard-write"])
    secret = create_key(watched, "laptop")
    page = watched.page
    page.locator("[data-copy=new-key]").click()
    expect(page.locator("[data-copy=new-key]")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == secret
    expect(page.locator("[data-copy=new-key]")).to_have_text("Copy")
    page.get_by_text("Python", exact=True).click()
    expect(page.locator("#snippet-curl")).to_be_hidden()
    page.locator("[data-copy=snippet-python]").click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert f'"{secret}"' in copied
    assert copied.startswith("# curl -sO ")
    watched.require_quiet()


def test_by_keyboard(watched: Watched, person: Person) -> None:
    """Signing out, signing in and creating a key work by keyboard, with a link past the menu."""
    page = watched.page
    watched.go("/keys")
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    page.keyboard.type("typed")
    page.keyboard.press("Enter")
    expect(page.locator("#new-key")).to_be_visible()
    page.get_by_role("button", name="Sign out").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    page.keyboard.type(person.name)
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Newest mails")).to_be_visible()
    watched.require_quiet()


def test_without_scripts(scriptless: Watched, pages_daemon: Daemon) -> None:
    """Signing up, creating and revoking a key and signing out work without scripts."""
    sign_up(scriptless, pages_daemon)
    page = scriptless.page
    create_key(scriptless, "plain")
    page.get_by_text("JavaScript", exact=True).click()
    expect(page.locator("#snippet-javascript")).to_be_visible()
    expect(page.get_by_role("button", name="Copy")).to_have_count(0)
    scriptless.go("/keys")
    page.get_by_text("Revoke plain").click()
    page.get_by_role("button", name="Revoke permanently").click()
    expect(page.get_by_text("No API keys yet.")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_text("You have signed out.")).to_be_visible()
    scriptless.require_quiet()


def test_a_wrong_password_is_shown_beside_the_form(watched: Watched, person: Person) -> None:
    """A wrong password is shown in an alert; the name is kept and the password has the focus."""
    page = watched.page
    watched.context.clear_cookies()
    watched.go("/sign-in")
    page.get_by_label("Name", exact=True).fill(person.name)
    page.get_by_label("Password").fill("a wrong password")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_have_text("No account has this name and password.")
    expect(page.get_by_label("Name", exact=True)).to_have_value(person.name)
    expect(page.get_by_label("Password")).to_be_focused()
    watched.require_accessible()


def test_other_sites_are_isolated(watched: Watched, person: Person) -> None:
    """Scripts cannot read the cookies, and other sites can neither frame pages nor submit forms."""
    page = watched.page
    watched.go("/keys")
    cookies = watched.context.cookies()
    assert {one["name"] for one in cookies} == {
        *("mailcheck-session", "mailcheck-visitor", "mailcheck-device")
    }
    assert page.evaluate("document.cookie") == ""
    form = f'<form method=post action="{watched.origin}/keys"><input name=name value=forged>'
    page.goto(f"data:text/html,{form}")
    page.evaluate("document.forms[0].submit()")
    page.wait_for_url(f"{watched.origin}/**")
    page.goto(f'data:text/html,<iframe src="{watched.origin}/keys"></iframe>')
    assert page.get_by_text("API keys").count() == 0
    assert page.frame_locator("iframe").get_by_text("API keys").count() == 0
    watched.go("/keys")
    expect(page.get_by_text("No API keys yet.")).to_be_visible()
