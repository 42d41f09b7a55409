"""Real MCP clients against a real daemon: lists, waits, cancelled waits, and errors."""

import contextlib
import json
import re
import shlex
import smtplib
import subprocess
import sys
from collections.abc import Callable, Iterator
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from tests.interop.mcp_clients.installed import (
    CHECKOUT,
    DRIVERS,
    HOME,
    INSPECTOR,
    NODE,
    node_environment,
    require,
)
from tests.servers.clocks import accelerated
from tests.servers.daemon import HOST, Daemon, running_daemon
from tests.servers.programs import find_program
from tests.web.mcp.agent import TOOL_NAMES

pytestmark = pytest.mark.end_to_end

DEADLINE = 60.0
"""Seconds that a conversation may take on a busy machine."""

PYTHON_2 = [str(HOME / "python-sdk-2" / "bin" / "python"), str(DRIVERS / "python_sdk_2.py")]
PYTHON_1 = [str(HOME / "python-sdk-1" / "bin" / "python"), str(DRIVERS / "python_sdk_1.py")]
TYPESCRIPT = [str(NODE), str(DRIVERS / "typescript_sdk.cjs")]

CLIENTS = {
    "Python SDK 2.x, auto": (PYTHON_2, ["auto"]),
    "Python SDK 2.x, handshake": (PYTHON_2, ["legacy"]),
    "Python SDK 2.x, stateless": (PYTHON_2, ["2026-07-28"]),
    "Python SDK 1.x": (PYTHON_1, []),
    "TypeScript SDK 2.x, auto": (TYPESCRIPT, ["auto"]),
    "TypeScript SDK 2.x, handshake": (TYPESCRIPT, ["legacy"]),
    "TypeScript SDK 2.x, stateless": (TYPESCRIPT, ["2026-07-28"]),
    "TypeScript SDK 1.x": (TYPESCRIPT, ["1.x"]),
}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon on which a key can park only one wait, so that a forgotten wait is noticed.

    It sends progress after a short time, and its second time limit is short too.
    """
    folder = tmp_path_factory.mktemp("mcp")
    with running_daemon(folder, environment=accelerated(), limits_waits_per_key=1) as daemon:
        yield daemon


def mcp_url(daemon: Daemon) -> str:
    """Return the URL of the endpoint."""
    return f"http://{HOST}:{daemon.http_port}/mcp"


def send(daemon: Daemon, recipient: str, code: str = "482913") -> None:
    """Send a mail like an application under test."""
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "shop@example.com", recipient, "Welcome"
    mail.set_content(f"Your code is {code}: https://example.com/confirm?t=7f3a")
    with smtplib.SMTP(HOST, daemon.smtp_port) as smtp:
        smtp.send_message(mail)


def converse(daemon: Daemon, command: list[str]) -> dict[str, Any]:
    """Run a client, send it mail when it reports its parked wait, and return its report of each
    step.
    """
    steps: dict[str, Any] = {}
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=node_environment(),
    )
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        for line in process.stdout:
            told = json.loads(line)
            step = told.pop("step")
            if step == "waiting" and step not in steps:
                send(daemon, steps["address"]["address"])
            steps[step] = told
        complaints = process.stderr.read()
    assert process.wait(DEADLINE) == 0, complaints
    return steps


def bridge(daemon: Daemon) -> str:
    """Return the command that clients without HTTP start."""
    url = f"http://{HOST}:{daemon.http_port}"
    return f"{Path(sys.executable).with_name('mailcheck')} mcp --url {url}"


@pytest.mark.parametrize("server", [mcp_url, bridge])
@pytest.mark.parametrize("name", CLIENTS)
def test_an_official_client_gets_its_mail(
    daemon: Daemon, name: str, server: Callable[[Daemon], str]
) -> None:
    """Each client lists tools, waits with progress, cancels a wait, and gets useful errors.

    It uses HTTP, or `mailcheck mcp` over standard input and output.
    """
    command, mode = CLIENTS[name]
    require(Path(command[0]))
    told = converse(daemon, [*command, server(daemon), daemon.key, *mode])
    assert told["tools"]["names"] == TOOL_NAMES
    assert told["arrived"]["codes"] == ["482913"]
    assert told["arrived"]["link"] == "https://example.com/confirm?t=7f3a"
    assert told["arrived"]["progress"]
    assert "cancelled" in told
    # The key may park only this wait, so the cancelled one is gone.
    assert told["timed out"] == {"said": True}
    assert told["failed"]["is_error"] is True
    assert "no such message" in told["failed"]["text"]
    assert told["refused"] == {"code": -32602}


def inspect(daemon: Daemon, *arguments: str) -> Any:
    """Run the inspector's command line."""
    require(INSPECTOR)
    key = f"Authorization: Bearer {daemon.key}"
    command = [str(INSPECTOR), "--cli", mcp_url(daemon), "--transport", "http", "--header", key]
    done = subprocess.run(
        [*command, *arguments],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        env=node_environment(),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_inspector_lists_and_calls(daemon: Daemon) -> None:
    """The inspector lists and calls the tools, as docs/how-to/connect-an-agent.md shows."""
    page = (CHECKOUT / "docs" / "how-to" / "connect-an-agent.md").read_text()
    (shown,) = re.findall(r"^npx @modelcontextprotocol/inspector (.*?)^```", page, re.S | re.M)
    key, url = "Authorization: Bearer $MAILCHECK_API_KEY", "http://127.0.0.1:8080/mcp"
    ours = ["--cli", url, "--transport", "http", "--header", key, "--method", "tools/list"]
    assert shlex.split(shown.replace("\\\n", "")) == ours
    assert [
        tool["name"] for tool in inspect(daemon, "--method", "tools/list")["tools"]
    ] == TOOL_NAMES
    called = inspect(
        daemon, "--method", "tools/call", "--tool-name", "new_address", "--tool-arg", "tag=a"
    )
    assert called["structuredContent"]["tag"] == "a"
    assert called["isError"] is False


def test_two_agents_wait_undisturbed(tmp_path: Path) -> None:
    """An agent gets the code that swaks sends to its address, while another agent keeps waiting."""
    command, mode = CLIENTS["Python SDK 2.x, auto"]
    require(Path(command[0]))
    find_program("swaks")
    with running_daemon(tmp_path) as daemon, contextlib.ExitStack() as stack:
        agent = [command[0], str(DRIVERS / "waiting_agent.py"), mcp_url(daemon), daemon.key, *mode]
        first, second = (
            stack.enter_context(subprocess.Popen(agent, stdout=subprocess.PIPE, text=True))
            for _ in range(2)
        )
        address, other_address = (_told_by(agent)["address"] for agent in (first, second))
        mail = ["--from", "shop@example.com", "--to", address, "--body", "Your code is 73105"]
        subprocess.run(
            ["swaks", "--server", f"{HOST}:{daemon.smtp_port}", *mail, "--silent", "2"],
            check=True,
            timeout=DEADLINE,
        )
        assert _told_by(first)["codes"] == ["73105"]
        assert first.wait(DEADLINE) == 0
        assert second.poll() is None
        send(daemon, other_address, "220719")
        assert _told_by(second)["codes"] == ["220719"]
        assert second.wait(DEADLINE) == 0


def _told_by(agent: "subprocess.Popen[str]") -> Any:
    assert agent.stdout is not None
    return json.loads(agent.stdout.readline())
