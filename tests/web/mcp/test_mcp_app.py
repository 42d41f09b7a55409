"""The MCP App: announced only to clients that show it, and free for the model."""

import json
import re
from collections.abc import Mapping
from email.message import EmailMessage
from typing import Any

import pytest

from mailcheck.web.mcp.protocol_modes import APP_TYPE, Extension
from mailcheck.web.mcp.tools import CARD_URI
from tests.house import House
from tests.table import rows
from tests.web.mcp.agent import APPS, HANDSHAKE, STATELESS, TASKS, Agent, judge_output

UI = "io.modelcontextprotocol/ui"
WITH_CARD = {"wait_for_message", "get_message", "wait_for_test"}
OF_APP = {"view_message", "view_report"}


@pytest.fixture
def app(house: House) -> Agent:
    """The client of a host that shows Apps."""
    return Agent(house, version=STATELESS, extensions=APPS)


def html_mail(html: str, subject: str = "Welcome", text: str = "") -> bytes:
    """Return a mail with HTML and a text."""
    message = EmailMessage()
    message["From"], message["To"] = "Shop <shop@example.com>", "you@example.com"
    message["Subject"] = subject
    message.set_content(text)
    message.add_alternative(html, subtype="html")
    return message.as_bytes()


def capabilities_of(agent: Agent) -> Any:
    """Return the capabilities that the server names to a client."""
    if agent.version == STATELESS:
        return agent.request("server/discover").result["capabilities"]
    return agent.initialized.result["capabilities"]


@rows(HANDSHAKE, STATELESS)
def test_the_app_is_announced_to_hosts_that_show_it(house: House, version: str) -> None:
    """The tools with a card name it, and only the App may call two more tools."""
    app = Agent(house, version=version, extensions=APPS)
    tools = app.tools()
    ui = {name: tool["_meta"]["ui"] for name, tool in tools.items() if "_meta" in tool}
    assert ui == {
        **{name: {"resourceUri": CARD_URI} for name in WITH_CARD},
        **{name: {"visibility": ["app"]} for name in OF_APP},
    }
    assert capabilities_of(app)["extensions"] == {UI: {}}
    assert app.request("resources/list").result["resources"] == []
    assert app.request("resources/templates/list").result["resourceTemplates"] == []


@pytest.mark.parametrize("version", [HANDSHAKE, STATELESS])
@rows(
    {},
    {Extension.UI: None},
    {Extension.UI: True},
    {Extension.UI: {}},
    {Extension.UI: {"mimeTypes": "text/html"}},
    {Extension.UI: {"mimeTypes": ["text/html"]}},
    {Extension.UI: {"mimeTypes": [[APP_TYPE]]}},
    {"io.example/ui": {"mimeTypes": [APP_TYPE]}},
    TASKS,
)
def test_other_hosts_see_no_app(
    house: House, version: str, extensions: Mapping[Extension, Any]
) -> None:
    """Without the extension and its media type, nothing of the App is offered or callable."""
    agent = Agent(house, version=version, extensions=extensions)
    tools = agent.tools()
    assert OF_APP.isdisjoint(tools)
    assert not [tool for tool in tools.values() if "_meta" in tool]
    for method in ("resources/list", "resources/templates/list", "resources/read"):
        assert agent.request(method, {"uri": CARD_URI}).error["code"] == -32601
    for name in OF_APP:
        error = agent.call(name, {"id": "x"}).error
        assert error["code"] == -32602
        assert not OF_APP & set(re.findall(r"\w+", error["message"].partition(".")[2]))


@rows(None, [], {"extensions": []}, {"extensions": None})
def test_malformed_capabilities_are_none(house: House, capabilities: object) -> None:
    """A handshake with malformed capabilities is answered like one without."""
    params = {"protocolVersion": HANDSHAKE, "capabilities": capabilities}
    result = Agent(house).request("initialize", params).result
    assert result["capabilities"] == {"tools": {"listChanged": False}}


def test_the_card_is_one_static_document(app: Agent) -> None:
    """The card is a whole document of the media type, without any other origin."""
    (content,) = app.request("resources/read", {"uri": CARD_URI}).result["contents"]
    assert (content["uri"], content["mimeType"]) == (CARD_URI, APP_TYPE)
    assert content["_meta"] == {"ui": {"prefersBorder": True}}
    text = content["text"]
    assert text.startswith("<!doctype html>")
    assert not re.findall(r"https?:|//[a-z]|\bsrc=|<link|@import|url\(|innerHTML|eval", text)
    for uri in (None, "", "ui://mailcheck/other", "file:///etc/passwd"):
        assert app.request("resources/read", {"uri": uri}).error["code"] == -32602


def bytes_of(agent: Agent, tool: str, arguments: Mapping[str, Any]) -> bytes:
    """Call a tool, and return the bytes of its result, with one marker for all calls."""
    body = bytes(agent.call(tool, arguments, request_id=1).body)
    marker = re.search(rb"<<<([0-9a-f]{10})", body)
    return body if marker is None else body.replace(marker[1], b"0" * 10)


@rows(HANDSHAKE, STATELESS)
def test_the_app_adds_nothing_to_the_context_of_the_model(house: House, version: str) -> None:
    """Results are the same bytes with the App, and so is what a host shows of the tools."""
    house.receive(house.address("a"), raw=html_mail("<p>Your code is <b>482913</b></p>"))
    plain, app = Agent(house, version=version), Agent(house, version=version, extensions=APPS)
    message_id = plain.use("list_messages")["messages"][0]["cursor"]
    test_id = plain.use("generate_test")["testId"]
    for tool, arguments in {
        "wait_for_message": {"after": "c0"},
        "get_message": {"id": message_id},
        "list_messages": {},
        "extract": {"id": message_id},
        "wait_for_test": {"testId": test_id, "timeout": 1},
    }.items():
        expected, found = (bytes_of(agent, tool, arguments) for agent in (plain, app))
        assert found == expected, tool
    for_model = {
        name: {key: value for key, value in tool.items() if key != "_meta"}
        for name, tool in app.tools().items()
        if "app" not in tool.get("_meta", {}).get("ui", {}).get("visibility", [])
    }
    assert json.dumps(for_model) == json.dumps(plain.tools())


def test_the_card_gets_the_mail(app: Agent) -> None:
    """The App's tool returns subject, code, link and the sanitised mail, without invisible text."""
    html = '<p>Code 482913 <a href="https://example.com/confirm?t=7f3a">Confirm</a></p><script>x'
    subject = "Wel\u200bcome\u202e"
    app.house.receive(raw=html_mail(html, subject))
    result = app.call(
        "view_message", {"id": app.use("list_messages")["messages"][0]["cursor"]}
    ).result
    judge_output(app.tools()["view_message"], result)
    card = result["structuredContent"]
    assert (card["subject"], card["codes"]) == ("Welcome", ["482913"])
    assert card["bestLink"] == "https://example.com/confirm?t=7f3a"
    assert "<script" not in card["document"]
    assert "default-src &#x27;none&#x27;; img-src data:" in card["document"]
    assert card["pageUrl"].endswith(f"/p/{app.house.account.id}/inbox/messages/{card['id']}")
    (block,) = result["content"]
    assert "Code" not in block["text"]


def test_a_long_mail_has_no_frame(app: Agent) -> None:
    """A document that is too long for a card is left out, and its plain text is cut."""
    app.house.receive(raw=html_mail(f"<p>{'word ' * 101_000}</p>", text="word " * 20_000))
    card = app.use("view_message", id=app.use("list_messages")["messages"][0]["cursor"])
    assert card["document"] == ""
    assert len(card["text"]) == 50_000


def test_the_card_gets_the_report(app: Agent) -> None:
    """The App's tool returns the status of a test, and of a test of another account nothing."""
    card = app.use("view_report", testId=app.use("generate_test")["testId"])
    assert (card["status"], card["score"], card["checks"]) == ("pending", None, [])
    assert "no such test" in app.fail("view_report", testId="x")
    assert "no such message" in app.fail("view_message", id="x")


@rows("wait_for_message", "inbox", "tests")
def test_a_preset_keeps_the_tools_of_the_app(house: House, tools: str) -> None:
    """A client that has chosen few tools can still show their results."""
    agent = Agent(house, extensions=APPS)
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    listed = agent.post(body, agent.session, path=f"/mcp?tools={tools}").result["tools"]
    assert {tool["name"] for tool in listed} >= OF_APP
