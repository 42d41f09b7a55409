"""The metadata of the authorization server, the challenge of the MCP endpoint, and OAuth off."""

from pathlib import Path

from mailcheck.assembly.doors.agents import build_tools
from mailcheck.config.options import WebOptions
from mailcheck.core.instants import DAY, HOUR, MINUTE
from mailcheck.core.oauth.grants import ACCESS_LIFE, CODE_LIFE, MAX_STATE, REFRESH_LIFE
from mailcheck.operations.accounts.own_keys import MAX_KEYS
from mailcheck.operations.oauth.clients import (
    DOCUMENTS_PER_ACCOUNT,
    MAX_REGISTERED,
    UNUSED_LIFE,
    USED_LIFE,
)
from mailcheck.operations.oauth.clients import PER_ADDRESS as REGISTRATIONS
from mailcheck.probes.published_files import DOCUMENT_FRESHNESS, DOCUMENT_SECONDS, MAX_DOCUMENT
from mailcheck.web.dashboard.visits import LONGEST_PATH
from mailcheck.web.oauth.server import PER_ADDRESS as TOKENS
from tests.house import House, config_in_memory
from tests.table import rows
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.conftest import CHEAP
from tests.web.mcp.agent import Agent
from tests.web.oauth.conftest import house as house
from tests.web.oauth.program import ALL, ISSUER, RESOURCE, Program, oauth_house, register

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "oauth.md").read_text()
SERVER = "/.well-known/oauth-authorization-server"
PROTECTED = "/.well-known/oauth-protected-resource"
DISCOVERY = [SERVER, PROTECTED, f"{PROTECTED}/mcp", "/.well-known/openid-configuration"]


def test_a_client_finds_the_server(house: House) -> None:
    """The challenge leads to the metadata of the resource, and that to the server's."""
    reply = Agent(house, "").request("ping")
    assert reply.status == 401
    where = f"{ISSUER}{PROTECTED}/mcp"
    challenge = reply.headers["www-authenticate"]
    assert challenge == f'Bearer scope="{ALL}", resource_metadata="{where}"'
    resource = house.open(f"{PROTECTED}/mcp").answer().json
    assert resource["resource"] == RESOURCE
    assert resource["authorization_servers"] == [ISSUER]
    server = house.open(SERVER).answer().json
    assert server["issuer"] == ISSUER
    assert server["authorization_endpoint"] == f"{ISSUER}/authorize"
    assert server["code_challenge_methods_supported"] == ["S256"]
    assert server["authorization_response_iss_parameter_supported"] is True
    assert server["client_id_metadata_document_supported"] is True
    assert house.open(PROTECTED).answer().json == resource


def test_a_wrong_token_is_named_in_the_challenge(house: House) -> None:
    """A request with an invalid token is told so (RFC 6750)."""
    for token in ("mca_" + "a" * 32, "wrong"):
        reply = Agent(house, token).request("ping")
        assert reply.status == 401
        assert reply.headers["www-authenticate"].startswith('Bearer error="invalid_token", ')


def test_an_api_key_works_as_before(house: House) -> None:
    """API keys open the MCP endpoint while OAuth is on."""
    assert Agent(house, house.key).request("ping").status == 200


@rows(f"{SERVER}/mcp", f"{PROTECTED}/other", f"{SERVER}/x/y")
def test_another_issuer_or_resource(house: House, path: str) -> None:
    """There is no metadata for another issuer or resource, and the answer names the right one."""
    answer = house.open(path).answer()
    assert answer.status == 404
    assert ISSUER in answer.json["error"]


def test_a_public_url_with_a_path() -> None:
    """Below a path, the metadata is where RFC 8414 and RFC 9728 put it."""
    house = oauth_house(public_url=f"{ISSUER}/post")
    reply = Agent(house, "").request("ping")
    where = f"{ISSUER}{PROTECTED}/post/mcp"
    assert f'resource_metadata="{where}"' in reply.headers["www-authenticate"]
    assert house.open(f"{PROTECTED}/post/mcp").answer().json["resource"] == f"{ISSUER}/post/mcp"
    assert house.open(f"{SERVER}/post").answer().json["issuer"] == f"{ISSUER}/post"


def test_without_https_it_is_off() -> None:
    """Without an https URL, discovery and registration answer with a sentence that helps."""
    house = House(config_in_memory(accounts=CHEAP))
    for path in DISCOVERY:
        answer = house.open(path).answer()
        assert answer.status == 404
        assert "OAuth is off on this service: send an API key" in answer.json["error"]
        assert "http://127.0.0.1:8080/keys" in answer.json["error"]
    refused = register(house, {"redirect_uris": ["https://agent.example/"]})
    assert refused.status == 404
    assert "OAuth is off" in refused.json["error_description"]
    assert Agent(house, "").request("ping").headers["www-authenticate"] == "Bearer"
    browser = Browser(house)
    browser.sign_up("ann")
    answer = Program(browser, "x").ask()
    assert answer.status == 404
    assert "OAuth is off" in answer.body.decode()


@rows(
    ("auto", "https://mail.example", True),
    ("off", "https://mail.example", False),
    ("on", "http://127.0.0.1:8080", True),
    ("auto", "http://127.0.0.1:8080", False),
)
def test_the_option(oauth: str, public_url: str, is_on: bool) -> None:
    """OAuth is on by default if the public URL is https, and as the option says."""
    house = House(config_in_memory(web=WebOptions(public_url=public_url, oauth=oauth)))
    assert house.open(SERVER).answer().status == (200 if is_on else 404)


def test_the_scopes_are_those_of_the_tools(house: House) -> None:
    """The scopes that can be granted are those that a tool needs."""
    needed = {str(scope) for tool in build_tools(house.assembly) for scope in tool.scopes}
    assert set(house.open(SERVER).answer().json["scopes_supported"]) == needed
    assert set(house.open(PROTECTED).answer().json["scopes_supported"]) == needed


def test_no_openid_provider(house: House) -> None:
    """The discovery address of OpenID leads to that of OAuth."""
    answer = house.open("/.well-known/openid-configuration").answer()
    assert answer.status == 404
    assert SERVER in answer.json["error"]


@rows(
    f"| code | {CODE_LIFE // MINUTE} minutes |",
    f"| access token | {ACCESS_LIFE // HOUR} hour |",
    f"| refresh token | {REFRESH_LIFE // DAY} days |",
    f"after {UNUSED_LIFE // DAY} day without a grant, {USED_LIFE // DAY} days after",
    f"of at most {MAX_DOCUMENT // 1024} kB, served within {DOCUMENT_SECONDS:g} seconds",
    f"is cached for {DOCUMENT_FRESHNESS // MINUTE} minutes",
    f"up to {MAX_STATE:,} characters",
    f"The query has at most {LONGEST_PATH:,} characters",
    f"| {TOKENS.per_minute} a minute, {TOKENS.per_day:,} a day |",
    f"| {REGISTRATIONS.per_minute} a minute, {REGISTRATIONS.per_day} a day |",
    f"| {MAX_REGISTERED:,}; then the oldest",
    f"| {DOCUMENTS_PER_ACCOUNT.per_minute} a minute, {DOCUMENTS_PER_ACCOUNT.per_day} a day |",
    f"| keys and grants of one account | {MAX_KEYS} |",
)
def test_the_page_of_the_endpoints(said: str) -> None:
    """The numbers in docs/reference/oauth.md are those of the code."""
    assert said in PAGE
