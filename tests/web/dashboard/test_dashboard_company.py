"""Signing in with the account of a company, in a browser without a screen."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from twisted.logger import capturedLogs, formatEvent

from mailcheck.config.options import AccountsOptions, OidcOptions, ScimOptions, WebOptions
from mailcheck.core.projects import Role
from mailcheck.ports.identity_provider import ProviderRefused, ProviderSilent, ProviderUnusable
from tests.fakes.company import CLIENT_ID, CLIENT_SECRET, ISSUER, PUBLIC_KEY, Company
from tests.house import CHEAP_HASH, Answer, House, config_in_memory, run
from tests.table import rows
from tests.web.dashboard.browser import Browser

PUBLIC = "https://mail.company.example"


def company_house(
    company: Company, passwords: bool = True, scim: ScimOptions | None = None, **options: Any
) -> House:
    """Create a house whose people can sign in with the accounts of a company."""
    oidc = OidcOptions(issuer=ISSUER, client_id=CLIENT_ID, client_secret=CLIENT_SECRET, **options)
    config = config_in_memory(
        oidc=oidc,
        scim=scim or ScimOptions(),
        web=WebOptions(public_url=PUBLIC),
        accounts=AccountsOptions(
            password_cost=CHEAP_HASH, registration="open", passwords=passwords
        ),
    )
    return House(config, identity_provider=company)


@pytest.fixture
def company() -> Company:
    """A provider that knows Ann."""
    return Company()


@pytest.fixture
def house(company: Company) -> House:
    """A house with the provider."""
    return company_house(company)


@pytest.fixture
def browser(house: House) -> Browser:
    """A browser that is not signed in."""
    return Browser(house)


def begin(browser: Browser, path: str = "/sign-in/company") -> str:
    """Begin a sign-in; return the address of the provider to which the browser is sent."""
    answer = browser.open(path)
    assert answer.status == 303, answer.body
    return answer.headers["location"]


def sign_in(browser: Browser, company: Company, path: str = "/sign-in/company") -> Answer:
    """Sign in with the account of the company; return the response to the callback."""
    return browser.open(company.approve(begin(browser, path)))


def names(house: House) -> list[str]:
    """Return the names of all accounts."""
    return [one.name for one in run(house.assembly.accounts.keep.accounts())]


def test_a_person_signs_in_and_has_an_account(
    house: House, browser: Browser, company: Company
) -> None:
    """The first sign-in creates an account, and the next one finds it by the subject."""
    browser.open("/sign-in")
    assert "/sign-in/company?next=/" in browser.page.addresses
    answer = sign_in(browser, company, "/sign-in/company?next=/p/me/inbox")
    assert (answer.status, answer.headers["location"]) == (303, "/p/me/inbox")
    assert browser.is_signed_in
    assert "ann" in names(house)
    company.claims = {"sub": "ann-1", "preferred_username": "somebody else"}
    other = Browser(house, "192.0.2.12")
    sign_in(other, company)
    assert other.is_signed_in
    assert sorted(names(house)) == ["ann", "first"]


def test_the_request_is_complete(browser: Browser) -> None:
    """The provider is asked for a code, with state, nonce, PKCE and the registered address."""
    asked = parse_qs(urlsplit(begin(browser)).query)
    assert asked["response_type"] == ["code"]
    assert asked["redirect_uri"] == [f"{PUBLIC}/sign-in/company/callback"]
    assert asked["scope"] == ["openid profile email"]
    assert asked["code_challenge_method"] == ["S256"]
    again = parse_qs(urlsplit(begin(browser)).query)
    for name in ("state", "nonce", "code_challenge"):
        assert asked[name] != again[name]
        assert len(asked[name][0]) >= 43


def test_nobody_gets_an_account_by_its_name_or_mail(
    house: House, browser: Browser, company: Company
) -> None:
    """A person with the name of an existing account gets another account."""
    company.claims = {"sub": "mallory", "preferred_username": "first", "email": "first@x.example"}
    sign_in(browser, company)
    assert "first-2" in browser.read("/account")
    assert sorted(names(house)) == ["first", "first-2"]


def test_accounts_are_created_only_where_that_is_wanted(company: Company) -> None:
    """Without create_accounts, a person without a linked account is refused."""
    house = company_house(company, create_accounts=False)
    browser = Browser(house)
    assert sign_in(browser, company).status == 403
    assert "No account is linked" in browser.page.text
    assert names(house) == ["first"]
    linking = house.assembly.accounts.company
    assert linking is not None
    run(linking.link(house.account, "ann-1"))
    assert sign_in(browser, company).status == 303
    assert "first" in browser.read("/account")


def test_only_allowed_groups_sign_in(company: Company) -> None:
    """With allowed_groups, a person in none of them is refused and gets no account."""
    house = company_house(company, allowed_groups=("mail-testers",))
    browser = Browser(house)
    company.claims["groups"] = ["sales"]
    assert sign_in(browser, company).status == 403
    assert "not in a group" in browser.page.text
    assert names(house) == ["first"]
    company.claims["groups"] = ["sales", "mail-testers"]
    assert sign_in(browser, company).status == 303


def test_membership_follows_the_groups(company: Company) -> None:
    """Each sign-in sets the roles in the projects of the mapping, and no others."""
    house = company_house(
        company,
        roles=("dev=shop:editor", "lead=shop:owner", "cn=qa,dc=x=lab:reader", "x=none:reader"),
    )
    accounts = house.assembly.accounts
    shop, lab, own = (
        run(accounts.projects.create(house.account, name)) for name in ("shop", "lab", "own")
    )
    browser = Browser(house)
    company.claims["groups"] = ["dev", "cn=qa,dc=x", "x"]
    sign_in(browser, company)
    ann = run(accounts.keep.find("ann"))
    run(accounts.projects.set_member(own, ann, Role.READER))

    def roles() -> dict[str, Role]:
        return {one.project.name: one.role for one in run(accounts.projects.of_person(ann))}

    assert roles() == {"shop": Role.EDITOR, "lab": Role.READER, "own": Role.READER}
    company.claims["groups"] = ["dev", "lead"]
    sign_in(browser, company)
    assert roles() == {"shop": Role.OWNER, "own": Role.READER}
    del company.claims["groups"]
    company.user_info = {"sub": "ann-1", "groups": "dev"}
    sign_in(browser, company)
    assert roles() == {"shop": Role.EDITOR, "own": Role.READER}
    run(accounts.projects.set_member(shop, ann, Role.OWNER))
    run(accounts.projects.remove_member(shop, house.account.id))
    company.user_info = {"sub": "ann-1"}
    sign_in(browser, company)
    assert roles() == {"shop": Role.OWNER, "own": Role.READER}, "a project keeps its last owner"
    assert lab.is_project


def test_an_owner_links_and_removes_a_company_account(
    house: House, browser: Browser, company: Company
) -> None:
    """A signed-in person links an account by a form, and signs in with it from then on."""
    browser.sign_up("bob")
    answer = browser.submit("/account/company")
    assert answer.status == 200
    (url,) = {one for one in answer.body.decode().split('"') if one.startswith(ISSUER)}
    answer = browser.open(company.approve(url.replace("&amp;", "&")))
    assert answer.headers["location"] == "/account?done=company-linked"
    other = Browser(house, "192.0.2.12")
    sign_in(other, company)
    assert "bob" in other.read("/account")
    assert sorted(names(house)) == ["bob", "first"]
    assert browser.submit("/account/company/remove").status == 303
    sign_in(other, company)
    assert sorted(names(house)) == ["ann", "bob", "first"]


def test_a_person_without_a_password_keeps_the_link(
    house: House, browser: Browser, company: Company
) -> None:
    """Nobody removes the only way to sign in."""
    sign_in(browser, company)
    browser.open("/account")
    assert browser.submit("/account/company/remove").status == 400
    assert "ask the operator" in browser.page.text


def test_passwords_can_be_switched_off(company: Company) -> None:
    """Without passwords, only the company and a link of the operator sign in."""
    house = company_house(company, passwords=False)
    accounts = house.assembly.accounts
    run(accounts.sign_in.set_password(house.account, "correct horse"))
    browser = Browser(house)
    browser.open("/sign-in")
    assert "password" not in browser.page.ids
    browser.open("/sign-in/link")
    assert browser.submit("/sign-in", name="first", password="correct horse").status == 403
    assert "passwords are switched off" in browser.page.text.lower()
    assert browser.open("/sign-up").status == 403
    code = run(accounts.sign_in.create_link(house.account))
    browser.open(f"/sign-in/link?code={code}")
    assert not browser.is_signed_in
    browser.open(f"/sign-in/link?code={code}")
    assert browser.submit("/sign-in/link", code=code).status == 303
    assert browser.is_signed_in
    other = Browser(house)
    other.open("/sign-in/link")
    assert other.submit("/sign-in/link", code=code).status == 403
    late = run(accounts.sign_in.create_link(house.account))
    house.pass_time(30 * 60)
    assert other.submit("/sign-in/link", code=late).status == 403


def test_signing_out_ends_the_session_of_the_provider(browser: Browser, company: Company) -> None:
    """After a sign-in with the company, signing out leads to its logout and back."""
    sign_in(browser, company)
    browser.open("/account")
    answer = browser.submit("/sign-out")
    assert answer.status == 200
    assert f'content="0; url={ISSUER}/logout?client_id=mailcheck' in answer.body.decode()
    assert "Sign out" not in browser.page.text
    assert not browser.is_signed_in
    browser.sign_up("bob")
    browser.open("/account")
    assert browser.submit("/sign-out").status == 303


def test_a_silent_provider_is_said(house: House, company: Company) -> None:
    """While the provider is down, the page says so, nothing leaks, and passwords work."""
    company.fault = ProviderSilent("down")
    browser = Browser(house)
    answer = browser.open("/sign-in/company?next=/inbox")
    assert answer.status == 503
    assert "does not answer" in browser.page.text
    assert ISSUER not in answer.body.decode()
    assert "password" in browser.page.ids
    browser.sign_up("bob")
    assert browser.is_signed_in
    company.fault = None
    other = Browser(house)
    path = company.approve(begin(other))
    company.fault = ProviderSilent("down")
    assert other.open(path).status == 503
    assert not other.is_signed_in


def test_keys_are_cached_and_fetched_again(
    house: House, browser: Browser, company: Company
) -> None:
    """Metadata and keys are fetched once an hour, if the keys fit."""
    for _ in range(3):
        sign_in(browser, company)
    assert [url.rpartition("/")[2] for url in company.asked] == ["openid-configuration", "keys"]
    house.pass_time(3600)
    company.change = lambda claims: claims.update(
        iat=claims["iat"] + 3600, exp=claims["exp"] + 3600
    )
    sign_in(browser, company)
    assert browser.is_signed_in
    assert len(company.asked) == 4


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_two_tabs(browser: Browser, company: Company, order: tuple[int, int]) -> None:
    """Sign-ins in two tabs of one browser both succeed, in any order."""
    paths = [company.approve(begin(browser), code) for code in ("one", "two")]
    for number in order:
        assert browser.open(paths[number]).status == 303
        assert browser.is_signed_in
    assert not [name for name in browser.cookies if "company" in name]


def test_a_failure_ends_only_its_own_tab(browser: Browser, company: Company) -> None:
    """A sign-in that fails in one tab, or that no tab has begun, leaves the others alone."""
    declined, path = begin(browser), company.approve(begin(browser), "two")
    state = parse_qs(urlsplit(declined).query)["state"][0]
    back = "/sign-in/company/callback"
    assert browser.open(f"{back}?error=access_denied&state={state}&iss={ISSUER}").status == 403
    assert browser.open(f"{back}?code=x&state=unknown&iss={ISSUER}").status == 403
    assert browser.open(path).status == 303
    assert browser.is_signed_in


@pytest.mark.parametrize("key_id", ["one", "two", None])
@pytest.mark.parametrize("before", ["one", None])
def test_a_replaced_key(
    house: House, company: Company, before: str | None, key_id: str | None
) -> None:
    """After the provider has replaced its key, people sign in, also under the same or no id."""
    company.published = {"keys": [{**PUBLIC_KEY, "kid": before}]}
    sign_in(Browser(house), company)
    company.replace_key(key_id)
    other = Browser(house, "192.0.2.12")
    assert sign_in(other, company).status == 403, "the keys are new"
    house.pass_time(61)
    assert sign_in(other, company).status == 303
    assert other.is_signed_in
    assert len([url for url in company.asked if url.endswith("/keys")]) == 2


def test_keys_without_ids(house: House, company: Company) -> None:
    """While a provider publishes the old and the new key without ids, both sign people in."""
    company.replace_key(None)
    company.published["keys"].insert(0, {**PUBLIC_KEY, "kid": None})
    assert sign_in(Browser(house), company).status == 303
    company.sign = company.sign_properly
    assert sign_in(Browser(house, "192.0.2.12"), company).status == 303


OPTIONAL = (
    *("userinfo_endpoint", "end_session_endpoint", "token_endpoint_auth_methods_supported"),
    "authorization_response_iss_parameter_supported",
)


@pytest.mark.parametrize("names", [(name,) for name in OPTIONAL] + [OPTIONAL])
def test_null_is_absent(
    house: House, browser: Browser, company: Company, names: tuple[str, ...]
) -> None:
    """A null in an optional member of the metadata counts as absent, and so does a null claim."""
    company.metadata |= dict.fromkeys(names)
    company.claims |= {"azp": None, "groups": None, "email": None}
    assert sign_in(browser, company).status == 303
    browser.open("/account")
    assert browser.submit("/sign-out").status in (200, 303)


@rows("issuer", "authorization_endpoint", "token_endpoint", "jwks_uri")
def test_null_is_no_address(browser: Browser, company: Company, name: str) -> None:
    """Metadata without a required member is a fault of the configuration."""
    company.metadata[name] = None
    assert browser.open("/sign-in/company").status == 503
    assert "not set up correctly" in browser.page.text


AUTH0 = "https://mail.example/roles"


@pytest.mark.parametrize("is_in_token", [True, False])
@rows(
    ("groups", {"groups": ["mail-testers"]}),
    ("realm_access.roles", {"realm_access": {"roles": ["x", "mail-testers"]}}),
    ("realm_access.roles", {"realm_access.roles": ["mail-testers"]}),
    (
        "resource_access.mail.check.roles",
        {"resource_access": {"mail": {}, "mail.check": {"roles": ["mail-testers"]}}},
    ),
    (AUTH0, {AUTH0: ["mail-testers"]}),
    (AUTH0, {AUTH0: "mail-testers"}),
    (f"{AUTH0}.own", {AUTH0: {"own": ["mail-testers"]}}),
    (AUTH0, {"https://mail": {"example/roles": ["mail-testers"]}}),
)
def test_claims_of_groups(is_in_token: bool, claim: str, claims: dict[str, Any]) -> None:
    """Groups are found in a claim, in an object by a path with dots, and in UserInfo."""
    company = Company()
    house = company_house(company, allowed_groups=("mail-testers",), groups_claim=claim)
    (company.claims if is_in_token else company.user_info).update(claims)
    assert sign_in(Browser(house), company).status == 303


@rows(
    ({"groups": ["/mail-testers", "/a"]}, "'groups' has the groups '/mail-testers', '/a';"),
    ({"groups": []}, "'groups' has the groups none;"),
    ({"roles": ["mail-testers"]}, "no claim 'groups', which [oidc] groups_claim names"),
    ({"roles": ["mail-testers"]}, "'roles'"),
    ({"groups": [f"g{n}" for n in range(500)]}, "'g29' and 470 more"),
)
def test_the_log_names_the_groups(claims: dict[str, Any], logged: str) -> None:
    """When no group has a meaning, the log names the claim and the groups that came."""
    company = Company()
    house = company_house(company, allowed_groups=("mail-testers",))
    company.claims.update(claims)
    with capturedLogs() as logs:
        assert sign_in(Browser(house), company).status == 403
    assert logged in "\n".join(map(formatEvent, logs))


OUTAGE, FAULT, DECLINED = "does not answer", "not set up correctly", "you declined"
AGAIN = "did not confirm who you are"


@pytest.mark.parametrize(
    ("fault", "status", "sentence"),
    [
        (ProviderSilent("timeout"), 503, OUTAGE),
        (ProviderUnusable("a page"), 503, FAULT),
        (ProviderRefused("status 404"), 503, FAULT),
        (ProviderRefused("x", "invalid_client"), 503, FAULT),
        (ProviderRefused("x", "unauthorized_client"), 503, FAULT),
        (ProviderRefused("x", "temporarily_unavailable"), 503, OUTAGE),
    ],
)
@pytest.mark.parametrize("is_late", [False, True])
def test_faults_of_the_provider(
    house: House, company: Company, fault: Exception, status: int, sentence: str, is_late: bool
) -> None:
    """The page tells an outage from a fault of the configuration, and shows no details."""
    browser = Browser(house)
    path = company.approve(begin(browser)) if is_late else "/sign-in/company"
    company.fault = fault
    answer = browser.open(path)
    assert answer.status == status
    assert sentence in browser.page.text.lower()
    assert ISSUER not in answer.body.decode()


@rows(
    ("access_denied", 403, DECLINED),
    ("consent_required", 403, DECLINED),
    ("login_required", 403, AGAIN),
    ("server_error", 503, OUTAGE),
    ("temporarily_unavailable", 503, OUTAGE),
    ("invalid_scope", 503, FAULT),
    ("unauthorized_client", 503, FAULT),
    ("redirect_uri_mismatch", 503, FAULT),
    ("something", 403, AGAIN),
    ("", 403, AGAIN),
)
def test_answers_without_a_code(browser: Browser, error: str, status: int, sentence: str) -> None:
    """The page says whether the person declined, or the provider or the settings are at fault."""
    state = parse_qs(urlsplit(begin(browser)).query)["state"][0]
    path = f"/sign-in/company/callback?error={error}&state={state}&iss={ISSUER}"
    assert browser.open(path).status == status
    assert sentence in browser.page.text.lower()


def test_without_a_provider_the_pages_say_so() -> None:
    """A service without a provider has no button, and its address is a helpful error."""
    house = House(config_in_memory())
    browser = Browser(house)
    browser.open("/sign-in")
    assert not [one for one in browser.page.addresses if "company" in one]
    assert browser.open("/sign-in/company").status == 403
    assert "no sign-in with a company account" in browser.page.text
