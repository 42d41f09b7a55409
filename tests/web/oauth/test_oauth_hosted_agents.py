"""The documented sequences of hosted agents, with the requests that their makers describe."""

import json
from typing import Any
from urllib.parse import urlsplit

from mailcheck.core.oauth.clients import read_document
from tests.house import House, run
from tests.table import rows
from tests.web.dashboard.browser import Browser
from tests.web.mcp.agent import Agent
from tests.web.oauth.conftest import ann as ann
from tests.web.oauth.conftest import house as house
from tests.web.oauth.program import (
    ALL,
    ISSUER,
    RESOURCE,
    Program,
    add_client,
    register,
    returned,
)

CLAUDE = {
    "client_name": "Claude",
    "redirect_uris": ["https://claude.ai/api/mcp/auth_callback"],
    "grant_types": ["authorization_code", "refresh_token"],
    "response_types": ["code"],
    "token_endpoint_auth_method": "none",
    "scope": ALL,
}
CLAUDE_WITH_SECRET = {
    **CLAUDE,
    "redirect_uris": ["https://claude.com/api/mcp/auth_callback", *CLAUDE["redirect_uris"]],
    "token_endpoint_auth_method": "client_secret_post",
}
CHATGPT = {
    "client_name": "ChatGPT",
    "redirect_uris": ["https://chatgpt.com/connector_platform_oauth_redirect"],
    "grant_types": ["authorization_code", "refresh_token"],
    "response_types": ["code"],
    "token_endpoint_auth_method": "none",
    "application_type": "web",
}
COPILOT = {
    "client_name": "mvp-5fmailcheck",
    "redirect_uris": [
        "https://global.consent.azure-apim.net/redirect/mvp-5fmail-20check-20mcp-5fdfde809e1caf448f"
    ],
    "grant_types": ["authorization_code", "refresh_token"],
    "response_types": ["code"],
    "token_endpoint_auth_method": "client_secret_post",
}
CHATGPT_DOCUMENT = {
    "client_id": "https://chatgpt.com/oauth/client.json",
    "client_uri": "https://chatgpt.com/",
    "client_name": "ChatGPT",
    "logo_uri": "https://persistent.oaistatic.com/logo.png",
    "redirect_uris": ["https://chatgpt.com/connector_platform_oauth_redirect"],
    "token_endpoint_auth_method": "private_key_jwt",
    "token_endpoint_auth_methods_supported": ["none", "private_key_jwt"],
    "token_endpoint_auth_signing_alg": "RS256",
    "jwks_uri": "https://chatgpt.com/oauth/jwks.json",
    "grant_types": ["authorization_code", "refresh_token"],
    "response_types": ["code"],
}
CLAUDE_DOCUMENT = {
    "client_id": "https://claude.ai/oauth/mcp-oauth-client-metadata",
    "client_name": "Claude",
    "client_uri": "https://claude.ai",
    "redirect_uris": [
        "https://claude.ai/api/mcp/auth_callback",
        "https://claude.com/api/mcp/auth_callback",
    ],
    "token_endpoint_auth_method": "none",
    "grant_types": ["authorization_code", "refresh_token"],
    "response_types": ["code"],
}


def discover(house: House) -> dict[str, Any]:
    """Find the authorization server as agents do: from the challenge to both documents."""
    refused = Agent(house, "").request("initialize", {"protocolVersion": "2025-11-25"})
    assert refused.status == 401
    challenge = refused.headers["www-authenticate"]
    address = challenge.partition('resource_metadata="')[2].partition('"')[0]
    resource = house.open(urlsplit(address).path).answer().json
    assert resource["resource"] == RESOURCE, "agents compare it with the address that was entered"
    assert "offline_access" not in resource["scopes_supported"]
    (issuer,) = resource["authorization_servers"]
    found = house.open("/.well-known/oauth-authorization-server").answer()
    assert found.headers["content-type"].startswith("application/json")
    metadata: dict[str, Any] = found.json
    assert metadata["issuer"] == issuer, "RFC 8414 3.3"
    assert "S256" in metadata["code_challenge_methods_supported"]
    assert "none" in metadata["token_endpoint_auth_methods_supported"]
    return metadata


def connect(program: Program, scope: str | None) -> dict[str, Any]:
    """Send the requests of an agent from consent to refreshed tokens, and return these."""
    shown = program.ask(scope=scope, prompt="consent", access_type="offline")
    assert shown.status == 200
    given = returned(program.submit())
    assert given["iss"] == ISSUER
    tokens = program.exchange(given["code"], resource=RESOURCE).json
    assert tokens["token_type"] == "Bearer"
    agent = Agent(program.house, tokens["access_token"])
    assert agent.request("initialize", {"protocolVersion": "2025-11-25"}).status == 200
    assert "new_address" in agent.tools()
    again = program.refresh(tokens["refresh_token"], resource=RESOURCE, scope=tokens["scope"])
    assert again.status == 200
    assert again.json["refresh_token"] != tokens["refresh_token"]
    found: dict[str, Any] = again.json
    return found


@rows(
    (CLAUDE, ALL),
    (CLAUDE, "claudeai"),
    (CLAUDE_WITH_SECRET, None),
    (CHATGPT, f"{ALL} offline_access"),
    (COPILOT, ALL),
    (COPILOT, ""),
)
def test_an_agent_that_registers(ann: Browser, metadata: dict[str, Any], scope: str | None) -> None:
    """Claude, ChatGPT and Copilot Studio register themselves, connect, and refresh their tokens."""
    server = discover(ann.house)
    assert server["registration_endpoint"] == f"{ISSUER}/register"
    made = register(ann.house, metadata)
    assert made.status == 201
    client = made.json
    assert client["redirect_uris"] == metadata["redirect_uris"]
    assert client["token_endpoint_auth_method"] == metadata["token_endpoint_auth_method"]
    secret = client.get("client_secret", "")
    assert bool(secret) is (metadata["token_endpoint_auth_method"] != "none")
    for redirect_uri in metadata["redirect_uris"]:
        connect(Program(ann, client["client_id"], secret, redirect_uri), scope)


@rows(CLAUDE_DOCUMENT, CHATGPT_DOCUMENT)
def test_an_agent_with_a_document(ann: Browser, document: dict[str, Any]) -> None:
    """Claude and ChatGPT connect with their documents, as clients without a secret."""
    assert discover(ann.house)["client_id_metadata_document_supported"] is True
    url = document["client_id"]
    ann.house.hosts.clients[url] = read_document(url, json.dumps(document).encode())
    for redirect_uri in document["redirect_uris"]:
        connect(Program(ann, url, redirect_uri=redirect_uri), ALL)


def test_an_assertion_that_is_not_needed(ann: Browser) -> None:
    """A client that could be public may send an assertion anyway, and the code alone decides."""
    url = CHATGPT_DOCUMENT["client_id"]
    assert isinstance(url, str)
    ann.house.hosts.clients[url] = read_document(url, json.dumps(CHATGPT_DOCUMENT).encode())
    program = Program(ann, url, redirect_uri=CHATGPT["redirect_uris"][0])
    assertion = {
        "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        "client_assertion": "e30.e30.e30",
    }
    code = program.code()
    refused = program.exchange(code, code_verifier="w" * 43, **assertion)
    assert refused.json["error"] == "invalid_grant"
    assert program.exchange(program.code(), **assertion).status == 200


@rows(
    {"token_endpoint_auth_methods_supported": ["private_key_jwt"]},
    {"token_endpoint_auth_methods_supported": []},
    {"token_endpoint_auth_method": "client_secret_post", "client_secret": "x"},
)
def test_a_document_that_needs_a_key(changes: dict[str, Any]) -> None:
    """A client that must authenticate is not connected as one without a secret."""
    document = {**CHATGPT_DOCUMENT, **changes}
    found = read_document(str(document["client_id"]), json.dumps(document).encode())
    assert found.problem


def test_a_manual_client_of_copilot(ann: Browser) -> None:
    """Copilot Studio connects with a client id and a secret of the operator."""
    (uri,) = COPILOT["redirect_uris"]
    client, secret = add_client(ann.house, uri, name="Copilot", has_secret=True)
    connect(Program(ann, client.id, secret, uri), ALL)


def test_a_deleted_client_registers_again(ann: Browser) -> None:
    """An agent whose registration is gone is told so with 401, as Claude documents."""
    made = register(ann.house, CLAUDE).json
    program = Program(ann, made["client_id"], redirect_uri=CLAUDE["redirect_uris"][0])
    tokens = connect(program, ALL)
    run(ann.house.assembly.accounts.oauth_clients.delete(made["client_id"]))
    refused = program.refresh(tokens["refresh_token"])
    assert (refused.status, refused.json["error"]) == (401, "invalid_client")
    assert register(ann.house, CLAUDE).status == 201


@rows(
    "/.well-known/oauth-authorization-server/mcp",
    "/.well-known/openid-configuration",
    "/.well-known/openid-configuration/mcp",
    "/mcp/.well-known/openid-configuration",
    "/mcp/.well-known/oauth-protected-resource",
    "/mcp/.well-known/oauth-authorization-server",
)
def test_addresses_without_metadata(house: House, path: str) -> None:
    """Agents try several addresses. Those without metadata are 404, so that they try the next."""
    answer = house.open(path).answer()
    assert answer.status == 404
    assert answer.json["error"]
