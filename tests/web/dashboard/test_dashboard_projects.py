"""Projects on the pages: creating, switching, inviting, roles, and what each role may do."""

import re
from itertools import cycle
from urllib.parse import urlsplit

import pytest

from mailcheck.assembly.doors.pages import build_pages
from mailcheck.assembly.doors.rest import build_routes
from mailcheck.core.accounts import Account
from mailcheck.core.filters import MessageFilter
from mailcheck.core.projects import Role
from mailcheck.core.rights import Scope
from mailcheck.web.api.description import ApiDescription
from mailcheck.web.dashboard.addresses import MINE, address_in, segments_of, split_address
from mailcheck.web.dashboard.rendering import MENU
from mailcheck.web.dashboard.visits import Page
from tests.house import House, mail, run
from tests.table import rows
from tests.web.dashboard.browser import NEW_KEY, SEGMENTS, Browser

KINDS = "account alert key other passkey report route session test watch webhook"
PATHS = {
    **{f"{kind}_id": "a" * 13 for kind in KINDS.split(" ")},
    "attachment_id": "1",
    "domain": "good.example",
    "group": "inbox",
    "mail_id": "01a1fc41-0219-76dd-ac7e-95beebac7c41",
    "message_id": "01a1fc41-0219-76dd-ac7e-95beebac7c40",
    "operation_id": "wait",
    "heartbeat_name": "backup",
    "token": "aaaaaaaaaaaaa",
}


@pytest.fixture
def ann(browser: Browser) -> Browser:
    """Sign up Ann, and let her create a project."""
    browser.sign_up("ann")
    browser.follow(browser.submit("/projects", name="shop"))
    browser.project = account_of(browser.house, "shop").id
    return browser


def filled(page: Page, **values: str) -> str:
    """Return the address of a page with values for its variables, in the own account."""
    path = re.sub(r"<(\w+)>", lambda name: {**PATHS, **values}[name[1]], page.path)
    return address_in(MINE, path) if page.is_of_project else path


def account_of(house: House, name: str) -> Account:
    """Return an account."""
    account: Account = run(house.assembly.accounts.keep.find(name))
    return account


def invite(owner: Browser, role: Role) -> str:
    """Create an invitation, and return the path of its link."""
    owner.submit("/project/invitations", role=str(role))
    return owner.find(r"(/join\?invitation=[\w-]+)")


def join(browser: Browser, link: str) -> None:
    """Accept an invitation."""
    assert browser.open(link).status == 200
    code = link.partition("=")[2]
    answer = browser.submit("/join", invitation=code)
    assert browser.follow(answer).status == 200
    browser.project, _ = split_address(urlsplit(answer.headers["location"]).path)


def show(browser: Browser, house: House, name: str = "") -> None:
    """Open the overview of a project, or of the own account. Later paths are in it."""
    browser.project = account_of(house, name).id if name else MINE
    assert browser.open("/").status == 200


def test_a_project_has_its_own_inbox_and_keys(house: House, ann: Browser) -> None:
    """The pages below the address of a project show its data, and those of "me" the own."""
    shop, own = account_of(house, "shop"), account_of(house, "ann")
    house.receive(house.address(account=shop), raw=mail(subject="for the shop"))
    house.receive(house.address(account=own), raw=mail(subject="for Ann"))
    assert "for the shop" in ann.read("/inbox")
    assert "for Ann" not in ann.page.text
    ann.submit("/keys", name="CI")
    assert house.get("/inbox", key=ann.find(NEW_KEY)).json["address"].startswith(shop.mailbox_name)
    show(ann, house)
    assert "for Ann" in ann.read("/inbox")
    assert "for the shop" not in ann.page.text
    show(ann, house, "shop")
    assert "for the shop" in ann.read("/inbox")


def test_a_person_is_invited(house: House, ann: Browser, bob: Browser) -> None:
    """The link works once, and the person gets its role."""
    shop = account_of(house, "shop")
    house.receive(house.address(account=shop), raw=mail(subject="for the shop"))
    link = invite(ann, Role.EDITOR)
    assert "You have been invited to the project shop as editor" in bob.read(link)
    join(bob, link)
    assert "for the shop" in bob.read("/inbox")
    assert bob.open(link).status == 403
    assert "bob" in ann.read("/project")
    stranger = Browser(house, "192.0.2.12")
    assert stranger.open(link).status == 303  # to the page for signing in


def test_a_stranger_sees_nothing_of_a_project(house: House, ann: Browser, bob: Browser) -> None:
    """No page of a project of others can be opened; all are 404 like those of unknown ones."""
    assert bob.open("/project").status == 303
    own = bob.page.form_token
    unknown = cycle(("a" * 13, "", "..", "ME"))  # each page gets one of them
    for page in pages_of(house):
        for project in (account_of(house, "shop").id, next(unknown)):
            if page.is_of_project:
                path = filled(page).replace("/me/", f"/{project}/", 1)
                answer = bob.send(page.method, path, f"form-token={own}&name=shop".encode())
                assert answer.status == 404, (page.method, path)
                assert "shop" not in bob.words
    assert account_of(house, "shop")


def pages_of(house: House) -> list[Page]:
    """Return all pages that need an account."""
    routes = build_routes(house.assembly)
    _, _, pages = build_pages(house.assembly, routes, ApiDescription(routes))
    return [page for page in pages if not page.guard.is_open]


def test_a_form_is_bound_to_its_project(house: House, ann: Browser) -> None:
    """No form of a page of one project is accepted below another, or without a project."""
    ann.open("/project")
    token = ann.page.form_token
    ann.project = ""
    for page in pages_of(house):
        if page.method == "POST" and page.is_of_project:
            for path in (filled(page), filled(page).removeprefix("/p/me")):
                answer = ann.send("POST", path, f"form-token={token}".encode())
                assert (answer.status, b"project" in answer.body) == (403, True), path
    assert ann.submit("/theme", theme="dark", **{"form-token": token}).status == 303


def test_addresses_without_a_project(house: House, ann: Browser) -> None:
    """An old address leads to the project that holds its object, or to the last one shown."""
    shop, own = account_of(house, "shop"), account_of(house, "ann")
    house.receive(house.address(account=shop), raw=mail(subject="for the shop"))
    found = run(house.assembly.inbox.read.page(shop.id, MessageFilter(), 1, 1))
    path = f"/inbox/messages/{found.messages[0].summary.id}"
    ann.project = MINE
    ann.open("/inbox")

    def place(address: str) -> str:
        answer = ann.send("GET", address, b"")
        assert answer.status == 303
        return answer.headers["location"]

    ann.project = ""
    assert place("/keys?done=key-revoked") == "/p/me/keys?done=key-revoked"
    assert place(path) == place(f"/p/me{path}") == f"/p/{shop.id}{path}"
    assert place(f"{path}/raw?x=%20") == f"/p/{shop.id}{path}/raw?x=%20"
    assert ann.open(f"/p/{own.id}/inbox").status == 200
    assert ann.open(f"/p/{shop.id}/inbox").status == 200
    assert place("/keys") == f"/p/{shop.id}/keys"
    assert place("/") == f"/p/{shop.id}/"
    assert place(f"/p/{own.id}") == "/p/me/"
    assert ann.open(f"/p/me/inbox/messages/{PATHS['message_id']}").status == 404


def test_every_page_has_a_role_or_is_personal(house: House) -> None:
    """Pages that change something are for editors or owners, except those about the person.

    A call that is tried checks the role itself.
    """
    for page in pages_of(house):
        assert page.guard.is_personal == (page.needed_role is None), page.path
        if page.method != "GET" and page.needed_role is Role.READER:
            assert page.path in ("/project/leave", "/api/answers/<operation_id>")
    owners = {page.path for page in pages_of(house) if page.needed_role is Role.OWNER}
    assert {"/keys", "/webhooks", "/project/delete", "/keys/<key_id>/revoke"} <= owners


@rows(Role.READER, Role.EDITOR)
def test_a_page_answers_only_members_with_its_role(
    house: House, ann: Browser, bob: Browser, role: Role
) -> None:
    """A member gets 403 from exactly the pages that need a higher role."""
    join(bob, invite(ann, role))
    bob.open("/project")
    shop, token = account_of(house, "shop"), bob.page.form_token
    for page in pages_of(house):
        if page.guard.is_personal or page.path == "/project/leave" or page.path.endswith("/live"):
            continue
        path = filled(page).replace("/me/", f"/{shop.id}/", 1)
        form = b"" if page.method == "GET" else f"form-token={token}".encode()
        answer = bob.send(page.method, path, form)
        assert page.needed_role is not None
        lacks = not role.includes(page.needed_role)
        is_refused = answer.status == 403 and f"you are a {role}" in bob.page.text.lower()
        assert is_refused is lacks, (page.method, page.path, answer.status)
    assert run(house.assembly.accounts.keep.find("shop")) == shop


def test_roles_are_changed_and_people_removed(house: House, ann: Browser, bob: Browser) -> None:
    """An owner changes roles and removes members; the last owner stays one."""
    join(bob, invite(ann, Role.READER))
    ids = {name: account_of(house, name).id for name in ("ann", "bob")}
    wrong = ann.submit(f"/project/members/{ids['ann']}/role", role="reader")
    assert wrong.status == 409
    assert "only owner" in ann.page.text
    ann.follow(ann.submit(f"/project/members/{ids['bob']}/role", role="owner"))
    assert "The role has been changed" in ann.page.text
    assert ann.submit(f"/project/members/{'a' * 13}/role", role="owner").status == 404
    assert ann.submit(f"/project/members/{ids['bob']}/role", role="king").status == 400
    bob.follow(bob.submit(f"/project/members/{ids['ann']}/remove"))
    assert ann.open("/project").status == 404
    ann.open("/projects")
    assert "shop" not in ann.page.text
    assert bob.submit("/project/leave").status == 409


def test_a_member_leaves(house: House, ann: Browser, bob: Browser) -> None:
    """The pages of a project are closed to someone who has left it."""
    join(bob, invite(ann, Role.READER))
    bob.follow(bob.submit("/project/leave"))
    assert "You have left the project" in bob.page.text
    assert bob.open("/inbox").status == 404


def test_a_project_is_renamed_and_deleted(house: House, ann: Browser) -> None:
    """An owner renames a project, and deletes it by entering its name."""
    house.receive(house.address(account=account_of(house, "shop")))
    assert ann.submit("/project/rename", name="ann").status == 409
    ann.follow(ann.submit("/project/rename", name="store"))
    assert "store" in ann.page.text
    assert re.search(r"Messages\s*1\s", ann.page.text)
    assert ann.submit("/project/delete", name="stor").status == 400
    ann.follow(ann.submit("/project/delete", name="store"))
    assert "The project has been deleted" in ann.page.text
    assert {one.name for one in run(house.assembly.accounts.keep.accounts())} == {"first", "ann"}


def test_the_only_owner_of_a_project_is_not_deleted(house: House, ann: Browser) -> None:
    """A person who is the only owner of a project is deleted after the project."""
    keep = house.assembly.accounts.keep
    with pytest.raises(Exception, match="the only owner of the project 'shop'"):
        run(keep.delete(account_of(house, "ann")))
    assert account_of(house, "ann").disabled_at is None
    run(keep.delete(account_of(house, "shop")))
    run(keep.delete(account_of(house, "ann")))


@rows("", "x" * 65, "a\x07b", "ann")
def test_names_of_projects(house: House, ann: Browser, name: str) -> None:
    """A project has a printable name that no account has."""
    assert ann.submit("/projects", name=name).status in (400, 409)


def test_a_project_cannot_sign_in(house: House, ann: Browser) -> None:
    """A project gets no password."""
    with pytest.raises(Exception, match="its members sign in"):
        run(
            house.assembly.accounts.sign_in.set_password(account_of(house, "shop"), "correct horse")
        )
    assert Browser(house).sign_in("shop").status == 403


def test_the_menu_has_the_pages_of_the_role(house: House, ann: Browser, bob: Browser) -> None:
    """A reader has no links to pages that need a higher role; the menu declares their roles."""
    needed = {page.path: page.needed_role for page in pages_of(house) if page.method == "GET"}
    roles = {entry: role for _, entry, role in MENU}
    assert roles == {entry: needed[entry] for entry in roles}
    join(bob, invite(ann, Role.READER))
    bob.open("/inbox")
    linked = {one.removeprefix(f"/p/{bob.project}") for one in bob.page.addresses}
    assert roles.keys() - linked == {"/keys", "/webhooks"}
    assert "<title>Inbox - shop - mailcheck</title>" in bob.page.source


def test_the_tests_know_the_paths_of_projects(house: House) -> None:
    """The browser of the tests adds the project to the paths that have one."""
    assert segments_of(page.path for page in pages_of(house) if page.is_of_project) == SEGMENTS


def test_calls_that_are_tried_show_no_more_than_pages(house: House, ann: Browser) -> None:
    """Readers see no webhooks, whose addresses can be secrets; nobody gets past confirmations."""
    bob = Browser(house, "192.0.2.12")
    bob.sign_up("bob")
    join(bob, invite(ann, Role.READER))

    def attempt(browser: Browser, name: str, **form: str) -> int:
        if not browser.page.form_token:
            browser.open("/project")
        return browser.submit(f"/api/answers/{name}", **form).status

    assert bob.open("/webhooks").status == 403
    assert (attempt(bob, "listWebhooks"), attempt(ann, "listWebhooks")) == (403, 200)
    assert attempt(bob, "getInbox") == 200
    confirmed = [
        route.operation.id
        for route in build_routes(house.assembly)
        if route.method != "GET" and Scope.WEBHOOKS in route.operation.scopes
    ]
    assert "createInboundRoute" in confirmed
    assert {attempt(ann, name) for name in confirmed} == {400}
