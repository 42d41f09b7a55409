"""Invitations to a project for people who have no account: one step from the link to the mail."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

from msgspec.structs import replace

from mailcheck.core.projects import Role
from mailcheck.operations.accounts.registration_rules import INVITATION_DAYS
from tests.fakes.company import ISSUER, Company
from tests.house import House, config_in_memory, run
from tests.table import rows
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.conftest import CHEAP
from tests.web.dashboard.test_dashboard_company import company_house, sign_in
from tests.web.dashboard.test_dashboard_projects import join

CAROL = "carol@example.com"
NAMED = f"You have been invited to the project shop as editor, as {CAROL}"


def build(**options: Any) -> House:
    """Build a house with account options and a project of Ann's."""
    house = House(config_in_memory(accounts=replace(CHEAP, **options)))
    accounts = house.assembly.accounts
    ann = run(accounts.keep.add("ann"))
    run(accounts.sign_in.set_password(ann, "correct horse"))
    run(accounts.projects.create(ann, "shop"))
    return house


def owner_of(house: House) -> Browser:
    """Return the browser of Ann, which shows the project."""
    browser = Browser(house)
    browser.follow(browser.sign_in("ann"))
    browser.project = run(house.assembly.accounts.projects.find("shop")).id
    return browser


def invite(owner: Browser, address: str = CAROL) -> str:
    """Invite an address on the page of the project, and return the path of the link."""
    owner.open("/project")
    owner.submit("/project/invitations", role="editor", address=address)
    return owner.find(r"(/join\?invitation=[\w-]+)")


def members(house: House) -> list[tuple[str, Role]]:
    """Return the members of the project but its first owner."""
    projects = house.assembly.accounts.projects
    shop = run(projects.find("shop"))
    return [(one.name, one.role) for one in run(projects.members(shop))][1:]


@rows(
    {"registration": "invite", "invite_by": "owners"},
    {"registration": "open"},
)
def test_one_invitation_is_enough(options: dict[str, str]) -> None:
    """Who has no account comes from the link to the project with one form."""
    house = build(**options)
    link = invite(owner_of(house))
    carol = Browser(house, "192.0.2.12")
    carol.follow(carol.open(link))
    assert NAMED in carol.page.text
    (sign_up,) = (one for one in carol.page.addresses if one.startswith("/sign-up"))
    carol.open(sign_up)
    assert NAMED in carol.page.text
    assert f'value="{CAROL}"' in carol.page.source
    assert "readonly" in carol.page.source
    code = link.partition("=")[2]
    form = {"password": "battery staple", "invitation": code}
    wrong = carol.submit("/sign-up", name="mallory@example.com", **form)
    assert (wrong.status, NAMED in carol.page.text) == (400, True)
    assert f"this invitation is for {CAROL}" in carol.page.text.lower()
    carol.follow(carol.submit("/sign-up", name=CAROL, **form))
    assert "You are a member of this project now" in carol.page.text
    assert members(house) == [(CAROL, Role.EDITOR)]
    if options["registration"] == "invite":
        assert Browser(house, "192.0.2.13").open(sign_up).status == 403


def test_the_invitation_survives_signing_in() -> None:
    """Who has an account signs in, also after a wrong password, and joins with it."""
    house = build(registration="invite", invite_by="owners")
    bob = run(house.assembly.accounts.keep.add("bob"))
    run(house.assembly.accounts.sign_in.set_password(bob, "correct horse"))
    link = invite(owner_of(house))
    browser = Browser(house, "192.0.2.12")
    browser.follow(browser.open(link))
    browser.submit("/sign-in", name="bob", password="wrong horse!", next=link)
    assert NAMED in browser.page.text
    browser.follow(browser.submit("/sign-in", name="bob", password="correct horse", next=link))
    assert NAMED in browser.page.text
    join(browser, link)
    assert members(house) == [("bob", Role.EDITOR)]


@rows(
    ({"registration": "invite"}, CAROL, 403, "only operators of this service invite people"),
    ({"registration": "closed"}, CAROL, 403, "only the operator of this service can create"),
    ({"registration": "open"}, "carol", 400, "enter a mail address, such as ann@example.com"),
    ({"registration": "open"}, "a" * 60 + "@example.com", 400, "1 to 64 characters"),
)
def test_who_may_invite_whom(options: dict[str, str], address: str, status: int, said: str) -> None:
    """An owner who may not invite an address is told why, and the link is not created."""
    owner = owner_of(build(**options))
    owner.open("/project")
    answer = owner.submit("/project/invitations", role="editor", address=address)
    assert (answer.status, said in owner.page.text.lower()) == (status, True), owner.page.text
    assert "/join?invitation=" not in owner.page.source


def test_an_operator_may_always_invite() -> None:
    """The operator invites whom `invite_by` lets owners not invite; others see no field."""
    house = build(registration="invite")
    assert 'name="address"' not in owner_of(house).open("/project").body.decode()
    projects = house.assembly.accounts.projects
    shop = run(projects.find("shop"))
    code = run(projects.invite(shop, Role.READER, CAROL)).code
    carol = Browser(house, "192.0.2.12")
    assert carol.open(f"/sign-up?invitation={code}").status == 200


def test_an_invitation_without_an_address() -> None:
    """It creates no account where sign-up needs an invitation, and says what to ask for."""
    house = build(registration="invite", invite_by="owners")
    link = invite(owner_of(house), "")
    browser = Browser(house, "192.0.2.12")
    browser.follow(browser.open(link))
    assert "Ask for an invitation with your mail address" in browser.page.text
    browser.open(link.replace("/join", "/sign-up"))
    assert "for a person who has an account" in browser.page.text


def test_an_expired_invitation() -> None:
    """The page to sign in says that the invitation of its link is gone."""
    house = build(registration="open")
    link = invite(owner_of(house))
    house.pass_time(INVITATION_DAYS * 86_400)
    browser = Browser(house, "192.0.2.12")
    browser.follow(browser.open(link))
    assert "has been used or has expired: ask for a new one" in browser.page.text


def test_the_invitation_survives_the_company() -> None:
    """It is named when the company's sign-in fails, and the next attempt leads to it."""
    company = Company()
    house = company_house(company)
    accounts = house.assembly.accounts
    shop = run(accounts.projects.create(run(accounts.keep.add("abe")), "shop"))
    link = f"/join?invitation={run(accounts.projects.invite(shop, Role.EDITOR, CAROL)).code}"
    browser = Browser(house)
    browser.follow(browser.open(link))
    (away,) = (one for one in browser.page.addresses if one.startswith("/sign-in/company"))
    state = parse_qs(urlsplit(browser.open(away).headers["location"]).query)["state"][0]
    browser.open(f"/sign-in/company/callback?error=access_denied&state={state}&iss={ISSUER}")
    assert NAMED in browser.page.text
    assert away in browser.page.addresses
    browser.follow(sign_in(browser, company, away))
    assert NAMED in browser.page.text
    join(browser, link)
    assert members(house) == [("ann", Role.EDITOR)]
