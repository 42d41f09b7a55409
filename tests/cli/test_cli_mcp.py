"""``mailcheck mcp``, as an agent starts it: JSON-RPC over standard input and output."""

import argparse
import io
import json
import os
import re
import signal
import smtplib
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mailcheck.cli.mcp_commands import run_bridge
from mailcheck.clients import mailcheck_client
from mailcheck.web.mcp.json_rpc import Request, RpcError
from mailcheck.web.mcp.protocol_modes import (
    CAPABILITIES_KEY,
    VERSION_KEY,
    RoutingHeaders,
    check_envelope,
    write_routing_headers,
)
from tests.cli.command_line import Screen
from tests.servers.clocks import accelerated
from tests.servers.daemon import HOST, Daemon, running_daemon
from tests.servers.http_stub import QuietHandler, serving
from tests.table import rows

pytestmark = pytest.mark.end_to_end

HANDSHAKE, STATELESS = "2025-11-25", "2026-07-28"
PATIENCE = 60.0  # seconds, on a busy machine


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon on which a key can park only one wait, so that a forgotten wait is noticed."""
    folder = tmp_path_factory.mktemp("mcp")
    with running_daemon(folder, environment=accelerated(), limits_waits_per_key=1) as daemon:
        yield daemon


class Agent:
    """An agent that has started the command."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process

    def send(self, method: str, params: Mapping[str, Any] | None = None, **more: Any) -> None:
        """Send a message. It is a request if it has an ``id``."""
        self.send_line(
            json.dumps({"jsonrpc": "2.0", "method": method, "params": params or {}, **more})
        )

    def send_line(self, line: str) -> None:
        """Send any line."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def read(self) -> Any:
        """Return the next message of the server."""
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def ask(self, request_id: object, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """Send a request while no other one is running, and return its response."""
        self.send(method, params, id=request_id)
        answer = self.read()
        assert answer["id"] == request_id
        return answer

    def call(self, request_id: object, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Call a tool, and return its content."""
        answer = self.ask(request_id, "tools/call", {"name": tool, "arguments": arguments})
        return answer["result"]["structuredContent"]

    def connect(self) -> Any:
        """Complete the handshake, and return its result."""
        client = {"name": "test", "version": "1"}
        params = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": client}
        connected = self.ask(0, "initialize", params)["result"]
        self.send("notifications/initialized")
        return connected

    def end(self) -> str:
        """End the input, check that the command succeeds without more output; return its errors."""
        output, errors = self.process.communicate(timeout=PATIENCE)
        assert (self.process.returncode, output) == (0, "")
        return errors


@contextmanager
def running_agent(url: str, key: str, *options: str) -> Iterator[Agent]:
    """Start the command as an agent does."""
    command = [str(Path(sys.executable).with_name("mailcheck")), "mcp", *options]
    environment = {**os.environ, "MAILCHECK_URL": url, "MAILCHECK_API_KEY": key}
    with subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Agent(process)
        finally:
            process.kill()


@pytest.fixture
def agent(daemon: Daemon) -> Iterator[Agent]:
    """An agent of the daemon."""
    with running_agent(f"http://{HOST}:{daemon.http_port}", daemon.key) as agent:
        yield agent


def test_tools_are_chosen(daemon: Daemon) -> None:
    """With --tools, the daemon offers the tools of the preset, and an unknown one is an error."""
    url = f"http://{HOST}:{daemon.http_port}"
    with running_agent(url, daemon.key, "--tools", "watches,check_mx") as agent:
        agent.connect()
        tools = agent.ask(1, "tools/list")["result"]["tools"]
        names = ["check_mx", "list_watches", "get_watch", "get_heartbeats"]
        assert [tool["name"] for tool in tools] == names
    with running_agent(url, daemon.key, "--tools", "inbx") as agent:
        assert "'inbx'" in agent.ask(1, "tools/list")["error"]["message"]


def wait_for(tag: str, **more: Any) -> dict[str, Any]:
    """Return the parameters of a wait that reports its progress."""
    arguments = {"tag": tag, "timeout": 60, **more}
    return {"name": "wait_for_message", "arguments": arguments, "_meta": {"progressToken": tag}}


def test_an_agent_gets_its_mail(agent: Agent, daemon: Daemon) -> None:
    """Progress and result of a wait arrive while another request is answered."""
    assert agent.connect()["serverInfo"]["name"] == "mailcheck"
    tools = agent.ask("a", "tools/list")["result"]["tools"]
    assert "wait_for_message" in [tool["name"] for tool in tools]
    inbox = agent.call(1, "new_address", {"tag": "stdio"})
    agent.send("tools/call", wait_for("stdio", after=inbox["cursor"]), id=2)
    progress = agent.read()
    assert progress["method"] == "notifications/progress"
    assert progress["params"]["progressToken"] == "stdio"
    agent.send("ping", id=3)
    while "id" not in (answer := agent.read()):
        pass
    assert answer == {"jsonrpc": "2.0", "id": 3, "result": {}}
    with smtplib.SMTP(HOST, daemon.smtp_port, timeout=PATIENCE) as smtp:
        mail = "From: shop@example.com\r\nSubject: Hi\r\n\r\nYour code is 482913\r\n"
        smtp.sendmail("shop@example.com", [inbox["address"]], mail)
    while "id" not in (answer := agent.read()):
        pass
    assert answer["id"] == 2
    assert answer["result"]["structuredContent"]["message"]["codes"] == ["482913"]
    assert agent.end() == ""


def test_a_wait_is_cancelled(agent: Agent) -> None:
    """A cancelled call has no response, and ends in the daemon too, in both protocol modes."""
    for meta in ({VERSION_KEY: STATELESS, CAPABILITIES_KEY: {}}, {}):
        if not meta:
            agent.connect()
        params = wait_for("never")
        params["_meta"] |= meta
        agent.send("tools/call", params, id="wait")
        assert agent.read()["method"] == "notifications/progress"
        agent.send("notifications/cancelled", {"requestId": "wait", "_meta": meta})
        arguments = {"tag": "never", "timeout": 1}
        again = {"name": "wait_for_message", "arguments": arguments, "_meta": meta}
        # The key may park only one wait. The daemon notices the end of the connection soon.
        while "error" in (answer := agent.ask("again", "tools/call", again)):
            assert answer["error"]["code"] == 429
        assert answer["result"]["structuredContent"]["timedOut"] is True
    agent.end()


def test_a_running_wait_does_not_delay_the_end(agent: Agent) -> None:
    """At the end of the input the command ends within seconds, without a response."""
    agent.connect()
    agent.send("tools/call", wait_for("never"), id=1)
    assert agent.read()["method"] == "notifications/progress"
    assert agent.process.stdin is not None
    agent.process.stdin.close()
    agent.process.wait(timeout=20)
    assert agent.process.returncode == 0


def test_ctrl_c_ends_it(agent: Agent) -> None:
    """Ctrl-C ends the command with its usual status, without a traceback."""
    agent.connect()
    agent.process.send_signal(signal.SIGINT)
    _, errors = agent.process.communicate(timeout=PATIENCE)
    assert (agent.process.returncode, errors) == (130, "")


def test_lines_that_are_no_message(agent: Agent) -> None:
    """A line that is not a message is answered with an error; an empty line is ignored."""
    agent.send_line("")
    agent.send_line("{not json")
    answer = agent.read()
    assert (answer["id"], answer["error"]["code"]) == (None, -32700)
    agent.send_line('{"jsonrpc": "2.0", "id": 7, "params": {}}')
    answer = agent.read()
    assert (answer["id"], answer["error"]["code"]) == (7, -32600)
    assert agent.ask(8, "ping")["result"] == {}
    assert "method must be a string" in agent.end()


def test_a_wrong_key(daemon: Daemon) -> None:
    """An HTTP error is the response to its request, and is printed. A notification gets none."""
    with running_agent(f"http://{HOST}:{daemon.http_port}", "mck_wrong") as agent:
        agent.send("notifications/initialized")
        answer = agent.ask("first", "tools/list")
        assert answer["error"]["code"] == 401
        assert "API key" in answer["error"]["message"]
        assert re.fullmatch(r"(mailcheck: .*API key.*\n){2}", agent.end())


class Stranger(QuietHandler):
    """Answers as a proxy, a server that is busy, and a server that breaks off a stream."""

    def do_POST(self) -> None:
        """Answer a request by its id."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, media_type, content = {
            "proxy": (502, "text/html", b"<h1>Bad gateway</h1>"),
            "busy": (503, "application/json", b'{"error": "too many connections"}'),
            "text": (200, "application/json", b"[]"),
            "steering": (200, "application/json", '{"id": 1, "result": "\u202e"}'.encode()),
            "stream": (200, "text/event-stream", b": ping\r\n\r\n"),
        }[body["id"]]
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.end_headers()
        self.wfile.write(content)


def test_another_server_and_none() -> None:
    """Each request has a response, also if another server or no server is at the URL."""
    with serving(Stranger) as url, running_agent(url, "mck_key") as agent:
        found = {
            one: agent.ask(one, "ping")["error"] for one in ("proxy", "busy", "text", "stream")
        }
        agent.end()
    assert found["proxy"]["code"] == 502
    assert "does not respond like mailcheck: HTTP status 502" in found["proxy"]["message"]
    assert found["busy"] == {"code": 503, "message": "too many connections"}
    assert "does not respond like mailcheck" in found["text"]["message"]
    assert found["stream"] == {"code": -32603, "message": f"{url} ended the connection early"}
    with running_agent("http://127.0.0.1:1", "mck_key") as agent:
        error = agent.ask(1, "ping")["error"]
        assert error["code"] == -32603
        assert "http://127.0.0.1:1 cannot be reached: " in error["message"]
        agent.end()


def test_a_terminal_shows_control_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal, characters that control it are escaped, which does not change the JSON."""
    line = b'{"jsonrpc": "2.0", "id": "steering", "method": "ping"}\n'
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(line)))
    screen = Screen()
    with serving(Stranger) as url:
        client = mailcheck_client.Mailcheck(url, "mck_key")
        assert run_bridge(client, argparse.Namespace(tools=""), screen.console()) == 0
    assert screen.read() == '{"id": 1, "result": "\\u202e"}\n'


@rows("new_address", "a b", " a", "grün", "=?base64?x?=", "a\nb")
def test_headers_of_stateless_requests(name: str) -> None:
    """The headers that the bridge writes agree with the body, as the endpoint checks it."""
    meta = {VERSION_KEY: STATELESS, CAPABILITIES_KEY: {}}
    request = Request(1, "tools/call", {"name": name, "_meta": meta})
    written = write_routing_headers(request)
    assert all(value.isascii() and value.isprintable() for value in written.values())
    version, method, sent = written.values()
    check_envelope(request, RoutingHeaders([version], [method], [sent]))
    other = Request(1, "tools/call", {"name": f"{name}x", "_meta": meta})
    with pytest.raises(RpcError):
        check_envelope(other, RoutingHeaders([version], [method], [sent]))
