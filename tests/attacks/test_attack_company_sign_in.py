"""Forged, replayed and mixed-up answers of a company's sign-in service."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from tests.fakes.company import CLIENT_ID, ISSUER, Company
from tests.house import House
from tests.table import rows
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.test_dashboard_company import begin, company_house, names, sign_in

pytestmark = pytest.mark.attack


@pytest.fixture
def company() -> Company:
    """A provider that an attacker controls in part."""
    return Company()


@pytest.fixture
def house(company: Company) -> House:
    """A house with the provider."""
    return company_house(company)


def assert_refused(house: House, browser: Browser, company: Company) -> None:
    """Fail unless the sign-in is refused without an account, a session or a reason."""
    answer = sign_in(browser, company)
    assert answer.status == 403
    assert not browser.is_signed_in
    assert names(house) == ["first"]
    assert b"RS256" not in answer.body
    assert b"token" not in answer.body.replace(b"form-token", b"")


@pytest.fixture
def browser(house: House) -> Browser:
    """Return a browser that is not signed in."""
    return Browser(house)


@rows(
    Company.sign_not,
    Company.sign_with_another_key,
    Company.sign_with_public_key,
    Company.sign_with_client_secret,
    Company.sign_with_key_in_header,
    lambda company, claims: "",
    lambda company, claims: "a.b.c",
    lambda company, claims: company.sign_properly(claims)[:-4] + "AAAA",
    lambda company, claims: "\u00e4." * 3,
)
def test_forged_signatures(
    house: House, company: Company, forge: Callable[[Company, dict[str, Any]], str]
) -> None:
    """No signature, another key, HMAC with the public key or the client secret are refused."""
    company.sign = lambda claims: forge(company, claims)
    assert_refused(house, Browser(house), company)


@rows(
    {"nonce": "another"},
    {"nonce": None},
    {"nonce": ["x"]},
    {"iss": "https://evil.example"},
    {"iss": ISSUER + "/"},
    {"aud": "another client"},
    {"aud": [CLIENT_ID, "another client"]},
    {"aud": [CLIENT_ID], "azp": "another client"},
    {"aud": []},
    {"aud": {}},
    {"exp": 1},
    {"exp": None},
    {"exp": "tomorrow"},
    {"iat": 9_999_999_999},
    {"iat": None},
    {"nbf": 9_999_999_999},
    {"sub": ""},
    {"sub": None},
    {"sub": 7},
    {"sub": "x" * 256},
)
def test_wrong_claims(house: House, company: Company, wrong: dict[str, Any]) -> None:
    """A token for another nonce, issuer, client or time, or without a subject, is refused."""

    def change(claims: dict[str, Any]) -> None:
        claims.update(wrong)
        for name in [name for name, value in wrong.items() if value is None]:
            del claims[name]

    company.change = change
    assert_refused(house, Browser(house), company)


def test_a_code_works_once(house: House, browser: Browser, company: Company) -> None:
    """A callback that is sent again signs nobody in, not even with the cookie of its browser."""
    path = company.approve(begin(browser))
    cookies = dict(browser.cookies)
    assert browser.open(path).status == 303
    assert browser.open(path).status == 403, "the cookie of the sign-in is gone"
    thief = Browser(house, "192.0.2.66")
    assert thief.open(path).status == 403
    thief.cookies = cookies
    assert thief.open(path).status == 403
    assert not thief.is_signed_in


@rows("", "x", "x.y", "e30.", ".", "\u00e4")
def test_a_wrong_state(house: House, browser: Browser, company: Company, state: str) -> None:
    """A callback with another state than that of the browser is refused before the code is used."""
    path = company.approve(begin(browser))
    begun, _, rest = path.partition("state=")
    assert browser.open(f"{begun}state={quote(state)}&{rest.partition('&')[2]}").status == 403
    assert not company.forms


def test_an_attacker_cannot_sign_a_victim_in_as_himself(house: House, company: Company) -> None:
    """The callback of another browser is refused, whether or not the victim has begun a sign-in."""
    path = company.approve(begin(Browser(house, "192.0.2.66")))
    victim = Browser(house)
    assert victim.open(path).status == 403
    begin(victim)
    assert victim.open(path).status == 403
    assert not victim.is_signed_in
    assert not company.forms


def test_a_late_answer(house: House, browser: Browser, company: Company) -> None:
    """An answer after more than ten minutes is refused."""
    path = company.approve(begin(browser))
    house.pass_time(601)
    assert browser.open(path).status == 403
    assert not company.forms


@rows("", "&iss=https://evil.example", f"&iss={ISSUER}/")
def test_a_mixed_up_issuer(house: House, browser: Browser, company: Company, issuer: str) -> None:
    """The answer of another provider is refused, and its code is sent to nobody (RFC 9207)."""
    path = company.approve(begin(browser)).partition("&iss=")[0] + issuer
    assert browser.open(path).status == 403
    assert not company.forms


def test_a_hostile_address_to_sign_out(house: House, company: Company) -> None:
    """Metadata with an unsafe address of the page that ends a session is not used."""
    company.metadata["end_session_endpoint"] = "https://user:pass@evil.example/"
    assert Browser(house).open("/sign-in/company").status == 503


@rows({}, {"keys": 7}, {"keys": [7, {}, {"kty": "oct", "k": "eA"}, {"kty": "RSA", "n": 1}]})
def test_hostile_keys(house: House, company: Company, keys: dict[str, Any]) -> None:
    """A set without a public key for signatures verifies nothing."""
    company.published = keys
    browser = Browser(house)
    assert sign_in(browser, company).status == 503
    assert not browser.is_signed_in


@rows("https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/a\nb")
def test_no_open_redirect(house: House, company: Company, path: str) -> None:
    """After the sign-in the browser stays on this site."""
    browser = Browser(house)
    answer = sign_in(browser, company, f"/sign-in/company?next={quote(path)}")
    assert (answer.status, answer.headers["location"]) == (303, "/")


def test_no_session_fixation(house: House, company: Company) -> None:
    """A session that an attacker has planted is replaced and ends."""
    attacker = Browser(house, "192.0.2.66")
    attacker.sign_up("mallory")
    victim = Browser(house)
    victim.cookies = dict(attacker.cookies)
    sign_in(victim, company)
    assert victim.cookies["__Host-mailcheck-session"] not in attacker.cookies.values()
    assert not attacker.is_signed_in
    assert "ann" in victim.read("/account")


def test_nobody_links_an_account_of_another(house: House, company: Company) -> None:
    """A link that was begun by one person is refused in the session of another."""
    mallory = Browser(house, "192.0.2.66")
    mallory.sign_up("mallory")
    mallory.open("/account")
    page = mallory.submit("/account/company").body.decode()
    (url,) = {one for one in page.split('"') if one.startswith(ISSUER)}
    path = company.approve(url.replace("&amp;", "&"))
    victim = Browser(house)
    victim.sign_up("bob")
    victim.cookies |= {
        name: value for name, value in mallory.cookies.items() if "mailcheck-company-" in name
    }
    assert victim.open(path).status == 403
    victim.open("/account")
    assert victim.post("/account/company").status == 403, "a form of another site"


def test_an_identity_has_one_account(house: House, company: Company) -> None:
    """An identity that signs in to an account cannot be linked to another one."""
    sign_in(Browser(house), company)
    bob = Browser(house, "192.0.2.12")
    bob.sign_up("bob")
    bob.open("/account")
    page = bob.submit("/account/company").body.decode()
    (url,) = {one for one in page.split('"') if one.startswith(ISSUER)}
    assert bob.open(company.approve(url.replace("&amp;", "&"))).status == 409


def test_claims_of_another_person(company: Company) -> None:
    """Groups of a UserInfo answer about another subject are not used."""
    house = company_house(company, allowed_groups=("admins",))
    company.user_info = {"sub": "eve", "groups": ["admins"]}
    assert_refused(house, Browser(house), company)


@rows(7, {"admins": True}, [["admins"]], None, "admin", ["Admins"])
def test_hostile_groups(company: Company, groups: object) -> None:
    """Groups in another form, or with another name, are no groups."""
    house = company_house(company, allowed_groups=("admins",))
    company.claims["groups"] = groups
    assert sign_in(Browser(house), company).status == 403


@rows("", " ", "\u202e", "x" * 5_000, "<script>", "first\u200b", 7, None, "post\nmaster")
def test_hostile_names(house: House, company: Company, name: object) -> None:
    """Any name of the provider ends in an account of an acceptable and unique name."""
    company.claims = {"sub": "s-1", "preferred_username": name}
    browser = Browser(house)
    assert sign_in(browser, company).status == 303
    assert browser.is_signed_in
    (made,) = [one for one in names(house) if one != "first"]
    assert 0 < len(made) <= 64
    assert made.isprintable()


def test_disabled_people_stay_out(house: House, company: Company) -> None:
    """A disabled account is not opened by the company either."""
    sign_in(Browser(house), company)
    accounts = house.assembly.accounts
    from tests.house import run

    run(accounts.keep.disable(run(accounts.keep.find("ann"))))
    browser = Browser(house)
    assert sign_in(browser, company).status == 403
    assert not browser.is_signed_in


def test_errors_of_the_provider_are_not_shown(house: House, browser: Browser) -> None:
    """What stands in the address of the callback does not reach the page."""
    state = begin(browser).partition("state=")[2].partition("&")[0]
    answer = browser.open(
        f"/sign-in/company/callback?error=Call+the+number&iss={quote(ISSUER)}"
        f"&error_description=%3Cb%3E&state={state}"
    )
    assert answer.status == 403
    assert b"Call the number" not in answer.body


def test_cookies_of_abandoned_sign_ins_do_not_pile_up(
    house: House, browser: Browser, company: Company
) -> None:
    """A browser keeps the secrets of the last five sign-ins, however many a page begins."""
    paths = [company.approve(begin(browser), f"code {n}".replace(" ", "")) for n in range(8)]
    assert len(browser.cookies) == 5
    assert browser.open(paths[2]).status == 403
    assert browser.open(paths[3]).status == 303


def test_tokens_cause_few_requests_for_keys(house: House, company: Company) -> None:
    """However many tokens no key has signed, the keys are fetched once a minute."""
    sign_in(Browser(house), company)
    company.sign = company.sign_with_another_key
    browser = Browser(house, "192.0.2.66")
    for _ in range(3):
        for _ in range(3):
            assert sign_in(browser, company).status == 403
        house.pass_time(61)
    assert len([url for url in company.asked if url.endswith("/keys")]) == 3


def test_attempts_are_limited(house: House, browser: Browser, company: Company) -> None:
    """One address begins at most twenty sign-ins in a minute."""
    statuses = [browser.open("/sign-in/company").status for _ in range(21)]
    assert statuses == [303] * 20 + [429]
