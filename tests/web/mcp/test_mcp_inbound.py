"""The MCP tools for mail into applications."""

import json

from mailcheck.ports.probes import InboundAnswer
from tests.house import House, run
from tests.web.mcp.agent import Agent


def make_route(house: House, to: str = "support@*") -> str:
    """Create a route, and return its id."""
    body = {"to": to, "format": "postmark", "url": "http://app.example.com/in"}
    made = house.ask("POST", "/inbound/routes", data=json.dumps(body).encode()).answer().json
    return str(made["id"])


def test_an_agent_sends_a_mail_to_the_application(agent: Agent) -> None:
    """The result says whether the application took the mail, with its answer as data."""
    house = agent.house
    run(house.assembly.inbound.deliver.start())
    assert "no inbound route" in agent.fail("send_inbound", text="Hi")
    first = make_route(house)
    sent = agent.use("send_inbound", subject="Hello", text="Hi")
    assert sent["delivered"] is True
    assert sent["summary"] == "taken, last status 200"
    assert "taken" in sent["attempts"][0]["answer"]
    assert json.loads(house.receivers.inbound[-1].body)["Subject"] == "Hello"
    house.receivers.inbound_answers = [InboundAnswer(403, body=b"<script>no</script>" * 99)]
    refused = agent.use("send_inbound", ready="out-of-office", **{"from": "ana@c.test"})
    assert (refused["delivered"], refused["pending"]) == (False, 0)
    assert len(refused["attempts"][0]["answer"]) < 500
    shown = agent.use("get_inbound", mailId=sent["mailId"])
    assert shown["attempts"] == sent["attempts"]
    assert len(agent.use("get_inbound")["attempts"]) == 2
    second = make_route(house, "*")
    assert second in agent.fail("send_inbound", text="Hi")
    assert agent.use("send_inbound", text="Hi", route=first)["delivered"]
    assert "bounce-hard" in agent.fail("send_inbound", ready="unheard-of")
