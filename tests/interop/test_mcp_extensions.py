"""Official clients of the extensions of MCP: Apps and tasks."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from mailcheck.web.mcp.protocol_modes import APP_TYPE
from mailcheck.web.mcp.tools import CARD_URI
from tests.interop.mcp_clients.installed import (
    DRIVERS,
    MODULES,
    NODE,
    node_environment,
    require,
)
from tests.interop.test_mcp_clients import DEADLINE, PYTHON_2, bridge, mcp_url, send
from tests.servers.daemon import Daemon, running_daemon

pytestmark = pytest.mark.end_to_end

PACKAGES = MODULES / "@modelcontextprotocol"
SHAPES = PACKAGES / "ext-apps" / "dist" / "src" / "generated" / "schema.json"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One daemon for all clients."""
    with running_daemon(tmp_path_factory.mktemp("extensions")) as daemon:
        yield daemon


def steps_of(daemon: Daemon, command: list[str], trigger: str = "") -> dict[str, Any]:
    """Run a client, and return what it reports. Send it a mail at the step ``trigger``."""
    steps: dict[str, Any] = {}
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=node_environment(),
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for line in process.stdout:
            told = json.loads(line)
            if told["step"] == trigger and trigger not in steps:
                send(daemon, steps["address"]["address"])
            steps[told["step"]] = told
        complaints = process.stderr.read()
        assert process.wait(DEADLINE) == 0, complaints
    return steps


def test_the_official_client_of_tasks_waits_for_minutes(daemon: Daemon) -> None:
    """One call of the official client becomes a task, whose poll ends when the mail arrives."""
    require(NODE, PACKAGES / "ext-tasks")
    command = [str(NODE), str(DRIVERS / "typescript_tasks.mjs"), mcp_url(daemon)]
    told = steps_of(daemon, [*command, daemon.key, str(MODULES)], trigger="polling")["arrived"]
    assert told["codes"] == ["482913"]
    assert told["link"] == "https://example.com/confirm?t=7f3a"
    assert told["polls"] == ["tools/call", "tasks/get"]


@pytest.mark.parametrize("server", [mcp_url, bridge])
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_an_official_host_gets_the_app(
    daemon: Daemon, mode: str, server: Callable[[Daemon], str]
) -> None:
    """A host that declares Apps reads the card, in both modes, and its shapes are the official
    ones; a host that does not sees nothing of it.
    """
    require(Path(PYTHON_2[0]), SHAPES)
    driver = str(DRIVERS / "python_sdk_apps.py")
    told = steps_of(daemon, [PYTHON_2[0], driver, server(daemon), daemon.key, mode])
    assert told["without"]["meta"] == {}
    card = told["with"]["card"]
    assert (card["type"], card["text"]) == (APP_TYPE, "<!doctype html>")
    shapes = json.loads(SHAPES.read_text("utf-8"))["$defs"]
    judged = {name: meta["ui"] for name, meta in told["with"]["meta"].items()}
    assert judged["wait_for_message"]["resourceUri"] == CARD_URI
    for meta in judged.values():
        _validator(shapes, "McpUiToolMeta").validate(meta)
    _validator(shapes, "McpUiResourceMeta").validate(card["meta"]["ui"])


def _validator(shapes: dict[str, Any], name: str) -> Any:
    return Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": shapes})
