"""Web pages of other origins: what they may read, and that no cookie or listener helps them."""

import json
from itertools import product

import pytest

from tests.house import Answer, House
from tests.table import rows
from tests.web.dashboard.browser import Browser
from tests.web.oauth.conftest import ann as ann
from tests.web.oauth.conftest import house as house
from tests.web.oauth.conftest import program as program
from tests.web.oauth.program import ISSUER, Program, oauth_house
from tests.web.raw_http import RawHttp, read_answer

pytestmark = pytest.mark.attack

EVIL = "https://evil.example"
SITE = "mail.example"
LOOPBACK = "127.0.0.1:8080"
DISCOVERY = "/.well-known/oauth-protected-resource/mcp"
PING = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()

FOR_PAGES = [
    ("/mcp", {"GET", "POST", "DELETE"}),
    ("/token", {"POST"}),
    ("/register", {"POST"}),
    ("/revoke", {"POST"}),
    (DISCOVERY, {"GET"}),
    ("/.well-known/oauth-authorization-server", {"GET"}),
    ("/.well-known/openid-configuration", {"GET"}),
]
"""The paths that pages of other origins may call, with their methods."""

NOT_FOR_PAGES = ["/", "/account", "/keys", "/authorize", "/sign-in", "/api/v1/inbox/messages"]


@pytest.fixture
def token(program: Program) -> str:
    """Return an access token."""
    found: str = program.connect()["access_token"]
    return found


def ask(
    house: House, method: str, path: str, *headers: str, body: bytes = b"", host: str = SITE
) -> Answer:
    """Send a request as a browser does for a page of another origin."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *headers]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    connection = RawHttp(house)
    connection.send("\r\n".join([*lines, "", ""]).encode() + body)
    return read_answer(connection.received(), method)[0]


def preflight(house: House, path: str, host: str = SITE) -> Answer:
    """Ask for permission, as a browser does before a request with a token."""
    wanted = ("Access-Control-Request-Method: POST", "Access-Control-Request-Private-Network: true")
    return ask(house, "OPTIONS", path, f"Origin: {EVIL}", *wanted, host=host)


def cors_of(answer: Answer) -> dict[str, str]:
    """Return the headers about other origins."""
    return {
        name: value for name, value in answer.headers.items() if name.startswith("access-control")
    }


@rows(*FOR_PAGES)
def test_a_page_may_ask_as_a_program(house: House, path: str, methods: set[str]) -> None:
    """The endpoints for programs allow pages their methods and headers, and never cookies."""
    allowed = preflight(house, path)
    assert allowed.status == 200
    assert allowed.body == b""
    assert allowed.headers["access-control-allow-origin"] == "*"
    assert set(allowed.headers["access-control-allow-methods"].split(", ")) == methods
    headers = allowed.headers["access-control-allow-headers"].lower().split(", ")
    assert {"authorization", "content-type", "mcp-protocol-version"} <= set(headers)
    assert not {"cookie", "x-forwarded-for", "x-form-token", "*"} & set(headers)
    assert "access-control-allow-credentials" not in allowed.headers
    # A page of the internet must not reach a private network by it.
    assert "access-control-allow-private-network" not in allowed.headers


def test_a_page_uses_its_token(house: House, token: str) -> None:
    """A page with a token calls the MCP endpoint, and reads the challenge without one."""
    sent = (f"Origin: {EVIL}", f"Authorization: Bearer {token}")
    answer = ask(house, "POST", "/mcp", *sent, body=PING)
    assert (answer.status, answer.json["result"]) == (200, {})
    assert answer.headers["access-control-allow-origin"] == "*"
    refused = ask(house, "POST", "/mcp", f"Origin: {EVIL}", body=PING)
    assert refused.status == 401
    assert "WWW-Authenticate" in refused.headers["access-control-expose-headers"]
    assert cors_of(refused)["access-control-allow-origin"] == "*"


def test_the_default_port_may_be_configured() -> None:
    """A public URL that names port 443 is for pages, although browsers leave it out."""
    house = oauth_house(public_url=f"{ISSUER}:443")
    answer = ask(house, "POST", "/mcp", f"Origin: {EVIL}", body=PING)
    assert (answer.status, cors_of(answer)["access-control-allow-origin"]) == (401, "*")


@rows(*(path for path, _ in FOR_PAGES))
def test_a_session_authenticates_no_page(ann: Browser, path: str) -> None:
    """The cookies of a signed-in person change nothing at the endpoints for programs."""
    cookies = "; ".join(f"{name}={value}" for name, value in ann.cookies.items())
    assert "mailcheck-session" in cookies
    method = "GET" if "well-known" in path else "POST"
    body = PING if method == "POST" else b""
    bare = ask(ann.house, method, path, f"Origin: {EVIL}", body=body)
    with_cookies = ask(ann.house, method, path, f"Origin: {EVIL}", f"Cookie: {cookies}", body=body)
    assert (with_cookies.status, with_cookies.body) == (bare.status, bare.body)
    assert "set-cookie" not in with_cookies.headers
    if path == "/mcp":
        assert with_cookies.status == 401


@rows(*NOT_FOR_PAGES)
def test_pages_of_people_are_not_shared(ann: Browser, path: str) -> None:
    """No page of a person, no consent and no route of the API is for other origins."""
    cookies = "; ".join(f"{name}={value}" for name, value in ann.cookies.items())
    for answer in (
        preflight(ann.house, path),
        ask(ann.house, "GET", path, f"Origin: {EVIL}", f"Cookie: {cookies}"),
    ):
        assert cors_of(answer) == {}
    assert preflight(ann.house, path).status in (401, 404, 405)


@rows(
    *product(
        [path for path, _ in FOR_PAGES],
        [LOOPBACK, "evil.example", "evil.example:8080", "mail.example:81"],
    )
)
def test_another_host_is_not_for_pages(house: House, token: str, path: str, host: str) -> None:
    """By DNS rebinding, or by its loopback address, a page reads nothing of a daemon."""
    assert cors_of(preflight(house, path, host)) == {}
    method = "GET" if "well-known" in path else "POST"
    body = PING if method == "POST" else b""
    sent = (f"Origin: http://{host}", f"Authorization: Bearer {token}")
    if host == LOOPBACK:
        sent = (f"Origin: {EVIL}", f"Authorization: Bearer {token}")
    answer = ask(house, method, path, *sent, body=body, host=host)
    assert cors_of(answer) == {}
    assert answer.status == 403 or path != "/mcp"


@rows(
    {"public_url": "http://127.0.0.1:8080"},
    {"public_url": "http://127.0.0.1:8080", "oauth": "on"},
    {"public_url": ISSUER, "oauth": "off"},
)
def test_a_local_daemon_is_not_for_pages(web: dict[str, str]) -> None:
    """Without OAuth, or without https, only pages of the service use the MCP endpoint."""
    house = oauth_house(**web)
    host = web["public_url"].partition("://")[2]
    sent = (f"Origin: {EVIL}", f"Authorization: Bearer {house.key}")
    answer = ask(house, "POST", "/mcp", *sent, body=PING, host=host)
    assert answer.status == 403
    assert cors_of(answer) == {}
    for path, _ in FOR_PAGES:
        assert cors_of(preflight(house, path, host)) == {}
    own = ask(house, "POST", "/mcp", f"Origin: {web['public_url']}", sent[1], body=PING, host=host)
    assert own.status == 200
