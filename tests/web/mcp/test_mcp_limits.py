"""Keys and rate limits of the MCP endpoint are those of REST."""

import pytest

from tests.house import House, run
from tests.table import rows
from tests.web.mcp.agent import HANDSHAKE, STATELESS, Agent, Reply

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


def left(reply: Reply) -> tuple[int, int]:
    """Return the remaining requests of the minute and of the day, from the headers."""
    return (
        int(reply.headers["x-ratelimit-remaining"]),
        int(reply.headers["x-ratelimit-daily-remaining"]),
    )


@rows(None, "Bearer wrong", "Bearer ", "Basic dXNlcjpwYXNz", "Bearer \xff\xfe")
def test_a_key_is_required(house: House, given: str | None) -> None:
    """A missing or wrong key is 401 with WWW-Authenticate, as a JSON-RPC error."""
    for method in ("POST", "GET", "DELETE"):
        reply = Agent(house).post(PING, {"Authorization": given}, method=method)
        assert reply.status == 401
        assert reply.headers["www-authenticate"] == "Bearer"
        assert "API key" in reply.error["message"]


def test_a_key_in_the_query_is_ignored(house: House) -> None:
    """A key in the query is ignored."""
    agent = Agent(house)
    reply = agent.post(PING, {"Authorization": None}, path=f"/mcp?api_key={house.key}")
    assert reply.status == 401


def test_the_other_header_works_too(house: House) -> None:
    """X-API-Key is accepted as well; two different keys are rejected."""
    agent = Agent(house)
    assert agent.post(PING, {"Authorization": None, "X-API-Key": house.key}).result == {}
    assert agent.post(PING, {"X-API-Key": "another"}).status == 401


def test_a_revoked_key_stops_at_once(house: House) -> None:
    """A revoked key is 401 with the next message."""
    agent = Agent(house)
    assert agent.post(PING).status == 200
    (key,) = run(house.assembly.accounts.keep.list_keys(house.account))
    run(house.assembly.accounts.keep.revoke_key(key.id))
    reply = agent.post(PING)
    assert reply.status == 401
    assert "revoked" in reply.error["message"]


@rows(HANDSHAKE, STATELESS)
def test_only_calls_of_tools_count(house: House, version: str) -> None:
    """Handshakes, lists, pings, notifications and errors are free; each tools/call is counted."""
    agent = Agent(house, house.issue_key(house.account, per_minute=5, per_day=9), version)
    for _ in range(20):
        assert left(agent.request("tools/list")) == (5, 9)
    assert left(agent.post(b"{")) == (5, 9)
    assert left(agent.post(b"", method="GET")) == (5, 9)
    assert left(agent.post({"jsonrpc": "2.0", "method": "notifications/initialized"})) == (5, 9)
    assert left(agent.call("new_address")) == (4, 8)
    assert left(agent.call("no_such_tool")) == (3, 7)
    assert left(agent.call("get_message", {"id": "x"})) == (2, 6)
    assert left(agent.request("tools/list")) == (2, 6)


def test_the_limit_is_one_with_rest(house: House) -> None:
    """REST and MCP share the rate limits of a key."""
    key = house.issue_key(house.account, per_minute=3, per_day=9)
    agent = Agent(house, key)
    agent.use("new_address")
    assert house.get("/inbox", key=key).headers["x-ratelimit-remaining"] == "1"
    assert left(agent.request("ping")) == (1, 7)


@pytest.mark.parametrize("version", [HANDSHAKE, STATELESS])
def test_a_call_over_the_limit_is_refused(house: House, version: str) -> None:
    """A call beyond the limit is 429 with a correct Retry-After; lists still work."""
    agent = Agent(house, house.issue_key(house.account, per_minute=2, per_day=100), version)
    house.pass_time(20)
    for _ in range(2):
        agent.use("new_address")
    reply = agent.call("new_address")
    assert reply.status == 429
    assert reply.headers["retry-after"] == "40"
    assert left(reply)[0] == 0
    assert reply.error["code"] == 429
    assert "limit of 2 requests per minute" in reply.error["message"]
    assert "resets at 2026-11-21T12:01:00.000Z" in reply.error["message"]
    assert reply.json["id"] == agent.next_id
    assert "new_address" in agent.tools()
    house.pass_time(40)
    assert agent.call("new_address").status == 200
