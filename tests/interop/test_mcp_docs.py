"""The commands of docs/how-to/connect-an-agent.md, run as a reader would."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.interop.mcp_clients.installed import (
    CHECKOUT,
    HOME,
    MODULES,
    NODE,
    node_environment,
    require,
)
from tests.servers.daemon import HOST, running_daemon
from tests.servers.programs import find_program

pytestmark = pytest.mark.end_to_end

PAGE = CHECKOUT / "docs" / "how-to" / "connect-an-agent.md"
SHOWN = "http://127.0.0.1:8080"


def snippets(language: str) -> list[str]:
    """Return the page's code in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def test_configurations_can_be_read() -> None:
    """Each client's configuration is valid JSON or TOML and names the endpoint or the command."""
    configurations = [*map(json.loads, snippets("json")), *map(tomllib.loads, snippets("toml"))]
    written = [json.dumps(one) for one in configurations if one not in started_programs()]
    assert len(written) == 4
    assert all(f"{SHOWN}/mcp" in one for one in written)


def started_programs() -> list[Any]:
    """Return the configurations of clients that start a program."""
    return [one for text in snippets("json") if '"command"' in text for one in [json.loads(text)]]


def test_the_configured_programs_work(tmp_path: Path) -> None:
    """The programs in the configurations of clients without HTTP connect to the daemon."""
    assert [list(one) for one in started_programs()] == [["mcpServers"], ["context_servers"]]
    params = {"protocolVersion": "2025-11-25", "capabilities": {}}
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
    with running_daemon(tmp_path) as daemon:
        here = {
            SHOWN: f"http://{HOST}:{daemon.http_port}",
            "/home/you/mailcheck/.venv/bin/mailcheck": mailcheck_program(),
            "/home/you/mailcheck/var/api-key": str(daemon.folder / "var" / "api-key"),
        }
        for configuration in started_programs():
            (servers,) = configuration.values()
            program = servers["mailcheck"]
            said = subprocess.run(
                [here.get(word, word) for word in (program["command"], *program["args"])],
                cwd="/",
                input=f"{line}\n",
                capture_output=True,
                text=True,
                check=True,
            )
            assert json.loads(said.stdout)["result"]["serverInfo"]["name"] == "mailcheck"


def mailcheck_program() -> str:
    """Return the path of the command."""
    return str(Path(sys.executable).with_name("mailcheck"))


def test_the_commands_work(tmp_path: Path) -> None:
    """The curl command returns an address, and the Python program reports the end of its wait."""
    (program,) = snippets("python")
    python = HOME / "python-sdk-2" / "bin" / "python"
    require(python)
    find_program("curl")
    (curl,) = (text for text in snippets("sh") if text.startswith("curl"))
    with running_daemon(tmp_path) as daemon:
        here = f"http://{HOST}:{daemon.http_port}"
        environment = {**os.environ, "MAILCHECK_API_KEY": daemon.key}
        printed = subprocess.run(
            curl.replace(SHOWN, here), shell=True, env=environment, capture_output=True, check=True
        )
        assert json.loads(printed.stdout)["result"]["structuredContent"]["cursor"] == "c0"
        program = program.replace(SHOWN, here).replace('["cursor"]}', '["cursor"], "timeout": 1}')
        said = subprocess.run(
            [str(python), "-c", program],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
    assert re.match(
        r"send the mail to dev-\S+\nno matching message arrived within 1 s", said.stdout
    )


def test_the_program_in_javascript_works(tmp_path: Path) -> None:
    """The program for the TypeScript SDK connects and returns an address."""
    require(NODE, MODULES)
    (program,) = snippets("js")
    (tmp_path / "node_modules").symlink_to(MODULES)
    with running_daemon(tmp_path / "daemon") as daemon:
        program = program.replace(SHOWN, f"http://{HOST}:{daemon.http_port}")
        (tmp_path / "program.mjs").write_text(
            program + "console.log(JSON.stringify(inbox)); await client.close();\n"
        )
        said = subprocess.run(
            [str(NODE), "program.mjs"],
            cwd=tmp_path,
            env={**node_environment(), "MAILCHECK_API_KEY": daemon.key},
            capture_output=True,
            text=True,
            check=False,
        )
    assert said.returncode == 0, said.stderr
    assert json.loads(said.stdout)["cursor"] == "c0"
