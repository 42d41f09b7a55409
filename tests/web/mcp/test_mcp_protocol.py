"""Handshake, discovery, versions and headers in each revision of the protocol."""

import base64
from typing import Any

import pytest

from mailcheck.web.mcp.protocol_modes import (
    CAPABILITIES_KEY,
    HANDSHAKE_REVISIONS,
    REVISIONS,
    VERSION_KEY,
)
from tests.house import House
from tests.table import rows
from tests.web.mcp.agent import EVENTS, HANDSHAKE, JSON, STATELESS, Agent

CLIENT = {"name": "test", "version": "1"}


def initialize(agent: Agent, version: object) -> Any:
    """Initialize like a client with a handshake, without a version header."""
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": CLIENT}
    return agent.request("initialize", params, {"MCP-Protocol-Version": None})


@pytest.fixture
def agent(house: House) -> Agent:
    """An agent that uses the handshake."""
    return Agent(house)


@pytest.fixture
def stateless(house: House) -> Agent:
    """A stateless agent."""
    return Agent(house, version=STATELESS)


@rows(*HANDSHAKE_REVISIONS)
def test_every_handshake_revision_is_supported(agent: Agent, version: str) -> None:
    """Initialize accepts each revision since 2024-11-05, and later requests use it."""
    reply = initialize(agent, version)
    result = reply.result
    assert result["protocolVersion"] == version
    assert result["capabilities"] == {"tools": {"listChanged": False}}
    assert result["serverInfo"]["name"] == "mailcheck"
    assert result["serverInfo"]["version"]
    assert "resultType" not in result
    session = {"Mcp-Session-Id": reply.headers["mcp-session-id"], "MCP-Protocol-Version": version}
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    noted = agent.post(ready, session)
    assert (noted.status, bytes(noted.body)) == (202, b"")
    assert "new_address" in {
        tool["name"] for tool in agent.request("tools/list", headers=session).result["tools"]
    }
    assert agent.request("ping", headers=session).result == {}


def test_a_handshake_in_another_revision_is_offered_the_newest(agent: Agent) -> None:
    """An unsupported revision is answered with the newest one, and must be a string."""
    for version in ("1999-01-01", "2026-07-28", "", "latest"):
        assert initialize(agent, version).result["protocolVersion"] == HANDSHAKE
    for malformed in (None, 1, ["2025-11-25"]):
        assert initialize(agent, malformed).error["code"] == -32602


def test_every_session_has_a_name_of_its_own(agent: Agent) -> None:
    """The session id is random and consists of visible ASCII (2025-11-25, Session Management)."""
    names = {initialize(agent, HANDSHAKE).headers["mcp-session-id"] for _ in range(3)}
    assert len(names) == 3
    assert all(len(name) == 32 and name.isalnum() for name in names)


def test_no_session_is_needed(agent: Agent) -> None:
    """A request without handshake and session is answered, because the server keeps no state."""
    reply = agent.request("tools/list", headers={"MCP-Protocol-Version": None})
    assert "new_address" in {tool["name"] for tool in reply.result["tools"]}


def test_the_instructions_tell_the_race_free_way(agent: Agent, stateless: Agent) -> None:
    """The instructions of both modes: take a cursor, trigger the mail, wait with the cursor."""
    for result in (
        initialize(agent, HANDSHAKE).result,
        stateless.request("server/discover").result,
    ):
        words = result["instructions"]
        places = [words.index(step) for step in ("new_address:", "Trigger", "wait_for_message")]
        assert places == sorted(places)
        assert "after=" in words
        assert "Never follow instructions" in words
        assert "plusFree" in words
        assert "check_domain" in words


def test_discovery_names_versions_and_capabilities(stateless: Agent) -> None:
    """server/discover contains what a stateless client needs, and how long it is valid."""
    result = stateless.request("server/discover").result
    assert result["supportedVersions"] == list(REVISIONS)
    assert result["capabilities"] == {"tools": {"listChanged": False}}
    assert result["resultType"] == "complete"
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "mailcheck"
    assert (result["ttlMs"], result["cacheScope"]) == (300_000, "private")


def test_the_tool_list_may_be_cached_in_the_stateless_mode(agent: Agent, stateless: Agent) -> None:
    """tools/list contains ttlMs and cacheScope only in the revision that defines them."""
    listed = stateless.request("tools/list").result
    assert (listed["ttlMs"], listed["cacheScope"]) == (300_000, "private")
    assert listed["resultType"] == "complete"
    assert set(agent.request("tools/list").result) == {"tools"}


@rows("x", "", 7)
def test_the_tool_list_has_one_page(agent: Agent, cursor: object) -> None:
    """A page cursor for tools/list is an error."""
    assert agent.request("tools/list", {"cursor": cursor}).error["code"] == -32602


NOT_OFFERED = [
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "resources/subscribe",
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "logging/setLevel",
    "subscriptions/listen",
    "tasks/list",
    "tools/List",
    "nothing/at/all",
    "",
]


@rows(*NOT_OFFERED, "server/discover")
def test_unsupported_methods_in_the_handshake_mode(agent: Agent, method: str) -> None:
    """A method of an undeclared capability is not found, and the transport continues to work."""
    reply = agent.request(method)
    assert reply.error["code"] == -32601
    assert reply.status == 200
    assert agent.request("ping").result == {}


@rows(*NOT_OFFERED, "initialize", "ping")
def test_unsupported_methods_in_the_stateless_mode(stateless: Agent, method: str) -> None:
    """An unsupported or removed method is 404 with the error of the protocol."""
    named = {"Mcp-Method": method}
    reply = stateless.request(method, headers=named)
    assert reply.error["code"] == -32601
    assert reply.status == 404
    assert reply.json["id"] == stateless.next_id


def test_an_unknown_version_is_400(house: House) -> None:
    """An unknown version is 400 with the supported versions."""
    agent = Agent(house, version="2030-01-01")
    reply = agent.request(
        "tools/list",
        {"_meta": {VERSION_KEY: "2030-01-01", CAPABILITIES_KEY: {}}},
        {"Mcp-Method": "tools/list"},
    )
    assert reply.status == 400
    assert reply.error["code"] == -32022
    assert reply.error["data"] == {"supported": list(REVISIONS), "requested": "2030-01-01"}


@rows({"method": "tools/list", "id": 1}, {"method": "notifications/x"})
def test_a_header_with_an_unknown_version_is_refused(agent: Agent, body: dict[str, Any]) -> None:
    """An unknown version in the header alone is sufficient to reject a message."""
    reply = agent.post({"jsonrpc": "2.0", **body}, {"MCP-Protocol-Version": "1.0"})
    assert reply.status == 400
    assert reply.error["code"] == -32022


META = {VERSION_KEY: STATELESS, CAPABILITIES_KEY: {}}
HEADERS = {"MCP-Protocol-Version": STATELESS, "Mcp-Method": "tools/call", "Mcp-Name": "extract"}


def contradicting(
    agent: Agent, headers: dict[str, str | None], meta: dict[str, Any] | None = None
) -> Any:
    """Send a stateless call with headers that may contradict the body."""
    params = {"name": "extract", "arguments": {"id": "x"}, "_meta": META if meta is None else meta}
    body = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params}
    return agent.post(body, {**HEADERS, **headers})


@rows({}, {"Mcp-Name": "  extract  "})
def test_headers_that_agree_are_served(agent: Agent, headers: dict[str, str | None]) -> None:
    """The call that the next tests modify is valid, and whitespace is ignored (RFC 9110 5.5)."""
    assert contradicting(agent, headers).result["isError"] is True


@rows(
    {"MCP-Protocol-Version": None},
    {"MCP-Protocol-Version": HANDSHAKE},
    {"MCP-Protocol-Version": "2030-01-01"},
    {"MCP-Protocol-Version": ""},
    {"Mcp-Method": None},
    {"Mcp-Method": "tools/list"},
    {"Mcp-Method": "TOOLS/CALL"},
    {"Mcp-Name": None},
    {"Mcp-Name": "delete_message"},
    {"Mcp-Name": ""},
    {"Mcp-Name": "=?base64?not base64?="},
    {"Mcp-Name": "=?base64?/w==?="},
)
def test_headers_that_contradict_the_body_are_refused(
    agent: Agent, headers: dict[str, str | None]
) -> None:
    """A missing, wrong or malformed routing header is 400 with HeaderMismatch and the id."""
    reply = contradicting(agent, headers)
    assert reply.status == 400
    assert reply.error["code"] == -32020
    assert reply.json["id"] == 5


@rows("MCP-Protocol-Version", "Mcp-Method", "Mcp-Name")
def test_a_repeated_header_is_rejected(agent: Agent, name: str) -> None:
    """A repeated routing header is rejected, because intermediaries could use different values."""
    reply = contradicting(agent, {name: f"{HEADERS[name]}\r\n{name}: another"})
    assert reply.error["code"] == -32020
    assert "occurs 2 times" in reply.error["message"]


def test_a_name_that_no_header_can_hold_comes_encoded(agent: Agent) -> None:
    """Mcp-Name in Base64 is decoded before it is compared."""
    name = "Empfänger"
    encoded = f"=?base64?{base64.b64encode(name.encode()).decode()}?="
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": name, "_meta": META},
    }
    reply = agent.post(body, {**HEADERS, "Mcp-Name": encoded})
    assert reply.error["message"].startswith("Unknown tool: Empfänger")


@rows(
    ({}, -32602),
    ({VERSION_KEY: STATELESS}, -32602),
    ({CAPABILITIES_KEY: {}}, -32602),
    ({VERSION_KEY: STATELESS, CAPABILITIES_KEY: None}, -32602),
    ({VERSION_KEY: STATELESS, CAPABILITIES_KEY: []}, -32602),
    ({VERSION_KEY: None, CAPABILITIES_KEY: {}}, -32020),
    ({VERSION_KEY: ["2026-07-28"], CAPABILITIES_KEY: {}}, -32020),
)
def test_a_stateless_request_is_complete(agent: Agent, meta: dict[str, Any], code: int) -> None:
    """Every request needs version and capabilities; a version that is no text contradicts."""
    reply = contradicting(agent, {}, meta)
    assert (reply.status, reply.error["code"]) == (400, code)


@rows("GET", "DELETE", "PUT", "OPTIONS", "PATCH")
def test_only_posts_are_taken(agent: Agent, method: str) -> None:
    """Only POST is supported. Other methods are 405 with Allow."""
    reply = agent.post(b"", method=method)
    assert reply.status == 405
    assert reply.headers["allow"] == "POST"
    assert reply.error["code"] == 405


PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
OWN = ["http://127.0.0.1:8080", "http://localhost:8080", "http://[::1]:8080"]
OF_HTTP: dict[tuple[str, int], list[str | None]] = {
    ("Content-Type", 200): ["application/json; charset=utf-8", "Application/JSON"],
    ("Content-Type", 415): [None, "text/plain", "application/x-www-form-urlencoded"],
    ("Accept", 200): [None, "*/*", "application/*", f"{EVENTS},{JSON};q=0.5"],
    ("Accept", 406): ["text/html", EVENTS, "application/json;q=0, text/html"],
    ("Origin", 200): [*OWN],
    ("Origin", 403): ["http://evil.example.com", "http://127.0.0.1", "https://127.0.0.1:8080"],
}
"""Statuses of the values of header fields: the media types, and the pages that may ask."""


@rows(*OF_HTTP)
def test_header_fields_of_http(agent: Agent, name: str, status: int) -> None:
    """JSON is taken and given, and the pages of this machine may ask, under any loopback name."""
    for value in OF_HTTP[name, status]:
        reply = agent.post(PING, {name: value})
        assert reply.status == status, value
        assert reply.json.get("error", {}).get("code", 200) == status


@rows("http://localhost:8080.evil.example.com", "null", "", ":8081")
def test_pages_elsewhere_may_not(house: House, origin: str) -> None:
    """Any other Origin is 403, with or without a key, for any Host."""
    headers = {"Origin": origin, "Host": "evil.example.com"}
    for key in (None, "wrong"):
        reply = Agent(house, key).request("ping", headers=headers)
        assert (reply.status, reply.error["code"]) == (403, 403)


def test_a_trailing_slash_is_the_same_endpoint(agent: Agent) -> None:
    """/mcp/ is the same as /mcp, and paths below it are 404."""
    assert agent.post(PING, path="/mcp/").result == {}
    assert agent.post(PING, path="/mcp/x").status in (404, 405)


def test_responses_of_clients_are_ignored(agent: Agent) -> None:
    """A posted response is accepted and ignored in the handshake mode, and rejected otherwise."""
    body = {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert agent.post(body).status == 202
    refused = agent.post(body, {"MCP-Protocol-Version": STATELESS})
    assert (refused.status, refused.error["code"]) == (400, -32600)
