"""Attacks on the authorization server: stolen and replayed secrets, and hostile clients."""

import json
from urllib.parse import urlencode, urlsplit

import pytest
from twisted.logger import capturedLogs, formatEvent

from mailcheck.core.oauth.clients import ClientDocument
from mailcheck.core.oauth.grants import REUSE_WINDOW
from mailcheck.operations.oauth.clients import (
    DOCUMENTS_PER_ACCOUNT,
    PER_ADDRESS,
)
from tests.house import House, run
from tests.table import rows
from tests.web.dashboard.browser import Browser
from tests.web.mcp.agent import Agent
from tests.web.oauth.conftest import ann as ann
from tests.web.oauth.conftest import house as house
from tests.web.oauth.conftest import program as program
from tests.web.oauth.program import (
    CALLBACK,
    VERIFIER,
    Program,
    add_client,
    register,
    returned,
)
from tests.web.raw_http import RawHttp

pytestmark = pytest.mark.attack

EVIL = "https://evil.example/callback"
DOCUMENT = "https://agent.example/client.json"


def opens(house: House, token: str) -> bool:
    """Return whether a token opens the MCP endpoint."""
    return Agent(house, token).request("ping").status == 200


def evil_program(program: Program) -> Program:
    """Return another client, which its maker has registered."""
    client, _ = add_client(program.house, EVIL, name="Evil")
    return Program(program.browser, client.id, redirect_uri=EVIL)


# Stolen and replayed codes and tokens.


def test_a_replayed_code_ends_the_grant(program: Program) -> None:
    """The second use of a code gets nothing, and ends what the first one got."""
    code = program.code()
    tokens = program.exchange(code).json
    assert opens(program.house, tokens["access_token"])
    again = program.exchange(code)
    assert (again.status, again.json["error"]) == (400, "invalid_grant")
    assert not opens(program.house, tokens["access_token"])
    assert program.refresh(tokens["refresh_token"]).json["error"] == "invalid_grant"


@rows({"code_verifier": "w" * 43}, {"redirect_uri": EVIL}, {"redirect_uri": CALLBACK + "/"})
def test_a_stolen_code_is_useless(program: Program, changes: dict[str, str]) -> None:
    """A code without its verifier or redirect URI gets nothing, and is used up by the attempt."""
    code = program.code()
    refused = program.exchange(code, **changes)
    assert (refused.status, refused.json["error"]) == (400, "invalid_grant")
    assert program.exchange(code).json["error"] == "invalid_grant"


def test_a_replayed_refresh_token_ends_the_grant(program: Program) -> None:
    """A late second use of a refresh token ends the grant with all of its tokens."""
    first = program.connect()
    second = program.refresh(first["refresh_token"]).json
    program.house.pass_time(REUSE_WINDOW / 1_000 + 1)
    again = program.refresh(first["refresh_token"])
    assert (again.status, again.json["error"]) == (400, "invalid_grant")
    for tokens in (first, second):
        assert not opens(program.house, tokens["access_token"])
        assert program.refresh(tokens["refresh_token"]).status == 400
    page = program.browser.open("/account/activity").body.decode()
    assert "was used before" in page


def test_a_stolen_refresh_token(program: Program) -> None:
    """Another client cannot refresh: the attempt ends the grant."""
    tokens = program.connect()
    refused = evil_program(program).refresh(tokens["refresh_token"])
    assert refused.json["error"] == "invalid_grant"
    assert not opens(program.house, tokens["access_token"])


def test_tokens_are_not_exchangeable_for_each_other(program: Program) -> None:
    """An access token does not refresh, and a refresh token or a code opens nothing."""
    code = program.code()
    assert not opens(program.house, code)
    tokens = program.exchange(code).json
    assert program.refresh(tokens["access_token"]).status == 400
    assert not opens(program.house, tokens["refresh_token"])
    assert program.exchange(tokens["refresh_token"]).status == 400
    assert opens(program.house, tokens["access_token"])


def test_another_client_cannot_revoke(program: Program) -> None:
    """A client cannot end the grant of another one."""
    tokens = program.connect()
    for kind in ("access_token", "refresh_token"):
        refused = evil_program(program).revoke(tokens[kind])
        assert (refused.status, refused.json["error"]) == (400, "unauthorized_client")
    assert opens(program.house, tokens["access_token"])


def test_refreshing_gives_no_more_scopes(program: Program) -> None:
    """A refresh cannot add a scope."""
    program.ask()
    tokens = program.exchange(returned(program.submit(scope="inbox:read"))["code"]).json
    refused = program.refresh(tokens["refresh_token"], scope="inbox:read domains")
    assert (refused.status, refused.json["error"]) == (400, "invalid_scope")
    renewed = program.refresh(tokens["refresh_token"], scope="inbox:read").json
    assert renewed["scope"] == "inbox:read"


def test_an_access_token_is_for_agents_only(program: Program) -> None:
    """The REST API refuses the access token, which is for the MCP endpoint (RFC 8707)."""
    tokens = program.connect()
    house = program.house
    for path in ("/api/v1/inbox", "/api/v1/inbox/messages"):
        answer = house.open(path, key=tokens["access_token"]).answer()
        assert answer.status == 401
        assert "MCP endpoint only" in answer.json["error"]
    posted = house.open(
        "/providers/resend/emails",
        "POST",
        headers={"Authorization": f"Bearer {tokens['access_token']}"},
        data=b"{}",
    )
    assert posted.answer().json["name"] == "invalid_api_key"


def test_what_the_store_holds_opens_nothing(program: Program) -> None:
    """A copy of the database has no usable code, token or client secret."""
    client, secret = add_client(program.house, has_secret=True)
    other = Program(program.browser, client.id, secret)
    unused, tokens = program.code(), other.connect()
    dump = "\n".join(program.house.sqlite.connection.iterdump())
    for value in (unused, secret, tokens["access_token"], tokens["refresh_token"]):
        assert value not in dump
        assert value.partition("_")[2] not in dump
    digests = program.house.sqlite.connection.execute("SELECT digest FROM oauth_token")
    for (digest,) in digests.fetchall():
        assert not opens(program.house, digest.hex())
        assert not opens(program.house, "mca_" + digest.hex()[:32])


def test_nothing_secret_is_logged(program: Program) -> None:
    """Codes, tokens and verifiers are in no log line."""
    with capturedLogs() as logs:
        code = program.code()
        tokens = program.exchange(code).json
        program.exchange(code)
        program.refresh(tokens["refresh_token"])
    text = "\n".join(formatEvent(event) for event in logs)
    for value in (code, VERIFIER, tokens["access_token"], tokens["refresh_token"]):
        assert value not in text


# Requests that a hostile client sends through a browser.


def no_link(program: Program, **changes: str | None) -> str:
    """Open an authorization request that leads nowhere, and return the text of the page."""
    answer = program.ask(**changes)
    assert answer.status in (400, 429)
    assert "location" not in answer.headers
    text = answer.body.decode()
    assert 'id="continue"' not in text
    assert "http-equiv" not in text
    return text


@rows(
    EVIL,
    CALLBACK + "/",
    CALLBACK + "?x=1",
    CALLBACK + "#x",
    CALLBACK + "/../evil",
    CALLBACK.replace("agent", "AGENT"),
    "https://agent.example.evil.example/callback",
    "https://agent.example@evil.example/callback",
    "http://agent.example/callback",
    "javascript:alert(1)",
    "//evil.example",
    "/keys",
    CALLBACK + "\r\nSet-Cookie: a=b",
)
def test_no_open_redirect(program: Program, uri: str) -> None:
    """A request with a redirect URI of somebody else leads nowhere."""
    no_link(program, redirect_uri=uri)


def test_an_unknown_client_leads_nowhere(program: Program) -> None:
    """A request of an unknown client, or without one, leads nowhere."""
    for client_id in ("unknown", "", None, "https://unknown.example/client.json"):
        no_link(program, client_id=client_id)


@rows(
    ({"response_type": "token"}, "unsupported_response_type"),
    ({"response_type": None}, "unsupported_response_type"),
    ({"code_challenge": None}, "invalid_request"),
    ({"code_challenge_method": "plain"}, "invalid_request"),
    ({"code_challenge_method": None}, "invalid_request"),
    ({"code_challenge": "short"}, "invalid_request"),
    ({"resource": "https://other.example/mcp"}, "invalid_target"),
    ({"resource": "https://mail.example/api/v1"}, "invalid_target"),
    ({"scope": "x" * 1_001}, "invalid_request"),
)
def test_a_bad_request_waits_for_the_person(
    program: Program, changes: dict[str, str | None], error: str
) -> None:
    """An error is given to the program only when the person follows a link (RFC 9700 4.11.2)."""
    answer = program.ask(**changes)
    assert answer.status == 400
    assert "location" not in answer.headers
    assert "http-equiv" not in answer.body.decode()
    given = returned(answer)
    assert (given["error"], given["state"]) == (error, "a state")
    assert "code" not in given


@rows("client_id", "redirect_uri", "state", "code_challenge", "scope")
def test_repeated_parameters(program: Program, name: str) -> None:
    """A parameter that is sent twice is refused (RFC 6749 3.1)."""
    query = f"{program.query(scope='domains')}&{urlencode({name: 'other'})}"
    answer = program.browser.open(f"/authorize?{query}")
    assert answer.status == 400
    assert "code=" not in answer.body.decode()


@rows("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>')
def test_no_scripts_in_the_page(ann: Browser, value: str) -> None:
    """Names, states and ids of clients are text on the pages."""
    client, _ = add_client(ann.house, name=value)
    program = Program(ann, client.id)
    for answer in (
        program.ask(state=value, scope=value),
        program.submit(),
        program.ask(client_id=value),
        program.ask(redirect_uri=value),
        program.ask(response_type=value, state=value),
    ):
        text = answer.body.decode()
        assert value not in text
        assert "<script>alert" not in text
        assert "<img src=x" not in text


def test_consent_is_not_given_by_another_site(program: Program) -> None:
    """Consent needs the token of the person's session, and comes from this site."""
    program.ask()
    form = {"query": program.query(), "decision": "allow", "scope": "inbox:read"}
    form["account"] = program.browser.page.fields["account"]
    browser = program.browser
    assert browser.post("/authorize", **form).status == 403
    mallory = Browser(program.house, "192.0.2.66")
    mallory.sign_up("mallory")
    mallory.open("/account")
    stolen = {**form, "form-token": mallory.page.form_token}
    assert browser.post("/authorize", **stolen).status == 403
    browser.open("/account")
    good = {**form, "form-token": browser.page.form_token}
    assert browser.post("/authorize", "Origin: https://evil.example", **good).status == 403
    assert browser.post("/authorize", "Sec-Fetch-Site: cross-site", **good).status == 403
    assert browser.post("/authorize", **good).status == 200


def test_opening_the_page_gives_nothing(program: Program) -> None:
    """A GET never gives a code, whatever it contains."""
    answer = program.ask(decision="allow", account="x", scope="inbox:read")
    assert "code=" not in answer.body.decode().replace("code=code", "")
    assert 'id="continue"' not in answer.body.decode()


def test_consent_is_not_used_for_another_client(program: Program) -> None:
    """Consent is for the client and the redirect URI that the page has shown."""
    tokens = program.connect()
    evil = evil_program(program)
    text = evil.ask().body.decode()
    assert "Connect Evil?" in text
    assert "evil.example" in text
    # The client of the one, with the redirect URI of the other.
    no_link(program, redirect_uri=EVIL)
    evil.ask()
    evil.browser.page.fields["query"] = program.query(redirect_uri=EVIL)
    assert evil.submit().status == 400
    assert opens(program.house, tokens["access_token"])


def test_another_account_is_not_granted(program: Program) -> None:
    """A person grants access to the own account and to owned projects only."""
    victim = program.house.account
    program.ask()
    for account in (victim.id, "nobody", "' OR 1=1 --"):
        answer = program.submit(account=account)
        assert answer.status == 400
        assert "code=mcc" not in answer.body.decode()


# Hostile clients.


def test_a_document_decides_the_redirect_uris(ann: Browser) -> None:
    """A request with the id of a trusted program and another redirect URI leads nowhere."""
    ann.house.hosts.clients[DOCUMENT] = ClientDocument("Trusted", CALLBACK)
    program = Program(ann, DOCUMENT, redirect_uri=EVIL)
    assert "not a redirect URI of this program" in no_link(program)
    # A document that changes between the page and the button.
    honest = Program(ann, DOCUMENT)
    honest.ask()
    ann.house.hosts.clients[DOCUMENT] = ClientDocument("Trusted", EVIL)
    answer = honest.submit()
    assert answer.status == 400
    assert "code=mcc" not in answer.body.decode()


def test_a_registered_client_is_not_a_document(ann: Browser) -> None:
    """A client cannot choose its id: that of another client, or a URL."""
    made = register(
        ann.house,
        {"client_id": DOCUMENT, "client_name": "Trusted", "redirect_uris": [EVIL]},
    )
    assert made.status == 201
    assert made.json["client_id"] != DOCUMENT
    assert len(made.json["client_id"]) == 13


@rows(
    ({}, "invalid_redirect_uri"),
    ({"redirect_uris": ["javascript:alert(1)"]}, "invalid_redirect_uri"),
    ({"redirect_uris": ["http://evil.example/"]}, "invalid_redirect_uri"),
    ({"redirect_uris": [CALLBACK, "data:text/html,x"]}, "invalid_redirect_uri"),
    ({"redirect_uris": [CALLBACK] * 11}, "invalid_redirect_uri"),
    ({"redirect_uris": [CALLBACK + "\n"]}, "invalid_redirect_uri"),
    ({"redirect_uris": CALLBACK}, "invalid_client_metadata"),
    (
        {"redirect_uris": [CALLBACK], "token_endpoint_auth_method": "private_key_jwt"},
        "invalid_client_metadata",
    ),
    (
        {"redirect_uris": [CALLBACK], "grant_types": ["password"]},
        "invalid_client_metadata",
    ),
    (b"[" * 60_000, "invalid_client_metadata"),
    (b"\xff", "invalid_client_metadata"),
    (b"", "invalid_client_metadata"),
    (b"x" * 70_000, "invalid_request"),
)
def test_hostile_registrations(program: Program, metadata: object, error: str) -> None:
    """A registration that is not acceptable is refused, and nothing is stored."""
    refused = register(program.house, metadata)
    assert refused.status in (400, 413)
    assert refused.json["error"] == error
    assert len(run(program.house.assembly.accounts.oauth_clients.list())) == 1


def test_registrations_are_limited(house: House) -> None:
    """An address registers few clients in a minute, and others still can."""
    for _ in range(PER_ADDRESS.per_minute):
        assert register(house, {"redirect_uris": [EVIL]}, "192.0.2.66").status == 201
    refused = register(house, {"redirect_uris": [EVIL]}, "192.0.2.66")
    assert refused.status == 429
    assert refused.json["error"] == "temporarily_unavailable"
    assert register(house, {"redirect_uris": [CALLBACK]}).status == 201


def test_documents_are_limited(ann: Browser) -> None:
    """An account causes few requests to other hosts in a minute, and strangers cause none."""
    program = Program(ann, "")
    for number in range(DOCUMENTS_PER_ACCOUNT.per_minute):
        no_link(program, client_id=f"https://victim.example/{number}")
    assert "too many programs" in no_link(program, client_id="https://victim.example/more")
    asked = len(ann.house.hosts.looked_at)
    assert asked == DOCUMENTS_PER_ACCOUNT.per_minute
    stranger = Browser(ann.house, "192.0.2.66")
    answer = Program(stranger, "https://victim.example/x").ask()
    assert answer.status == 303
    assert answer.headers["location"].startswith("/sign-in?")
    assert len(ann.house.hosts.looked_at) == asked


def test_a_wrong_client_secret(ann: Browser) -> None:
    """A confidential client without its secret gets nothing, and its code stays valid."""
    client, secret = add_client(ann.house, has_secret=True)
    program = Program(ann, client.id, secret)
    code = program.code()
    for wrong in ("", "wrong", secret + "x", secret.upper()):
        refused = Program(ann, client.id, wrong).exchange(code)
        assert (refused.status, refused.json["error"]) == (401, "invalid_client")
        assert refused.headers["www-authenticate"].startswith("Basic ")
    twice = program.post(
        "/token",
        {"grant_type": "authorization_code", "code": code, **program.credentials},
        "Authorization: Basic eDp5",
    )
    assert twice.json["error"] == "invalid_request"
    assert program.exchange(code).status == 200


@rows(
    ({}, "invalid_client"),
    ({"client_id": "unknown"}, "invalid_client"),
    ({"grant_type": "password"}, "unsupported_grant_type"),
    ({"grant_type": "client_credentials"}, "unsupported_grant_type"),
    ({"grant_type": ""}, "unsupported_grant_type"),
    ({"code": ""}, "invalid_request"),
    ({"code": "x" * 300}, "invalid_request"),
    ({"code": "mcc_unknown"}, "invalid_grant"),
    ({"resource": "https://other.example/"}, "invalid_target"),
    ({"client_secret": "x"}, "invalid_client"),
)
def test_hostile_token_requests(program: Program, form: dict[str, str], error: str) -> None:
    """A token request that is not valid gets the error of OAuth."""
    good = {
        "grant_type": "authorization_code",
        "code": "mcc_" + "a" * 32,
        "code_verifier": VERIFIER,
        "redirect_uri": CALLBACK,
        "client_id": program.client_id,
    }
    answer = program.post("/token", {**good, **form} if form else {})
    assert answer.status in (400, 401)
    assert answer.json["error"] == error


def test_a_token_request_in_another_format(program: Program) -> None:
    """Tokens are given for forms in the body only: not for JSON, and not for a query."""
    code = program.code()
    form = {"grant_type": "authorization_code", "code": code, "code_verifier": VERIFIER}
    form |= program.credentials
    body = json.dumps(form).encode()
    fields = ("Content-Type: application/json", f"Content-Length: {len(body)}")
    answer = RawHttp(program.house).ask("/token", *fields, method="POST", body=body)
    assert answer.json["error"] == "invalid_request"
    assert program.post(f"/token?{urlencode(form)}", {}).json["error"] == "invalid_client"
    assert program.house.open(f"/token?{urlencode(form)}").answer().status == 405
    assert program.exchange(code).status == 200


# Documents on hostile hosts, through the real dialer.


def test_the_callback_keeps_its_parameters(ann: Browser) -> None:
    """The answer is added to the query of the redirect URI, and replaces nothing."""
    uri = f"{CALLBACK}?tenant=1&code=fixed"
    client, _ = add_client(ann.house, uri)
    program = Program(ann, client.id, redirect_uri=uri)
    program.ask(state="x&code=evil#y")
    answer = program.submit()
    given = returned(answer)
    assert given["tenant"] == "1"
    assert given["state"] == "x&code=evil#y"
    assert given["code"].startswith("mcc_")
    assert urlsplit(uri).query == "tenant=1&code=fixed"
