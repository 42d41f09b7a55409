"""Passkeys on the pages, in a browser without a screen and with an authenticator of the test."""

import json
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest

from mailcheck.config.options import WebOptions
from mailcheck.core.errors import PasskeyNeeded
from tests.fakes.authenticator import FLAG, Authenticator
from tests.house import Answer, House, config_in_memory, result_of, run
from tests.table import rows
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.conftest import house_at

PUBLIC, DOMAIN = "https://mail.company.example", "mail.company.example"


@pytest.fixture
def house() -> House:
    """A house at a public address."""
    return house_at(PUBLIC)


@pytest.fixture
def browser(house: House) -> Browser:
    """The browser of Ann, who has a password."""
    browser = Browser(house)
    browser.sign_up("ann")
    return browser


def authenticator(**options: Any) -> Authenticator:
    """Return an authenticator for the site."""
    return Authenticator(PUBLIC, DOMAIN, **options)


def options(browser: Browser, path: str) -> dict[str, Any]:
    """Return the options for the browser."""
    answer = browser.submit(path)
    assert answer.status == 200, answer.body
    found: dict[str, Any] = json.loads(answer.body)
    return found


def add(browser: Browser, device: Authenticator, name: str = "My laptop") -> Answer:
    """Add a passkey on the page of the account."""
    browser.open("/account")
    asked = options(browser, "/account/passkeys/options")
    return browser.submit("/account/passkeys", name=name, credential=device.create(asked))


def sign_in(browser: Browser, device: Authenticator, **fields: str) -> Answer:
    """Sign in with the passkey alone."""
    browser.open("/sign-in")
    asked = options(browser, "/sign-in/passkey/options")
    return browser.submit("/sign-in/passkey", credential=device.get(asked), **fields)


@pytest.fixture
def device() -> Authenticator:
    """Return an authenticator without passkeys."""
    return authenticator()


def test_a_passkey_signs_in_alone(device: Authenticator, house: House, browser: Browser) -> None:
    """A passkey is added on the page of the account, and signs in without name or password."""
    assert add(browser, device).headers["location"] == "/account?done=passkey-added"
    browser.open("/account")
    assert "passkeys" in browser.page.ids
    other = Browser(house, "192.0.2.12")
    device.counter = 2
    answer = sign_in(other, device, next="/p/me/inbox")
    assert (answer.status, answer.headers["location"]) == (303, "/p/me/inbox")
    assert "ann" in other.read("/account")
    actions = [one.action for one in run(house.assembly.accounts.audit.newest(None, 0))]
    assert "passkey added" in actions


def test_the_options_require_the_person(browser: Browser) -> None:
    """Browsers are asked for user verification and a discoverable passkey of this site."""
    asked = options(browser, "/account/passkeys/options")
    assert asked["rp"]["id"] == DOMAIN
    assert asked["authenticatorSelection"]["userVerification"] == "required"
    assert asked["authenticatorSelection"]["residentKey"] == "required"
    assert asked["attestation"] == "none"
    assert len(asked["challenge"]) >= 43
    add(browser, authenticator())
    again = options(browser, "/account/passkeys/options")
    assert len(again["excludeCredentials"]) == 1
    assert again["challenge"] != asked["challenge"]
    asked = options(browser, "/sign-in/passkey/options")
    assert asked["userVerification"] == "required"
    assert "allowCredentials" not in asked, "a stranger learns no credential"


@rows(
    ("https://Mail.Company.Example", PUBLIC),
    ("HTTPS://mail.company.example:443", PUBLIC),
    (f"{PUBLIC}:443/mailcheck", PUBLIC),
    (f"{PUBLIC}:8443", f"{PUBLIC}:8443"),
    ("https://m\u00fcnchen.example", "https://xn--mnchen-3ya.example"),
    ("http://LOCALHOST:80", "http://localhost"),
)
def test_the_origin_is_that_of_browsers(public: str, origin: str) -> None:
    """Passkeys and forms work for each way to write the public URL."""
    house = house_at(public)
    browser = Browser(house, "192.0.2.10", f"Origin: {origin}")
    browser.sign_up("ann")
    device = Authenticator(origin, urlsplit(origin).hostname or "")
    assert add(browser, device).headers["location"].endswith("/account?done=passkey-added")
    device.counter = 2
    assert sign_in(Browser(house, "192.0.2.12"), device).status == 303


def second_step(house: House) -> tuple[Browser, dict[str, Any]]:
    """Enter the right password; return the browser and the options of the second step."""
    other = Browser(house, "192.0.2.12")
    assert other.sign_in("ann").status == 200
    return other, json.loads(other.find(r'data-request="([^"]+)"').replace("&#34;", '"'))


def test_a_passkey_after_the_password(
    device: Authenticator, house: House, browser: Browser
) -> None:
    """As a second factor, the password alone opens nothing, and the passkey completes it."""
    assert browser.submit("/account/second-factor", required="true").status == 400
    add(browser, device)
    assert browser.submit("/account/second-factor", required="true").status == 303
    other, asked = second_step(house)
    assert len(asked["allowCredentials"]) == 1
    assert not other.is_signed_in
    other, asked = second_step(house)
    device.counter = 2
    assert other.submit("/sign-in/passkey", credential=device.get(asked)).status == 303
    assert other.is_signed_in
    wrong = Browser(house, "192.0.2.13")
    assert wrong.sign_in("ann", "wrong password").status == 403
    with pytest.raises(PasskeyNeeded):
        run(house.assembly.accounts.sign_in.verify("ann", "correct horse", "192.0.2.14"))


def test_the_second_step_is_for_one_account(house: House, browser: Browser, bob: Browser) -> None:
    """The passkey of another person does not complete the sign-in after a password."""
    add(browser, authenticator())
    browser.submit("/account/second-factor", required="true")
    of_bob = authenticator(credential_id=b"bob's")
    add(bob, of_bob)
    other, asked = second_step(house)
    of_bob.counter = 2
    assert other.submit("/sign-in/passkey", credential=of_bob.get(asked)).status == 403
    assert not other.is_signed_in


def test_names_and_removal(device: Authenticator, house: House, browser: Browser) -> None:
    """A person renames and removes passkeys; after the last one the password is enough again."""
    add(browser, device)
    browser.submit("/account/second-factor", required="true")
    ann = run(house.assembly.accounts.keep.find("ann"))
    (passkey,) = result_of(house.assembly.accounts.passkey_store.passkeys_of(ann.id))
    path = f"/account/passkeys/{passkey.id}"
    assert browser.submit(f"{path}/rename", name="Old phone").status == 303
    answer = browser.open("/account")
    assert 'value="Old phone"' in answer.body.decode()
    for name in ("", " ", "x" * 61, "a\u202eb"):
        assert browser.submit(f"{path}/rename", name=name).status == 400
    assert browser.submit(f"{path}/remove").status == 303
    other = Browser(house, "192.0.2.12")
    device.counter = 9
    assert sign_in(other, device).status == 403
    assert other.sign_in("ann").status == 303


def test_the_operator_removes_lost_passkeys(house: House, browser: Browser) -> None:
    """Without its device, an account is opened again by the command line."""
    from mailcheck.operations.accounts.passkeys import remove_passkeys

    add(browser, authenticator())
    add(browser, authenticator(credential_id=b"other"), "Phone")
    browser.open("/account")
    browser.submit("/account/second-factor", required="true")
    accounts = house.assembly.accounts
    ann = run(accounts.keep.find("ann"))
    removed = run(remove_passkeys(accounts.passkey_store, accounts.audit, ann))
    assert removed == ["My laptop", "Phone"]
    assert Browser(house, "192.0.2.12").sign_in("ann").status == 303


def test_disabled_people_stay_out(device: Authenticator, house: House, browser: Browser) -> None:
    """A passkey of a disabled account opens nothing."""
    add(browser, device)
    ann = run(house.assembly.accounts.keep.find("ann"))
    run(house.assembly.accounts.keep.disable(ann))
    device.counter = 2
    other = Browser(house, "192.0.2.12")
    assert sign_in(other, device).status == 403
    assert "disabled" in other.page.text


@rows("", "http://mail.company.example", "https://192.0.2.1")
def test_without_a_usable_address_there_are_none(url: str) -> None:
    """Where browsers allow no passkeys, pages do not offer them, and the reason is an error."""
    house = House(config_in_memory(web=WebOptions(public_url=url)))
    browser = Browser(house)
    assert b"passkey" not in browser.open("/sign-in").body
    browser.open("/sign-in")
    assert browser.submit("/sign-in/passkey/options").status == 403
    assert "public_url" in browser.page.text


def changed(device: Authenticator, **fields: Any) -> Authenticator:
    """Return an authenticator with the same key that sends something else."""
    return replace(device, **fields)


BAD = [
    {"origin": "https://evil.example"},
    {"origin": PUBLIC + ".evil.example"},
    {"origin": "https://sub.mail.company.example"},
    {"origin": "http://mail.company.example"},
    {"domain": "evil.example"},
    {"domain": "company.example"},
    {"flags": int(FLAG.UP)},
    {"flags": int(FLAG.UV)},
    {"flags": 0},
    {"cross_origin": True},
]


@pytest.mark.attack
@pytest.mark.parametrize("bad", BAD)
def test_answers_for_another_site_or_without_the_person(
    device: Authenticator, house: House, browser: Browser, bad: dict[str, Any]
) -> None:
    """Another origin or RP ID, a frame, and a missing user verification are refused."""
    assert add(browser, changed(device, **bad)).status == 400
    add(browser, device)
    device.counter = 2
    other = Browser(house, "192.0.2.12")
    assert sign_in(other, changed(device, **bad)).status == 403
    assert not other.is_signed_in
    assert sign_in(other, device).status == 303


@pytest.mark.attack
def test_challenges_have_one_purpose(
    device: Authenticator, house: House, browser: Browser, bob: Browser
) -> None:
    """A challenge to sign in adds no passkey, one of another person neither, and vice versa."""
    asked = options(browser, "/sign-in/passkey/options")
    asked["user"] = {"id": "YW5u"}
    answer = browser.submit("/account/passkeys", name="a", credential=device.create(asked))
    assert answer.status == 400
    asked = options(bob, "/account/passkeys/options")
    answer = browser.submit("/account/passkeys", name="a", credential=device.create(asked))
    assert answer.status == 400
    add(browser, authenticator())
    asked = options(browser, "/account/passkeys/options")
    other = Browser(house, "192.0.2.12")
    other.open("/sign-in")
    answer = other.submit("/sign-in/passkey", credential=authenticator().get(asked))
    assert answer.status == 403
    for kind in ("webauthn.create", "payment.get", ""):
        other.open("/sign-in")
        asked = options(other, "/sign-in/passkey/options")
        assert other.submit("/sign-in/passkey", credential=device.get(asked, kind)).status == 403


@pytest.mark.attack
def test_another_key_or_another_person(
    device: Authenticator, house: House, browser: Browser, bob: Browser
) -> None:
    """A signature of another key, an unknown credential and a foreign user handle are refused."""
    add(browser, device)
    other = Browser(house, "192.0.2.12")
    for forged in (
        authenticator(user_handle=device.user_handle, counter=9),
        changed(device, credential_id=b"unknown", counter=9),
        changed(device, user_handle=b"somebody", counter=9),
    ):
        assert sign_in(other, forged).status == 403
    assert add(bob, authenticator()).status == 400, "a credential belongs to one account"
    ann = run(house.assembly.accounts.keep.find("ann"))
    (passkey,) = result_of(house.assembly.accounts.passkey_store.passkeys_of(ann.id))
    assert bob.submit(f"/account/passkeys/{passkey.id}/remove").status == 400
    assert bob.submit(f"/account/passkeys/{passkey.id}/rename", name="mine").status == 400


@pytest.mark.attack
@rows(
    "",
    "{",
    "[]",
    "7",
    "null",
    '{"response": {}}',
    '{"response": {"clientDataJSON": 7}, "rawId": "x"}',
    '{"response": {"clientDataJSON": "e30"}, "rawId": "x", "id": "x"}',
    '{"response": {"clientDataJSON": "W10"}, "rawId": [], "id": "x"}',
    '{"response": {"clientDataJSON": "\u00e4"}, "rawId": "\u00e4"}',
    "[" * 8_000,
    '{"response": {"clientDataJSON": "' + "A" * 10_000 + '"}, "rawId": "x"}',
)
def test_broken_answers(house: House, browser: Browser, credential: str) -> None:
    """Any other JSON is refused without a crash."""
    assert browser.submit("/account/passkeys", name="a", credential=credential).status == 400
    other = Browser(house, "192.0.2.12")
    other.open("/sign-in")
    assert other.submit("/sign-in/passkey", credential=credential).status == 403


@pytest.mark.attack
def test_broken_attestations(browser: Browser) -> None:
    """An attestation object that is cut or not CBOR is refused without a crash."""
    for cut in range(0, 160, 16):
        asked = options(browser, "/account/passkeys/options")
        answer = json.loads(authenticator().create(asked))
        whole = answer["response"]["attestationObject"]
        answer["response"]["attestationObject"] = whole[:cut]
        made = browser.submit("/account/passkeys", name="a", credential=json.dumps(answer))
        assert made.status == 400


@pytest.mark.attack
@rows(
    {1: 2, 3: -7, -1: 1, -2: bytes(32), -3: bytes(32)},  # not on the curve
    {1: 2, 3: -7, -1: 1, -2: b"\xff" * 32, -3: b"\xff" * 32},
    {1: 2, 3: -7, -1: 1, -2: b"x", -3: b"y"},
    {1: 2, 3: -7, -1: 9, -2: b"x" * 32, -3: b"y" * 32},  # another curve
    {1: 2, 3: -7},
    {1: 1, 3: -8, -1: 6, -2: b"x" * 31},
    {1: 3, 3: -257, -1: b"", -2: b""},
    {1: 3, 3: -257, -1: bytes(256), -2: b"\x01"},
    {1: 2, 3: -9_999, -1: 1, -2: bytes(32), -3: bytes(32)},  # no algorithm
)
def test_impossible_keys(browser: Browser, public_key: dict[int, Any]) -> None:
    """A passkey whose key can verify no signature is refused, and not stored for later."""
    made = add(browser, authenticator(public_key=public_key))
    assert made.status == 400
    assert "was not accepted" in browser.page.text


@pytest.mark.attack
@pytest.mark.parametrize("count", [0, 4, 5])
def test_a_cloned_authenticator(house: House, browser: Browser, count: int) -> None:
    """A counter that has not grown is the sign of a copy, and is refused."""
    device = authenticator(counter=5)
    add(browser, device)
    other = Browser(house, "192.0.2.12")
    assert sign_in(other, changed(device, counter=count)).status == 403
    assert "copy" in other.page.text
    assert not other.is_signed_in
    assert sign_in(other, changed(device, counter=6)).status == 303
