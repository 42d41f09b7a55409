"""The operator's pages about accounts, the audit log, and the list of sessions."""

import re

import pytest

from mailcheck.core.projects import Role
from tests.house import House, run
from tests.table import rows
from tests.web.dashboard.browser import Browser, in_project
from tests.web.dashboard.inbox_visit import fetch
from tests.web.dashboard.test_dashboard_projects import pages_of

NO_PLACES = {
    *("/live", "/places", "/inbox/live"),  # for scripts
    *("/blocklists", "/domain", "/watches"),  # old addresses, which redirect
    *("/authorize", "/join", "/traffic/sources"),  # are opened with parameters
    "/project",  # a personal project has no members
}
"""Addresses that the command palette need not find."""


@pytest.fixture
def operator(browser: Browser) -> Browser:
    """Sign in as the operator, whose account is named first."""
    run(
        browser.house.assembly.accounts.sign_in.set_password(browser.house.account, "correct horse")
    )
    browser.sign_in("first")
    return browser


def page_of(house: House, name: str) -> str:
    """Return the path of an account's page."""
    return f"/account/people/{run(house.assembly.accounts.keep.find(name)).id}"


def test_the_command_palette_finds_every_page(house: House, operator: Browser) -> None:
    """The menus and the places of the palette have all pages; others have none for visitors."""
    shown = operator.open("/").body.decode()
    places = fetch(operator, "/places").json
    found = {*re.findall(r'<a (?:class="[^"]*" )?href="([^"]+)"', shown)}
    found |= {one["href"] for one in places}
    addresses = {
        in_project(page.path) if page.is_of_project else page.path
        for page in pages_of(house)
        if page.method == "GET" and "<" not in page.path and page.path not in NO_PLACES
    }
    assert addresses - found == set()
    ann = Browser(house, "192.0.2.12")
    ann.sign_up()
    assert "All accounts" not in {one["title"] for one in fetch(ann, "/places").json}


def test_the_operator_sees_all_accounts(house: House, operator: Browser, bob: Browser) -> None:
    """The list has the address, the use and the last activity of each account."""
    house.receive(house.address(account=run(house.assembly.accounts.keep.find("bob"))))
    assert 'href="/account/people"' in operator.open("/account").body.decode()
    operator.open("/account/people")
    for text in ("first", "operator", "bob", "2026-11-21 12:00 UTC"):
        assert text in operator.page.text
    shown = operator.words
    assert re.search(r"dev-\w+@mailcheck\.example 1 \d+ B", shown)


@rows("GET", "POST")
def test_only_the_operator_sees_and_changes_accounts(
    house: House, operator: Browser, bob: Browser, method: str
) -> None:
    """Every one of these pages is 403 for another account, and nothing is changed."""
    assert "/account/people" not in bob.open("/account").body.decode()
    mine = page_of(house, "bob")
    bob.open("/account")
    paths = {
        "GET": ["/account/people", "/account/people/activity", mine],
        "POST": [f"{mine}/{name}" for name in ("rename", "limits", "disable", "enable", "delete")],
    }
    for path in paths[method]:
        send = bob.open if method == "GET" else bob.submit
        answer = send(path) if method == "GET" else bob.submit(path, name="bob")
        assert answer.status == 403, path
    assert {one.name for one in run(house.assembly.accounts.keep.accounts())} == {"first", "bob"}


def test_an_account_is_changed(house: House, operator: Browser, bob: Browser) -> None:
    """The operator renames an account and sets its limits; wrong values are shown with the form."""
    path = page_of(house, "bob")
    operator.open(path)
    assert operator.follow(operator.submit(f"{path}/rename", name="Robert")).status == 200
    assert "The account has been changed" in operator.page.text
    limits = {"max_messages": "1,000", "max_bytes": "", "retention_hours": "48"}
    operator.follow(operator.submit(f"{path}/limits", **limits))
    changed = run(house.assembly.accounts.keep.find("Robert"))
    assert (changed.max_messages, changed.max_bytes, changed.retention_hours) == (1_000, None, 48)
    for wrong in ({"retention_hours": "23"}, {"max_messages": "many"}, {"max_bytes": "0"}):
        operator.open(path)
        assert operator.submit(f"{path}/limits", **wrong).status == 400
    operator.open(path)
    assert operator.submit(f"{path}/rename", name="first").status == 409
    assert run(house.assembly.accounts.keep.find("Robert")) == changed


def test_an_account_is_disabled_and_enabled(house: House, operator: Browser, bob: Browser) -> None:
    """A disabled account is signed out and told so; enabled, it signs in again."""
    path = page_of(house, "bob")
    operator.open(path)
    operator.follow(operator.submit(f"{path}/disable"))
    assert "Its keys work again" in operator.page.text
    assert not bob.is_signed_in
    assert bob.sign_in("bob").status == 403
    assert "this account is disabled" in bob.page.text.lower()
    operator.follow(operator.submit(f"{path}/enable"))
    assert bob.sign_in("bob").status == 303


def test_an_account_is_deleted(house: House, operator: Browser, bob: Browser) -> None:
    """The page shows what is deleted, and asks for the name."""
    house.receive(house.address(account=run(house.assembly.accounts.keep.find("bob"))))
    path = page_of(house, "bob")
    operator.open(path)
    assert re.search(r"Messages\s*1\s", operator.page.text)
    assert operator.submit(f"{path}/delete", name="bo").status == 400
    assert operator.follow(operator.submit(f"{path}/delete", name="bob")).status == 200
    assert "has been deleted" in operator.page.text
    assert operator.open(path).status == 404
    assert not bob.is_signed_in


def test_the_operators_own_account_cannot_be_deleted(house: House, operator: Browser) -> None:
    """The page offers it not, and the form is refused."""
    path = page_of(house, "first")
    assert "Delete the account" not in operator.open(path).body.decode()
    assert operator.submit(f"{path}/delete", name="first").status == 409
    assert operator.submit(f"{path}/disable").status == 409


def test_the_activity_of_an_account(house: House, operator: Browser, bob: Browser) -> None:
    """Each account sees its own entries, and the operator those of all accounts."""
    bob.submit("/keys", name="our CI")
    bob.open("/account/activity")
    for text in ("Signed in", "Key issued", "'our CI', all rights", "192.0.2.11"):
        assert text in bob.page.text
    operator.open("/account/activity")
    assert "our CI" not in operator.page.text
    assert "our CI" in operator.read("/account/people/activity")
    assert "There are no older entries" in bob.read("/account/activity?before=1")


def test_sessions_are_listed_and_ended(house: House, bob: Browser) -> None:
    """A session is ended from another browser; that of another account is not."""
    second = Browser(house, "192.0.2.12")
    second.sign_in("bob")
    body = bob.open("/account").body.decode()
    assert "192.0.2.12" in body
    assert "this browser" in body
    (other,) = re.findall(r"/account/sessions/(\w+)/end", body)
    stranger = Browser(house, "192.0.2.13")
    stranger.sign_up("eve")
    stranger.submit(f"/account/sessions/{other}/end")
    assert second.is_signed_in
    bob.follow(bob.submit(f"/account/sessions/{other}/end"))
    assert "The session has ended" in bob.page.text
    assert not second.is_signed_in
    assert bob.is_signed_in


def test_the_list_is_searched_and_sorted(house: House, operator: Browser, bob: Browser) -> None:
    """Accounts are found by a part of their name, in the chosen order."""

    def names(query: str) -> list[str]:
        page = operator.open(f"/account/people?{query}").body.decode()
        return re.findall(r'<td class="name"><a [^>]*>([^<]+)<', page)

    assert bob.is_signed_in
    assert names("") == ["bob", "first"]
    assert names("sort=newest") == ["bob", "first"]
    house.receive(house.address())
    assert names("sort=largest") == ["first", "bob"]
    assert names("search=BO") == ["bob"]
    assert names("search=x") == []


def test_disabling_says_what_it_ends(house: House, operator: Browser, bob: Browser) -> None:
    """The page counts sessions, programs and keys; keys in projects go on, and owners see them."""
    accounts = house.assembly.accounts
    person = run(accounts.keep.find("bob"))
    shop = run(accounts.projects.create(house.account, "shop"))
    run(accounts.projects.set_member(shop, person, Role.OWNER))
    bob.open(in_project("/keys", shop.id))
    bob.submit(in_project("/keys", shop.id), name="deploys")
    shown = operator.open(page_of(house, "bob")).body.decode()
    assert "This ends 1 session and 0 connected programs within a second" in shown
    assert "1 API key that this person made in projects stays valid" in shown
    operator.submit(page_of(house, "bob") + "/disable")
    assert not bob.is_signed_in
    listed = operator.open(in_project("/keys", shop.id)).body.decode()
    assert "made by bob" in listed
    assert "has left" in listed


def test_sessions_are_ended_by_the_operator(house: House, operator: Browser, bob: Browser) -> None:
    """Ending the sessions signs a person out, who can sign in again."""
    operator.open(page_of(house, "bob"))
    operator.submit(page_of(house, "bob") + "/end-access")
    assert not bob.is_signed_in
    assert "not signed in anywhere" in operator.open(page_of(house, "bob")).body.decode()
    bob.sign_in("bob")
    assert bob.is_signed_in
