"""A command loads what it runs: who asks for help, or waits for a mail, waits for nothing else."""

import subprocess
import sys

import pytest

_LOADED = """
import io, sys
from mailcheck.cli.main import run
run(sys.argv[1:], io.StringIO(), io.StringIO())
print("\\n".join(sys.modules))
"""


def loaded_by(*arguments: str) -> set[str]:
    """Run a command in a process of its own; gives the modules that it has imported."""
    command = [sys.executable, "-c", _LOADED, *arguments]
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
    }
    assert not loaded & {"twisted", "dataclasses", "tomllib"}


@pytest.mark.parametrize("command", ["wait", "inbox", "send-sample"])
def test_who_talks_to_a_daemon_loads_none(command: str) -> None:
    """Commands that talk to a daemon import no Twisted, no check and no store."""
    loaded = loaded_by(command, "--url", "http://127.0.0.1:1", "--key-file", "none")
    assert "mailcheck.cli.inbox_commands" in loaded
    assert "mailcheck.config.reading" in loaded
    assert "twisted" not in loaded
    rooms = ("assembly", "checks", "storage", "web", "smtp", "daemon")
    assert not {name for name in loaded if name.startswith(tuple(f"mailcheck.{r}" for r in rooms))}
