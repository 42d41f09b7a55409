"""Connecting a program: consent, codes, tokens, refreshing, revocation and the page of keys."""

import base64
import re

import pytest

from mailcheck.core.accounts import Account
from mailcheck.core.oauth.clients import ClientDocument
from mailcheck.core.oauth.grants import ACCESS_LIFE, AGENT_TEXTS, REFRESH_LIFE, REUSE_WINDOW
from mailcheck.core.projects import Role
from mailcheck.operations.accounts.own_keys import MAX_KEYS
from mailcheck.operations.oauth.clients import OpenTo
from tests.house import House, run
from tests.table import rows
from tests.web.dashboard.browser import Browser
from tests.web.mcp.agent import Agent
from tests.web.oauth.conftest import ann as ann
from tests.web.oauth.conftest import house as house
from tests.web.oauth.conftest import program as program
from tests.web.oauth.program import (
    CALLBACK,
    ISSUER,
    RESOURCE,
    Program,
    add_client,
    address_of,
    oauth_house,
    register,
    returned,
)

DOCUMENT = "https://agent.example/client.json"


def status_with(house: House, token: str) -> int:
    """Return the status of a request to the MCP endpoint with a token."""
    return Agent(house, token).request("ping").status


def test_a_program_is_connected(program: Program) -> None:
    """A person allows a program, which gets tokens for the tools of the MCP endpoint."""
    page = program.ask()
    text = page.body.decode()
    for shown in ("Agent", "agent.example", "ann", *AGENT_TEXTS, *AGENT_TEXTS.values()):
        assert shown in text
    answer = program.submit()
    assert address_of(answer).startswith(f"{CALLBACK}?")
    given = returned(answer)
    assert given["state"] == "a state"
    assert given["iss"] == ISSUER
    exchanged = program.exchange(given["code"])
    assert exchanged.status == 200
    assert exchanged.headers["cache-control"] == "no-store"
    tokens = exchanged.json
    assert tokens["expires_in"] == ACCESS_LIFE // 1000
    assert "new_address" in Agent(program.house, tokens["access_token"]).tools()


def test_who_is_not_signed_in_signs_in_first(program: Program) -> None:
    """A person without a session signs in, and comes back to the same request."""
    program.browser.submit("/sign-out")
    query = program.query(state="s" * 1_500)
    first = program.browser.open(f"/authorize?{query}")
    assert first.status == 303
    assert first.headers["location"].startswith("/sign-in?next=%2Fauthorize%3F")
    program.browser.open(first.headers["location"])
    wanted = program.browser.page.fields["next"]
    signed_in = program.browser.submit(
        "/sign-in", name="ann", password="correct horse", next=wanted
    )
    assert signed_in.headers["location"] == f"/authorize?{query}"
    assert program.browser.follow(signed_in).status == 200
    assert returned(program.submit())["state"] == "s" * 1_500


def test_a_person_says_no(program: Program) -> None:
    """The program is told that the person did not allow it, and gets no code."""
    program.ask()
    given = returned(program.submit("deny"))
    assert (given["error"], given["state"], given["iss"]) == ("access_denied", "a state", ISSUER)
    assert "code" not in given


def test_fewer_scopes_than_asked_for(program: Program) -> None:
    """A person may allow only some of the scopes, which limit the tools."""
    program.ask(scope="inbox:read domains offline_access")
    code = returned(program.submit(scope="inbox:read watches"))["code"]
    tokens = program.exchange(code).json
    assert tokens["scope"] == "inbox:read"
    agent = Agent(program.house, tokens["access_token"])
    assert agent.call("new_address", {}).result["isError"] is False
    assert agent.call("check_mx", {"domain": "example.com"}).status == 403


def test_no_scope_is_not_enough(program: Program) -> None:
    """Consent to nothing is refused on the page."""
    program.ask(scope="inbox:read")
    answer = program.submit(scope="domains")
    assert answer.status == 400
    assert "at least one area" in answer.body.decode()


def test_a_project_is_connected(program: Program) -> None:
    """An owner connects a program to a project; others who are not owners cannot."""
    browser = program.browser
    browser.follow(browser.submit("/projects", name="shop"))
    projects = run(program.house.assembly.accounts.projects.of_person(_account(program, "ann")))
    shop = projects[0].project
    program.ask()
    assert browser.page.fields["account"] == shop.id
    tokens = program.exchange(returned(program.submit())["code"]).json
    caller = run(program.house.assembly.accounts.access_tokens.identify(tokens["access_token"]))
    assert caller.account_id == shop.id
    bob = Browser(program.house, "192.0.2.11")
    bob.sign_up("bob")
    other = Program(bob, program.client_id)
    other.ask()
    refused = other.submit(account=shop.id)
    assert refused.status == 400
    assert "a project that you own" in refused.body.decode()


def _account(program: Program, name: str) -> Account:
    account: Account = run(program.house.assembly.accounts.keep.find(name))
    return account


def test_a_grant_is_a_key(program: Program) -> None:
    """A grant is on the page of keys with its client and scopes, and is revoked there."""
    tokens = program.connect()
    page = program.browser.open("/keys").body.decode()
    assert "Agent" in page
    assert "connected by OAuth" in page
    (key,) = run(program.house.assembly.accounts.keep.list_keys(_account(program, "ann")))
    assert f"/keys/{key.id}/revoke" in page
    assert status_with(program.house, tokens["access_token"]) == 200
    program.browser.submit(f"/keys/{key.id}/revoke")
    assert status_with(program.house, tokens["access_token"]) == 401
    refused = program.refresh(tokens["refresh_token"])
    assert (refused.status, refused.json["error"]) == (400, "invalid_grant")
    actions = program.browser.open("/account/activity").body.decode().lower()
    assert "key issued" in actions
    assert program.client_id in actions


def test_tokens_are_refreshed(program: Program) -> None:
    """Each refresh token gives new tokens once, and old access tokens expire by themselves."""
    first = program.connect()
    second = program.refresh(first["refresh_token"]).json
    assert second["scope"] == first["scope"]
    for tokens in (first, second):
        assert status_with(program.house, tokens["access_token"]) == 200
    program.house.pass_time(ACCESS_LIFE / 1000)
    for tokens in (first, second):
        assert status_with(program.house, tokens["access_token"]) == 401
    third = program.refresh(second["refresh_token"], resource=RESOURCE).json
    assert status_with(program.house, third["access_token"]) == 200


def test_a_refresh_whose_answer_was_lost(program: Program) -> None:
    """A token is exchanged again for a minute, and all of its answers work (two processes)."""
    first = program.connect()
    answers = [program.refresh(first["refresh_token"]).json]
    program.house.pass_time(REUSE_WINDOW / 1_000)
    answers.append(program.refresh(first["refresh_token"]).json)
    for tokens in answers:
        assert status_with(program.house, tokens["access_token"]) == 200
        assert program.refresh(tokens["refresh_token"]).status == 200
    program.house.pass_time(1)
    assert program.refresh(first["refresh_token"]).json["error"] == "invalid_grant"
    assert status_with(program.house, answers[0]["access_token"]) == 401


def test_an_agent_of_two_processes_stays(program: Program) -> None:
    """Two processes that refresh each token twice, and keep the last answer, stay connected."""
    tokens = program.connect()
    for _ in range(12):
        program.house.pass_time(ACCESS_LIFE / 1_000)
        assert program.refresh(tokens["refresh_token"]).status == 200
        tokens = program.refresh(tokens["refresh_token"]).json
        assert status_with(program.house, tokens["access_token"]) == 200


@rows("access_token", "refresh_token")
def test_a_program_signs_out(program: Program, kind: str) -> None:
    """Revocation of either token ends the grant; an unknown token is no error (RFC 7009)."""
    tokens = program.connect()
    assert program.revoke(tokens[kind]).status == 200
    assert status_with(program.house, tokens["access_token"]) == 401
    assert program.refresh(tokens["refresh_token"]).json["error"] == "invalid_grant"
    assert program.revoke(tokens[kind]).status == 200
    assert program.revoke("mca_unknown").status == 200


@rows(False, True)
def test_a_client_with_a_secret(ann: Browser, is_basic: bool) -> None:
    """A confidential client authenticates in the body or by Basic authentication."""
    client, secret = add_client(ann.house, has_secret=True)
    program = Program(ann, client.id, "" if is_basic else secret)
    pair = base64.b64encode(f"{client.id}:{secret}".encode()).decode()
    form = {
        "grant_type": "authorization_code",
        "code": program.code(),
        "redirect_uri": CALLBACK,
        "code_verifier": "v" * 43,
        **({} if is_basic else program.credentials),
    }
    headers = [f"Authorization: Basic {pair}"] if is_basic else []
    assert program.post("/token", form, *headers).status == 200


def test_a_client_with_a_document(ann: Browser) -> None:
    """A program whose id is the URL of its document is connected without registration."""
    house = ann.house
    house.hosts.clients[DOCUMENT] = ClientDocument("Hosted Agent", f"{CALLBACK} cursor://x/y")
    program = Program(ann, DOCUMENT)
    text = program.ask().body.decode()
    assert "agent.example" in text
    assert "Hosted Agent" in text
    assert "Nobody has verified" not in text
    tokens = program.exchange(returned(program.submit())["code"]).json
    assert status_with(house, tokens["access_token"]) == 200
    assert program.refresh(tokens["refresh_token"]).status == 200


def test_a_client_registers_itself(ann: Browser) -> None:
    """A program registers itself, is shown as unverified, and is connected (RFC 7591)."""
    metadata = {
        "client_name": "Desktop Agent",
        "redirect_uris": ["http://127.0.0.1/cb"],
        "token_endpoint_auth_method": "client_secret_post",
        "grant_types": ["authorization_code", "refresh_token"],
        "logo_uri": "https://agent.example/logo.png",
    }
    made = register(ann.house, metadata)
    assert made.status == 201
    program = Program(
        ann, made.json["client_id"], made.json["client_secret"], "http://127.0.0.1:33418/cb"
    )
    text = program.ask().body.decode()
    assert "Nobody has verified" in text
    assert "a program on your own computer" in text
    assert program.exchange(returned(program.submit())["code"]).status == 200


def older(program: Program) -> list[str]:
    """Return the ids of the older grants that the page of consent offers to replace."""
    text = program.ask().body.decode()
    return re.findall(r'name="replace" id="[^"]*" value="([^"]*)"(?! checked)', text)


@pytest.mark.parametrize("is_ticked", [True, False])
def test_a_program_connects_again(program: Program, is_ticked: bool) -> None:
    """Consent offers to replace the older access, which ends only if the person wants it."""
    assert older(program) == []
    first = program.connect()
    (known,) = older(program)
    code = returned(program.submit(replace=known if is_ticked else ""))["code"]
    assert status_with(program.house, first["access_token"]) == 200, "the new one is not there yet"
    second = program.exchange(code).json
    assert status_with(program.house, second["access_token"]) == 200
    expected = 401 if is_ticked else 200
    assert status_with(program.house, first["access_token"]) == expected
    assert len(older(program)) == (1 if is_ticked else 2)
    actions = program.browser.open("/account/activity").body.decode()
    assert ("replaced by" in actions) is is_ticked


def test_others_are_not_replaced(program: Program) -> None:
    """A person replaces grants of the same program to accounts that the person owns, only."""
    other = Program(program.browser, add_client(program.house, name="Other")[0].id)
    bob = Browser(program.house, "192.0.2.11")
    bob.sign_up("bob")
    of_bob = Program(bob, program.client_id)
    tokens = [other.connect(), of_bob.connect()]
    accounts = program.house.assembly.accounts
    keys = [
        key.id
        for name in ("ann", "bob")
        for key in run(accounts.keep.list_keys(_account(program, name)))
    ]
    assert len(keys) == 2
    assert older(program) == []
    program.exchange(returned(program.submit(replace=" ".join(keys)))["code"])
    assert [status_with(program.house, one["access_token"]) for one in tokens] == [200, 200]


@rows(
    ("Agent", "http://127.0.0.1:2/cb", True),
    ("Other", "http://127.0.0.1:2/cb", False),
    ("Agent", "http://127.0.0.1:2/other", False),
    ("Agent", CALLBACK, False),
)
def test_a_program_registers_again(ann: Browser, name: str, uri: str, is_same: bool) -> None:
    """A program that registers itself anew is recognized by its name and redirect URIs."""
    first = {"client_name": "Agent", "redirect_uris": ["http://127.0.0.1:1/cb"]}
    made = register(ann.house, first).json
    Program(ann, made["client_id"], redirect_uri="http://127.0.0.1:1/cb").connect()
    again = register(ann.house, {"client_name": name, "redirect_uris": [uri]}).json
    assert bool(older(Program(ann, again["client_id"], redirect_uri=uri))) is is_same


def test_replacing_makes_room(program: Program) -> None:
    """At the maximum number of keys, a program connects again in place of its older access."""
    program.connect()
    account, keep = _account(program, "ann"), program.house.assembly.accounts.keep
    for _ in range(MAX_KEYS - 1):
        run(keep.issue_key(account, "full"))
    (known,) = older(program)
    assert program.submit().status == 409
    older(program)
    assert program.exchange(returned(program.submit(replace=known))["code"]).status == 200


def test_only_registered_clients() -> None:
    """An operator can limit connections to clients that an operator has registered."""
    house = oauth_house(oauth_clients="registered")
    browser = Browser(house)
    browser.sign_up("ann")
    house.hosts.clients[DOCUMENT] = ClientDocument("Hosted Agent", CALLBACK)
    answer = Program(browser, DOCUMENT).ask()
    assert answer.status == 400
    assert "mailcheck client add" in answer.body.decode()
    assert house.hosts.looked_at == []
    refused = register(house, {"redirect_uris": [CALLBACK]})
    assert (refused.status, refused.json["error"]) == (400, "invalid_client_metadata")
    metadata = house.open("/.well-known/oauth-authorization-server").answer().json
    assert "registration_endpoint" not in metadata
    assert metadata["client_id_metadata_document_supported"] is False
    assert Program(browser, add_client(house)[0].id).connect()


def test_limiting_the_clients_ends_others(program: Program) -> None:
    """When connections are limited to registered clients, the tokens of others end."""
    house = program.house
    metadata = {"redirect_uris": [CALLBACK]}
    own = Program(program.browser, register(house, metadata).json["client_id"])
    known, unknown = program.connect(), own.connect()
    house.assembly.accounts.oauth_clients.open_to = OpenTo.REGISTERED
    assert own.refresh(unknown["refresh_token"]).json["error"] == "invalid_client"
    assert program.refresh(known["refresh_token"]).status == 200


def test_a_very_long_request(program: Program) -> None:
    """A request that could not be submitted is refused before it is shown."""
    answer = program.ask(extra="x" * 4_000)
    assert answer.status == 400
    assert "the maximum is 4000" in answer.body.decode()


def test_an_account_full_of_keys(program: Program) -> None:
    """An account with the maximum number of keys gets no grant, and the page says why."""
    account = _account(program, "ann")
    keep = program.house.assembly.accounts.keep
    code = program.code()
    for _ in range(MAX_KEYS):
        run(keep.issue_key(account, "full"))
    assert "keys" in program.exchange(code).json["error_description"]
    program.ask()
    answer = program.submit()
    assert answer.status == 409
    assert "revoke one first" in answer.body.decode()


SCHEMES = {
    "https://agent.example/cb": True,
    "http://127.0.0.1/cb": True,
    "com.example.agent:/cb": True,
    "cursor://x/y": True,
    "vscode://x/y": True,
    "vscode-insiders://x/y": True,
    "agent://x/y": False,
    "cursors://x/y": False,
    "evil:/cb": False,
}
"""Redirect URIs, and whether a program that nobody has registered may use them (RFC 8252 8.4)."""


@rows(*SCHEMES.items())
def test_schemes_that_any_program_can_take(ann: Browser, uri: str, is_accepted: bool) -> None:
    """A scheme without a dot is on the operator's list, for clients of either kind."""
    house = ann.house
    made = register(house, {"redirect_uris": [uri]})
    assert made.status == (201 if is_accepted else 400)
    if not is_accepted:
        assert made.json["error"] == "invalid_redirect_uri"
        assert "oauth_schemes" in made.json["error_description"]
    house.hosts.clients[DOCUMENT] = ClientDocument("Hosted Agent", uri)
    asked = Program(ann, DOCUMENT, redirect_uri=uri).ask()
    assert asked.status == (200 if is_accepted else 400)
    registered, _ = add_client(house, uri)
    assert Program(ann, registered.id, redirect_uri=uri).ask().status == 200


@pytest.mark.parametrize("change", ["removed", "demoted", "disabled", "deleted"])
def test_a_grant_ends_with_the_right_to_give_it(program: Program, change: str) -> None:
    """A program loses a project when the person who connected it may not share it any more."""
    browser, accounts = program.browser, program.house.assembly.accounts
    browser.follow(browser.submit("/projects", name="shop"))
    shop, ann = run(accounts.projects.find("shop")), _account(program, "ann")
    bob = run(accounts.keep.add("bob"))
    run(accounts.projects.set_member(shop, bob, Role.OWNER))
    program.ask()
    tokens = program.exchange(returned(program.submit())["code"]).json
    assert status_with(program.house, tokens["access_token"]) == 200
    if change == "removed":
        run(accounts.projects.remove_member(shop, ann.id))
    elif change == "demoted":
        run(accounts.projects.set_member(shop, ann, Role.EDITOR))
    elif change == "disabled":
        run(accounts.keep.disable(ann))
    else:
        run(accounts.keep.delete(ann))
    assert status_with(program.house, tokens["access_token"]) == 401
    refused = program.refresh(tokens["refresh_token"])
    assert (refused.status, refused.json["error"]) == (400, "invalid_grant")


def test_an_unused_grant_ends(program: Program) -> None:
    """A grant that is not refreshed for its lifetime ends, and leaves the page of keys."""
    tokens = program.connect()
    program.house.pass_time(REFRESH_LIFE / 1000)
    assert program.refresh(tokens["refresh_token"]).json["error"] == "invalid_grant"
    program.browser.sign_in()
    assert "connected by OAuth" not in program.browser.open("/keys").body.decode()
