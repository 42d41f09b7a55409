"""``mailcheck test`` with a real daemon: address, wait, report, exit status."""

import io
import json
import re
import shlex
import signal
import smtplib
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from mailcheck.cli.main import run
from tests.cli.command_line import run_command
from tests.servers.daemon import HOST, Daemon
from tests.table import rows

pytestmark = pytest.mark.end_to_end

DEADLINE = 60.0

MAIL = (
    "From: Ann <ann@sender.example>\r\nTo: you@example.com\r\nSubject: Hello \x1b[31m\r\n"
    "Date: Sat, 21 Nov 2026 12:00:00 +0000\r\nMessage-ID: <1@sender.example>\r\n"
    "\r\nHow are you?\r\n"
)


ADDRESS = re.compile(r"^ +(test-\S+)$", re.MULTILINE)


class Command:
    """A running ``mailcheck test`` in a thread."""

    def __init__(self, daemon: Daemon, *arguments: str) -> None:
        options = ("--url", f"http://{HOST}:{daemon.http_port}")
        key = ("--key-file", str(daemon.folder / "var" / "api-key"))
        self._arguments = ("test", *options, *key, *arguments)
        self._output, self._errors = io.StringIO(), io.StringIO()
        self._status: list[int] = []
        self._thread = Thread(target=self._run)
        self._thread.start()

    @property
    def told(self) -> str:
        """The messages so far."""
        return self._errors.getvalue()

    def address(self) -> str:
        """Wait for the address and the command to try it with, and return the address."""
        end = time.monotonic() + DEADLINE
        while "swaks" not in self.told:
            assert time.monotonic() < end, self.told
            time.sleep(0.005)
        found = ADDRESS.search(self.told)
        assert found, self.told
        return found[1]

    def end(self) -> tuple[int, str, str]:
        """Wait for the end, and return status, output and messages."""
        self._thread.join(DEADLINE)
        (status,) = self._status
        return status, self._output.getvalue(), self.told

    def _run(self) -> None:
        self._status.append(run(self._arguments, self._output, self._errors))


def send(daemon: Daemon, address: str, mail: str = MAIL) -> None:
    """Send a mail."""
    with smtplib.SMTP(HOST, daemon.smtp_port, "mx.sender.example") as smtp:
        smtp.sendmail("ann@sender.example", [address], mail)


def test_from_address_to_report(daemon: Daemon) -> None:
    """The address and a swaks command are printed, and the report when the mail has arrived."""
    command = Command(daemon)
    address = command.address()
    assert f"swaks --server {HOST}:{daemon.smtp_port}" in command.told
    send(daemon, address)
    status, output, _ = command.end()
    (test, *_) = daemon.get("/test").json["tests"]
    assert output.startswith(f"{test['score']}/10  ann@sender.example  Hello ")
    assert "came from 127.0.0.1: only content and DKIM could be judged" in output
    assert "The mail has no DKIM signature" in output
    assert output.endswith(f"full report: {test['shareUrl']}\n")
    assert "\x1b" not in output
    assert status == 3  # SPF of such an address is undetermined


def test_as_json(daemon: Daemon) -> None:
    """--json prints the test as the API returns it, and --fail-under determines the status."""
    for mark, status in (("10", 1), ("0", 3)):
        command = Command(daemon, "--json", "--fail-under", mark)
        send(daemon, command.address())
        ended, output, _ = command.end()
        found = json.loads(output)
        assert ended == status
        assert found == daemon.get(f"/test/{found['testId']}").json


def test_interrupted(daemon: Daemon) -> None:
    """Ctrl-C keeps the address usable, and the message says how to continue."""
    command = [str(Path(sys.executable).with_name("mailcheck")), "test"]
    pipe, environment = subprocess.PIPE, daemon.environment
    with subprocess.Popen(
        command, env=environment, cwd=daemon.folder, stdout=pipe, stderr=pipe, text=True
    ) as program:
        assert program.stderr is not None
        told = ""
        while "swaks" not in told:
            line = program.stderr.readline()
            assert line, told
            told += line
        program.send_signal(signal.SIGINT)
        output, errors = program.communicate(timeout=DEADLINE)
    address = ADDRESS.search(told)
    assert address, told + errors
    assert (program.returncode, output) == (3, "")
    found = re.search(r"mailcheck (test --id \S+)$", errors, re.MULTILINE)
    assert found, errors
    assert "Traceback" not in errors
    send(daemon, address[1])
    again = Command(daemon, *found[1].split()[1:])
    assert "ann@sender.example" in again.end()[1]


def test_an_address_alone(daemon: Daemon) -> None:
    """--no-wait prints only the address, and the test can be continued with its id."""
    status, address, errors = Command(daemon, "--no-wait").end()
    assert status == 0
    send(daemon, address.strip())
    told = shlex.split(errors.partition("mailcheck ")[2])
    assert run_command(*told, "--fail-under", "0").status == 3


@rows(
    (["--timeout", "1"], 1, "no mail has arrived; continue: mailcheck test --id "),
    (["--id", "none"], 1, "there is no such test"),
    (["--key-file", "none"], 2, "no API key"),
    (["--url", f"http://{HOST}:1"], 3, "cannot be reached"),
    (["--fail-under", "good"], 2, "must be a number from 0 to 10"),
)
def test_problems(daemon: Daemon, arguments: list[str], status: int, words: str) -> None:
    """Status 2 is wrong usage, 1 a failed test, 3 an unreachable daemon."""
    ended, output, errors = Command(daemon, *arguments).end()
    assert (ended, output) == (status, "")
    assert words in errors
    assert "Traceback" not in errors


def test_a_test_is_deleted(daemon: Daemon) -> None:
    """A deleted test is gone, and deleting it again says so."""
    made = daemon.request("POST", "/test/generate").json
    delete = ("--delete", made["testId"])
    status, output, errors = Command(daemon, *delete).end()
    assert (status, output) == (0, "")
    assert f"deleted test {made['testId']}, " in errors
    assert daemon.get(f"/test/{made['testId']}").status == 404
    status, _, errors = Command(daemon, *delete).end()
    assert (status, "no such test" in errors) == (1, True), errors


def test_help() -> None:
    """The help lists the exit statuses."""
    shown: Any = run_command("test", "--help")
    assert shown.status == 0
    assert "Exit status: 0 fine" in shown.output
