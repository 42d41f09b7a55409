"""The ``authentication`` field of a message."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.operations.scored_mails import MAIL, received
from tests.web.mcp.agent import Agent
from tests.web.scored_house import ScoredHouse


@pytest.fixture
def scored() -> Iterator[ScoredHouse]:
    """A house with the zone of a perfect sender."""
    scored = ScoredHouse()
    yield scored
    scored.close()


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
    """The result of get_message contains the results, and its text summarizes them."""
    scored.deliver(scored.house.address())
    message = read(scored)
    agent = Agent(scored.house)
    shown = agent.use("get_message", id=message["id"])["message"]
    assert shown["authentication"] == message["authentication"]
    text = agent.call("get_message", {"id": message["id"]}).result["content"][0]["text"]
    assert "SPF pass, DKIM pass, DMARC pass." in text


def test_only_reading_queries_dns(scored: ScoredHouse) -> None:
    """Only reading a message queries DNS, and only once for all readers."""
    pending = scored.house.ask("GET", "/inbox/wait")
    scored.deliver(scored.house.address())
    assert "authentication" not in pending.answer().json
    assert "authentication" not in scored.house.get("/inbox/messages").json["messages"][0]
    assert scored.zone.asked == []
    first = read(scored)
    asked = len(scored.zone.asked)
    assert asked
    assert read(scored) == first
    assert len(scored.zone.asked) == asked


def test_unsigned_mail_from_a_private_address(scored: ScoredHouse) -> None:
    """Unsigned mail from a private address has the results temperror, with the reason."""
    scored.deliver(scored.house.address(), received(raw_message=MAIL, client_ip="127.0.0.1"))
    found = read(scored)["authentication"]
    for name in ("spf", "dmarc"):
        assert (found[name]["result"], found[name]["determined"]) == ("temperror", False)
    assert found["dkim"] == []
    assert "127.0.0.1" in found["spf"]["detail"]


def test_an_unresponsive_name_server(scored: ScoredHouse) -> None:
    """With an unresponsive name server, the message is returned after two seconds."""
    scored.zone.silent.add("sender.example")
    scored.deliver(scored.house.address())
    (message,) = scored.house.get("/inbox/messages").json["messages"]
    pending = scored.house.ask("GET", f"/inbox/messages/{message['id']}")
    scored.house.pass_time(1.9)
    assert not pending.is_answered
    scored.house.pass_time(0.2)
    assert pending.answer().json["authentication"]["spf"]["result"] == "temperror"
