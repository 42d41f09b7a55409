"""People confirm who they are before an action that outlasts their session."""

import json
import re

import pytest

from mailcheck.assembly.doors.pages import build_pages
from mailcheck.assembly.doors.rest import build_routes
from mailcheck.core.instants import SECOND
from mailcheck.operations.accounts.confirm import FRESH_MINUTES
from mailcheck.web.api.description import ApiDescription
from tests.fakes.authenticator import Authenticator
from tests.fakes.company import Company
from tests.house import Answer, House, run
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.conftest import house_at
from tests.web.dashboard.test_dashboard_company import company_house, sign_in
from tests.web.dashboard.test_dashboard_passkeys import PUBLIC, add, authenticator, options
from tests.web.oauth.program import Program, add_client, returned

PASSWORD = "correct horse"
LATER = FRESH_MINUTES * 60 + 1
"""Seconds after which a session alone is not enough."""

CONFIRMED = [
    "/account/company",
    "/account/company/remove",
    "/account/confirm",
    "/account/invitations",
    "/account/passkeys",
    "/account/passkeys/<passkey_id>/remove",
    "/account/passkeys/options",
    "/account/second-factor",
    "/inbound",
    "/inbound/routes/<route_id>",
    "/keys",
    "/keys/<key_id>/rotate",
    "/project/invitations",
    "/project/members/<account_id>/role",
    "/webhooks",
    "/webhooks/<webhook_id>/rotate",
]
"""The forms that give access which outlasts a session. The page of consent is another one."""


@pytest.fixture
def house() -> House:
    """A house at a public address."""
    return house_at(PUBLIC)


@pytest.fixture
def browser(house: House) -> Browser:
    """The browser of Ann, who signed in some time ago."""
    browser = Browser(house)
    browser.sign_up("ann", PASSWORD)
    house.pass_time(LATER)
    browser.open("/keys")
    return browser


def keys_of(house: House) -> list[str]:
    """Return the names of Ann's keys."""
    ann = run(house.assembly.accounts.keep.find("ann"))
    return [key.name for key in run(house.assembly.accounts.keep.list_keys(ann))]


def create_key(browser: Browser, **more: str) -> Answer:
    """Submit the form for a key."""
    return browser.submit("/keys", name="stolen", scope="domains", days="7", **more)


def test_the_confirmed_forms(house: House) -> None:
    """The forms that give lasting access ask, and no others."""
    routes = build_routes(house.assembly)
    _, _, pages = build_pages(house.assembly, routes, ApiDescription(routes))
    assert sorted(page.path for page in pages if page.guard.needs_confirmation) == CONFIRMED
    assert {page.method for page in pages if page.guard.needs_confirmation} == {"POST"}


def test_a_stolen_session_creates_no_key(house: House, browser: Browser) -> None:
    """A session alone gets no key some minutes after the sign-in, and with the password does."""
    asked = create_key(browser)
    assert asked.status == 403
    assert "Confirm that it is you" in browser.page.text
    assert keys_of(house) == []
    wrong = create_key(browser, **{"confirm-password": "wrong horse"})
    assert wrong.status == 403
    assert "current password is wrong" in browser.page.text
    assert keys_of(house) == []
    # The page has the fields of the first form, so that nothing is entered again.
    kept = {name: one for name, one in browser.page.fields.items() if name != "confirm-username"}
    assert (kept["name"], kept["scope"], kept["days"]) == ("stolen", "domains", "7")
    done = browser.post("/keys", **kept, **{"confirm-password": PASSWORD})
    assert done.status == 200
    assert keys_of(house) == ["stolen"]


def test_a_confirmation_lasts_some_minutes(house: House, browser: Browser) -> None:
    """After a confirmation, the session may do more for some minutes, and asks again then."""
    create_key(browser, **{"confirm-password": PASSWORD})
    browser.open("/keys")
    assert create_key(browser).status == 200
    house.pass_time(LATER)
    browser.open("/keys")
    assert create_key(browser).status == 403
    other = Browser(house, "192.0.2.12")
    other.sign_in("ann", PASSWORD)
    other.open("/keys")
    assert create_key(other).status == 200
    browser.open("/keys")
    assert create_key(browser).status == 403, "a confirmation is for one session"


def test_a_passkey_needs_a_confirmation(house: House, browser: Browser) -> None:
    """Neither the challenge for a passkey nor the passkey is accepted from an old session."""
    assert "To add a passkey, confirm that it is you." in browser.read("/account")
    refused = browser.submit("/account/passkeys/options", "Accept: application/json")
    assert refused.status == 403
    assert browser.submit("/account/passkeys", name="x", credential="{}").status == 403
    done = browser.submit("/account/confirm", **{"confirm-password": PASSWORD})
    assert done.headers["location"] == "/account?done=confirmed"
    assert add(browser, authenticator()).headers["location"] == "/account?done=passkey-added"


def test_scripts_are_told(browser: Browser) -> None:
    """A script gets a sentence in JSON instead of the page."""
    token = browser.page.form_token
    fields = ("Accept: application/json", f"X-Form-Token: {token}")
    browser.fields = fields
    answer = browser.send("POST", "/account/passkeys/options", b"")
    found = answer.json if not answer.headers["content-type"].startswith("text/html") else {}
    assert answer.status == 403
    assert not found or "confirm who you are" in found["error"]


def with_passkey(house: House, browser: Browser) -> Authenticator:
    """Give Ann a passkey, and let some time pass."""
    device = authenticator()
    browser.submit("/account/confirm", **{"confirm-password": PASSWORD})
    add(browser, device)
    house.pass_time(LATER)
    browser.open("/account")
    return device


def test_a_passkey_confirms(house: House, browser: Browser) -> None:
    """An existing passkey of the person confirms, once, and only with its own challenge."""
    device = with_passkey(house, browser)
    asked = options(browser, "/account/confirm/options")
    assert len(asked["allowCredentials"]) == 1
    signing_in = options(browser, "/sign-in/passkey/options")
    device.counter += 1
    refused = create_key(browser, **{"confirm-credential": device.get(signing_in)})
    assert refused.status == 403
    device.counter += 1
    answer = device.get(asked)
    assert create_key(browser, **{"confirm-credential": answer}).status == 200
    house.pass_time(LATER)
    assert create_key(browser, **{"confirm-credential": answer}).status == 403


def test_the_passkey_of_another_person(house: House, browser: Browser) -> None:
    """A passkey of another account confirms nothing, even with a challenge of that account."""
    with_passkey(house, browser)
    thief = Browser(house, "192.0.2.66")
    thief.sign_up("thief", PASSWORD)
    device = authenticator()
    add(thief, device)
    own = options(thief, "/account/confirm/options")
    device.counter += 1
    refused = create_key(browser, **{"confirm-credential": device.get(own)})
    assert refused.status == 403
    assert keys_of(house) == []


def test_the_password_alone_is_not_enough(house: House, browser: Browser) -> None:
    """If an account requires a passkey after the password, the password alone confirms nothing."""
    device = with_passkey(house, browser)
    done = {"confirm-password": PASSWORD}
    assert browser.submit("/account/second-factor", required="true", **done).status == 303
    house.pass_time(LATER)
    browser.open("/keys")
    assert create_key(browser, **done).status == 403
    assert "confirm-password" not in browser.page.ids
    asked = options(browser, "/account/confirm/options")
    device.counter += 1
    assert create_key(browser, **{"confirm-credential": device.get(asked)}).status == 200


def test_guessing_is_limited(house: House, browser: Browser) -> None:
    """A stolen session guesses few passwords."""
    statuses = [create_key(browser, **{"confirm-password": f"wrong{n}"}).status for n in range(12)]
    assert statuses[0] == 403
    assert statuses[-1] == 429
    assert create_key(browser, **{"confirm-password": PASSWORD}).status == 429
    assert keys_of(house) == []


def test_an_agent_is_not_connected_by_a_stolen_session(house: House, browser: Browser) -> None:
    """Consent to an agent asks too, keeps the request, and leads back to it; a refusal does not."""
    program = Program(browser, add_client(house)[0].id)
    program.ask(state="s", resource=None)
    assert program.submit().status == 403
    page = browser.page
    assert page.fields["decision"] == "allow"
    assert "confirm-password" in page.ids
    form = {"form-token": page.form_token, "query": page.fields["query"]}
    form |= {"account": page.fields["account"], "scope": "domains", "decision": "allow"}
    done = browser.post("/authorize", **form, **{"confirm-password": PASSWORD})
    assert done.headers["cross-origin-opener-policy"] == "unsafe-none"
    assert returned(done)["state"] == "s"
    house.pass_time(LATER)
    program.ask(resource=None)
    assert returned(program.submit("deny"))["error"] == "access_denied"


def test_hostile_fields_are_text(browser: Browser) -> None:
    """The page repeats fields of the form as text."""
    answer = browser.submit("/keys", **{'"><script src=x>': '"><script src=y>', "name": "<b>"})
    assert answer.status == 403
    assert b"<script src=x" not in answer.body
    assert b"<script src=y" not in answer.body


def test_a_person_of_the_company_signs_in_again() -> None:
    """Without a password or a passkey, the page leads to the company and back."""
    company = Company()
    house = company_house(company)
    browser = Browser(house)
    sign_in(browser, company)
    house.pass_time(LATER)
    browser.open("/keys")
    assert create_key(browser).status == 403
    text = browser.page.text
    assert "again" in text
    assert "confirm-password" not in browser.page.ids
    (again,) = [one for one in browser.page.addresses if one.startswith("/sign-in/company")]
    assert again == "/sign-in/company?next=/p/me/keys"
    now = int(house.assembly.runtime.now()) // SECOND
    company.change = lambda claims: claims.update(iat=now, exp=now + 300)
    back = sign_in(browser, company, again)
    assert back.headers["location"] == "/p/me/keys"
    browser.open("/keys")
    assert create_key(browser).status == 200


def test_a_person_without_any_way(house: House) -> None:
    """A person who only has links to sign in is told to ask for a new one."""
    accounts = house.assembly.accounts
    eve = run(accounts.keep.add("eve"))
    code = run(accounts.sign_in.create_link(eve))
    browser = Browser(house, "192.0.2.13")
    browser.open(f"/sign-in/link?code={code}")
    browser.submit("/sign-in/link", code=code)
    browser.open("/keys")
    assert create_key(browser).status == 200
    house.pass_time(LATER)
    browser.open("/keys")
    assert create_key(browser, **{"confirm-password": ""}).status == 403
    assert re.search("Ask the operator of this service for a new link", browser.page.text)


def test_a_challenge_needs_a_session(house: House) -> None:
    """A stranger gets no challenge to confirm."""
    stranger = Browser(house, "192.0.2.14")
    stranger.open("/sign-in")
    answer = stranger.submit("/account/confirm/options")
    assert answer.status == 303
    assert json.dumps(answer.headers["location"]) == '"/sign-in"'
