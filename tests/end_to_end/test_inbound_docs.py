"""The examples of "Test an application that receives mail", with the ticket system of the recipes.

They are in docs/how-to/test-incoming-mail.md.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, code_with
from tests.end_to_end.test_docs import run_in
from tests.servers.daemon import HOST, Daemon, free_ports, running_daemon
from tests.servers.programs import find_program

pytestmark = [pytest.mark.end_to_end, pytest.mark.interop]

GUIDE = ROOT / "docs" / "how-to" / "test-incoming-mail.md"
TICKETS = ROOT / "docs" / "recipes" / "tickets.py"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon that may deliver to this machine, as with `make run`."""
    folder = tmp_path_factory.mktemp("inbound")
    with running_daemon(folder, webhooks_allow=["developer=127.0.0.0/8"]) as daemon:
        yield daemon


@contextmanager
def running_tickets(daemon: Daemon) -> Iterator[str]:
    """Run the ticket system, and yield its host and port."""
    port = free_ports(1)[0]
    program = subprocess.Popen(
        [sys.executable, str(TICKETS)],
        env={**os.environ, "PORT": str(port), "SMTP_PORT": str(daemon.smtp_port)},
        stderr=subprocess.DEVNULL,
    )
    try:
        yield f"{HOST}:{port}"
    finally:
        program.kill()
        program.wait()


def test_the_python_example_makes_a_round_trip(daemon: Daemon, tmp_path: Path) -> None:
    """The test opens a ticket, replies to its answer, and sends a bounce that is not answered."""
    with running_tickets(daemon) as place:
        program = code_with(GUIDE, "from mailcheck_client import Mailcheck")
        run_in(tmp_path, daemon, sys.executable, "-c", program.replace(f"{HOST}:9000", place))


def test_the_javascript_example_makes_a_round_trip(daemon: Daemon, tmp_path: Path) -> None:
    """The same test in JavaScript, with an automatic reply that is not answered."""
    with running_tickets(daemon) as place:
        program = code_with(GUIDE, 'import { Mailcheck } from "./mailcheck.mjs";')
        (tmp_path / "test.mjs").write_text(program.replace(f"{HOST}:9000", place))
        run_in(tmp_path, daemon, find_program("node"), "test.mjs")


def test_the_command_creates_a_route(daemon: Daemon, tmp_path: Path) -> None:
    """The command of the page creates a route, and prints its secret."""
    command = code_with(GUIDE, "curl -s")
    url = f"http://{HOST}:{daemon.http_port}"
    said = run_in(tmp_path, daemon, "bash", "-c", f"export MAILCHECK_URL={url}; {command}")
    assert '"secret"' in said


def test_the_commands_send_mails(daemon: Daemon, tmp_path: Path) -> None:
    """The commands of the page create a route, and send mails that the ticket system takes."""
    address = daemon.get("/inbox/address").json["email"]
    with running_tickets(daemon) as place:
        commands = code_with(GUIDE, "mailcheck inbound add")
        commands = commands.replace(f"{HOST}:9000", place).replace("you@mailcheck.example", address)
        path = f"PATH={Path(sys.executable).parent}:$PATH"
        run_in(tmp_path, daemon, "bash", "-e", "-c", f"{path}\n{commands}")
