"""The ``authentication`` field of a message."""

import json
from typing import Any

from tests.web.mcp.agent import Agent
from tests.web.scored_house import ScoredHouse


def read(scored: ScoredHouse) -> Any:
    """Return the newest message."""
    (message, *_) = scored.house.get("/inbox/messages").json["messages"]
    return scored.house.get(f"/inbox/messages/{message['id']}").json


def test_a_message_has_authentication_results(scored: ScoredHouse) -> None:
    """A message has the results of SPF, DKIM and DMARC, equal to those of a report."""
    scored.deliver(scored.house.address())
    found = read(scored)["authentication"]
    assert found["spf"]["result"] == "pass"
    assert found["spf"]["ip"] == "8.8.4.10"
    assert [one["result"] for one in found["dkim"]] == ["pass"]
    assert (found["dmarc"]["result"], found["dmarc"]["policy"]) == ("pass", "reject")
    _, report = scored.scored()
    checks = report["checks"]
    assert found["dkim"] == checks["dkim"]["signatures"]
    for name in ("spf", "dmarc"):
        shared = found[name].keys() - {"detail"}  # a report says more
        assert {key: checks[name][key] for key in shared} == {
            key: found[name][key] for key in shared
        }


def test_an_agent_gets_the_same_results(scored: ScoredHouse) -> None:
    """Both forms of get_message contain the results if they are requested."""
    scored.deliver(scored.house.address())
    message = read(scored)
    agent = Agent(scored.house)
    shown = agent.use("get_message", id=message["id"], include=["authentication"])["message"]
    assert shown["authentication"] == message["authentication"]
    arguments = {"id": message["id"], "include": ["authentication"]}
    text = agent.call("get_message", arguments).result["content"][0]["text"]
    assert json.dumps(message["authentication"]["spf"], separators=(",", ":")) in text
    assert "authentication" not in agent.use("get_message", id=message["id"])["message"]
