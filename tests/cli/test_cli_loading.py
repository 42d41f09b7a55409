"""A command imports only the modules it needs, so that help and waits start fast."""

import argparse
import io
import os
import subprocess
import sys
from pathlib import Path

from mailcheck import clients
from mailcheck.api.mcp import inbox
from mailcheck.api.requests.fields import DEFAULT_SILENCE, DEFAULT_WAIT, LARGEST_PAGE
from mailcheck.api.requests.inbox import ListMessages
from mailcheck.api.requests.parsing import request_fields
from mailcheck.cli import inbox_commands
from mailcheck.cli.main import COMMANDS, run
from mailcheck.clients import mailcheck_client
from mailcheck.core.instants import SECOND
from mailcheck.operations.inbox.explain_wait import LOOK_BACK
from tests.table import rows

SHARED = {"command", "url", "key_file", "json", "code", "jsonl", "link", "raw"}
"""Options for the daemon's URL and for the output."""

_LOADED = """
import io, sys
from mailcheck.cli.main import run
for line in sys.argv[1:]:
    run(line.split(), io.StringIO(), io.StringIO())
print("\\n".join(sys.modules))
"""


def loaded_by(*lines: str) -> set[str]:
    """Run commands in a separate process, and return the imported modules."""
    command = [sys.executable, "-c", _LOADED, *lines]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return set(done.stdout.split())


def test_help_loads_nothing() -> None:
    """``mailcheck --help`` imports neither Twisted nor a configuration nor any command."""
    loaded = loaded_by("--help")
    assert {name for name in loaded if name.startswith("mailcheck")} == {
        "mailcheck",
        "mailcheck.cli",
        "mailcheck.cli.main",
        "mailcheck.cli.exit_statuses",
        "mailcheck.cli.parser",
        "mailcheck.cli.terminal",
    }
    assert not loaded & {"twisted", "dataclasses", "tomllib"}


def test_who_talks_to_a_daemon_loads_none() -> None:
    """Commands that talk to a daemon import no Twisted, no check and no store."""
    options = "--url http://127.0.0.1:1 --key-file none"
    loaded = loaded_by(*(f"{command} {options}" for command in ("wait", "inbox", "send-sample")))
    assert "mailcheck.cli.inbox_commands" in loaded
    assert "mailcheck.config.reading" in loaded
    assert "twisted" not in loaded
    rooms = ("assembly", "checks", "storage", "web", "smtp", "daemon")
    assert not {name for name in loaded if name.startswith(tuple(f"mailcheck.{r}" for r in rooms))}


def test_who_checks_by_itself_serves_nothing() -> None:
    """A command that queries DNS itself imports no route, no page and no MCP tool."""
    loaded = loaded_by("score --help")
    assert "mailcheck.assembly.checks" in loaded
    assert not {name for name in loaded if name.startswith(("werkzeug", "mailcheck.web"))}


@rows(*COMMANDS)
def test_each_command_can_be_asked(command: str) -> None:
    """Every command of the table exists, and has a ``--help``."""
    assert run([command, "--help"], io.StringIO(), io.StringIO()) == 0


def test_a_reader_that_has_seen_enough() -> None:
    """``mailcheck ... | head`` ends silently when the reader closes the pipe."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [str(Path(sys.executable).with_name("mailcheck")), "config", "example"]
    try:
        done = subprocess.run(
            command, stdout=writer, stderr=subprocess.PIPE, check=False, timeout=60
        )
    finally:
        os.close(writer)
    assert done.stderr == b""
    assert done.returncode == 1


def test_options_are_those_of_the_parameters() -> None:
    """Commands that talk to a daemon repeat its names and defaults, which they cannot import."""
    wait, listed = argparse.ArgumentParser(), argparse.ArgumentParser()
    inbox_commands.add_wait(wait)
    inbox_commands.add_inbox(listed)
    for parser, request, others in (
        (wait, inbox.WaitForMessageArguments, {"new"}),
        (listed, ListMessages, {"ids", "query", "all"}),
    ):
        options = {name.strip("_") for name in vars(parser.parse_args([]))} - others - SHARED
        assert options <= request_fields(request).keys()
    assert inbox_commands.DEFAULT_WAIT == DEFAULT_WAIT
    assert inbox_commands.DEFAULT_SILENCE == DEFAULT_SILENCE
    assert mailcheck_client.LARGEST_PAGE == LARGEST_PAGE
    assert mailcheck_client.LOOK_BACK * SECOND == LOOK_BACK
    module = Path(clients.__path__[0], "mailcheck.mjs").read_text("utf-8")
    assert f"const LOOK_BACK = {mailcheck_client.LOOK_BACK};" in module
