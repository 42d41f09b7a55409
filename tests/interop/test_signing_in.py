"""Signing in without a password in real Chromium: a company's provider, and passkeys."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, CDPSession, Page, expect

from tests.browser.keyboard import follow, press
from tests.browser.watching import running_browser
from tests.servers.company import (
    CLIENT_ID,
    CLIENT_SECRET,
    CompanyServer,
    Person,
    running_company,
)
from tests.servers.daemon import Daemon

pytestmark = pytest.mark.end_to_end

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)
PASSWORD = "correct horse battery"


@dataclass(frozen=True, slots=True)
class World:
    """A daemon at http://localhost, where browsers allow passkeys, and a provider."""

    daemon: Daemon
    company: CompanyServer
    public: str


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Run the daemon and the provider."""
    daemon = Daemon(tmp_path_factory.mktemp("signing-in"))
    public = f"http://localhost:{daemon.http_port}"
    back, after = f"{public}/sign-in/company/callback", f"{public}/sign-in?done=signed-out"
    with running_company(back, after) as company:
        daemon.options = {
            "accounts_password_cost": 10,
            "web_public_url": public,
            "oidc_issuer": company.issuer,
            "oidc_client_id": CLIENT_ID,
            "oidc_client_secret": CLIENT_SECRET,
            "oidc_title": "Example Ltd",
            "oidc_roles": ["developers=developer:reader"],
        }
        try:
            daemon.start()
            yield World(daemon, company, public)
            assert "Traceback" not in daemon.output()
        finally:
            daemon.kill()


@pytest.fixture
def context() -> Iterator[BrowserContext]:
    """A browser of its own."""
    with running_browser() as one:
        browser = one.launch(*ARGUMENTS)
        yield browser.new_context()
        browser.close()


def test_a_company_signs_people_in(context: BrowserContext, world: World) -> None:
    """A person signs in through Authlib's provider, comes back to the wanted page, and leaves."""
    company, public = world.company, world.public
    company.people["ann"] = Person("248289761001", "ann", ["developers"])
    page = context.new_page()
    page.goto(f"{public}/keys")
    page.get_by_role("link", name="Sign in with Example Ltd").click()
    expect(page.get_by_role("heading", name="Example Ltd")).to_be_visible()
    page.get_by_label("User").fill("ann")
    page.get_by_role("button", name="Continue").click()
    expect(page).to_have_url(f"{public}/p/me/keys")
    page.goto(f"{public}/account")
    expect(page.get_by_role("main")).to_contain_text("ann")
    before = company.signed_out
    page.get_by_role("button", name="Sign out").first.click()
    expect(page.get_by_text("You have signed out.")).to_be_visible()
    assert page.url == f"{public}/sign-in?done=signed-out"
    assert company.signed_out == before + 1
    page.goto(f"{public}/account")
    expect(page.get_by_label("Password")).to_be_visible()


def sign_up(page: Page, public: str, name: str) -> None:
    """Create an account with a password."""
    page.goto(f"{public}/sign-up")
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_text("Welcome!")).to_be_visible()


def add_authenticator(context: BrowserContext, page: Page) -> tuple[CDPSession, str]:
    """Give the browser a virtual authenticator that verifies its user."""
    session = context.new_cdp_session(page)
    session.send("WebAuthn.enable")
    options: dict[str, Any] = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasResidentKey": True,
        "hasUserVerification": True,
        "isUserVerified": True,
        "automaticPresenceSimulation": True,
    }
    made = session.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    return session, made["authenticatorId"]


def test_passkeys(context: BrowserContext, world: World) -> None:
    """A passkey is added, signs in alone and after the password, and is removed, by keyboard."""
    public = world.public
    page = context.new_page()
    problems: list[str] = []
    page.on("console", lambda one: problems.append(one.text) if one.type == "error" else None)
    session, authenticator = add_authenticator(context, page)
    sign_up(page, public, "carol")
    page.goto(f"{public}/account")
    page.get_by_label("Name of the new passkey").fill("My laptop")
    press(page, page.get_by_role("button", name="Add a passkey"))
    expect(page.get_by_text("The passkey is ready.")).to_be_visible()
    assert not problems

    context.clear_cookies()
    page.goto(f"{public}/inbox")
    press(page, page.get_by_role("button", name="Sign in with a passkey"))
    expect(page).to_have_url(f"{public}/p/me/inbox")

    page.goto(f"{public}/account")
    follow(page, page.get_by_role("button", name="Require a passkey after the password"))
    expect(page.get_by_text("Your password needs a passkey, too.")).to_be_visible()
    context.clear_cookies()
    page.goto(f"{public}/sign-in")
    page.get_by_label("Name", exact=True).fill("carol")
    page.get_by_label("Password").fill(PASSWORD)
    follow(page, page.get_by_role("button", name="Sign in", exact=True))
    expect(page.get_by_role("heading", name="Use your passkey")).to_be_visible()
    press(page, page.get_by_role("button", name="Use the passkey"))
    expect(page).to_have_url(f"{public}/p/me/")
    page.goto(f"{public}/account")
    expect(page.get_by_role("main")).to_contain_text("carol")

    session.send(
        "WebAuthn.setUserVerified", {"authenticatorId": authenticator, "isUserVerified": False}
    )
    context.clear_cookies()
    page.goto(f"{public}/sign-in")
    press(page, page.get_by_role("button", name="Sign in with a passkey"))
    expect(page.get_by_text("The passkey was not used")).to_be_visible()
    session.send(
        "WebAuthn.setUserVerified", {"authenticatorId": authenticator, "isUserVerified": True}
    )

    found = session.send("WebAuthn.getCredentials", {"authenticatorId": authenticator})
    (credential,) = found["credentials"]
    session.send("WebAuthn.clearCredentials", {"authenticatorId": authenticator})
    session.send(
        "WebAuthn.addCredential",
        {"authenticatorId": authenticator, "credential": {**credential, "signCount": 0}},
    )
    page.goto(f"{public}/sign-in")
    press(page, page.get_by_role("button", name="Sign in with a passkey"))
    expect(page.get_by_text("seems to be a copy")).to_be_visible()
    session.send("WebAuthn.clearCredentials", {"authenticatorId": authenticator})
    session.send(
        "WebAuthn.addCredential",
        {"authenticatorId": authenticator, "credential": {**credential, "signCount": 50}},
    )
    press(page, page.get_by_role("button", name="Sign in with a passkey"))
    expect(page).to_have_url(f"{public}/p/me/")
    page.goto(f"{public}/account")
    follow(page, page.get_by_role("button", name="Remove the passkey My laptop"))
    expect(page.get_by_text("The passkey has been removed.")).to_be_visible()
    context.clear_cookies()
    page.goto(f"{public}/sign-in")
    page.get_by_label("Name", exact=True).fill("carol")
    page.get_by_label("Password").fill(PASSWORD)
    follow(page, page.get_by_role("button", name="Sign in", exact=True))
    expect(page).to_have_url(f"{public}/p/me/")
