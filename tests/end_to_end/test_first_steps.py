"""The first minutes of a new user: start the daemon, run its commands, see link and code."""

import contextlib
import json
import os
import re
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.servers.daemon import API, HOST, Daemon
from tests.servers.programs import find_program

pytestmark = pytest.mark.end_to_end

CHECKOUT = Path(__file__).parents[2]
CODE, LINK = "482913", "https://example.com/confirm?t=7f3a"

_COMMANDS = re.compile(r"^Try it in another terminal[^\n]*\n(.*?)\n\n\n?(?=\d{4}-|\Z)", re.S | re.M)


def run_in_shell(daemon: Daemon, commands: str) -> str:
    """Run commands as a user who copies them, and return their output."""
    done = subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", commands],
        cwd=daemon.folder,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_printed_commands(shared_daemon: Daemon) -> None:
    """The commands that the first start prints work unchanged and end with code and link."""
    find_program("curl")
    find_program("swaks")
    commands = _COMMANDS.search(shared_daemon.output())
    assert commands is not None
    message = json.loads(run_in_shell(shared_daemon, commands[1]).splitlines()[-1])
    assert message["codes"] == [CODE]
    assert message["bestLink"] == LINK
    assert message["links"] == [LINK]
    assert message["subject"] == "Welcome"


def test_commands_find_the_daemon_of_their_folder(shared_daemon: Daemon) -> None:
    """In the folder of `make run` a command finds the URL of the daemon itself."""
    commands = Path(sys.executable).parent / "mailcheck"
    printed = run_in_shell(
        shared_daemon,
        f"{commands} send-sample > /dev/null; {commands} wait --tag sample --code; cat var/url",
    )
    assert printed.splitlines() == [CODE, f"http://{HOST}:{shared_daemon.http_port}"]


def test_busy_port(shared_daemon: Daemon, tmp_path: Path) -> None:
    """The error for a port in use names it and the option and variable that change it."""
    second = Daemon(tmp_path / "second")
    second.http_port = shared_daemon.http_port
    second.launch()
    assert second.when_ended() not in (0, None)
    printed = second.output()
    assert f"{HOST}:{shared_daemon.http_port}" in printed
    setting = "[web] listen or MAILCHECK_WEB_LISTEN"
    assert f"Address already in use; choose another address with {setting}" in printed
    assert "Traceback" not in printed


@pytest.mark.parametrize(
    ("variables", "registration"),
    [
        ({}, "open"),
        ({"HOST": "[::1]"}, "open"),
        ({"HOST": "0.0.0.0"}, "invite"),
        ({"MAILCHECK_ACCOUNTS_REGISTRATION": "closed"}, "closed"),
    ],
)
def test_who_may_sign_up_after_make_run(
    tmp_path: Path, variables: dict[str, str], registration: str
) -> None:
    """`make run` allows sign-ups when only this machine can connect, unless it is configured."""
    for name, text in (("python", ""), ("twistd", "echo $MAILCHECK_ACCOUNTS_REGISTRATION")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o700)
    command = ["make", "--assume-old=.venv/installed", "--silent", "run", f"BIN={tmp_path}"]
    environment = {**os.environ, **variables}
    started = subprocess.run(
        command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=True
    )
    assert started.stdout.strip() == registration


def test_a_mail_sent_as_a_body(shared_daemon: Daemon) -> None:
    """A program that sends 32 MiB to a route without a body gets 413 on a real connection."""
    with contextlib.closing(HTTPConnection(HOST, shared_daemon.http_port)) as connection:
        body, key = b"x" * (32 * 1024 * 1024), {"X-API-Key": shared_daemon.key}
        connection.request("POST", f"{API}/test/generate", body, key)
        answer = connection.getresponse()
        assert answer.status == 413
        assert b"65536" in answer.read().replace(b",", b"")
