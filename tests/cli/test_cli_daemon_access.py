"""The daemon that commands call, and errors when another server answers at its URL."""

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from mailcheck.cli.exit_statuses import (
    EXIT_INTERRUPTED,
    EXIT_PROBLEM,
    EXIT_UNDETERMINED,
    EXIT_USAGE,
)
from tests.cli.command_line import Outcome, run_command
from tests.servers.http_stub import serving_answers
from tests.table import rows


@pytest.fixture
def key(tmp_path: Path) -> str:
    """A file with a key."""
    path = tmp_path / "key"
    path.write_text("mck_key")
    return str(path)


def asked_at(url: str, key: str) -> Outcome:
    """Request the watches."""
    return run_command("watch", "list", "--url", url, "--key-file", key)


@rows(b"<html>Sign in</html>", b"[]", b'"up"', b"\xff")
def test_another_server(key: str, body: bytes) -> None:
    """A proxy's page, or other JSON, is named: the result is undetermined, with status 3."""
    with serving_answers((200, body, "")) as url:
        found = asked_at(url, key)
    assert (found.status, found.output) == (3, "")
    assert f"{url}/api/v1 does not respond like mailcheck: " in found.errors
    assert "name it with --url or MAILCHECK_URL" in found.errors


@rows("Wed, 21 Oct 2015 07:28:00 GMT", "0.1", "soon")
def test_being_put_off(key: str, when: str) -> None:
    """A request with a Retry-After of seconds or a date, or an invalid one, is repeated."""
    watches = b'{"watches": [], "openAlerts": []}'
    with serving_answers((503, b"busy", when), (200, watches, "")) as url:
        found = asked_at(url, key)
    assert (found.status, found.output) == (0, "")
    assert found.errors == "nothing is watched yet: mailcheck watch add DOMAIN\n"


@rows("localhost:8080", "mail.example", "ftp://mail.example")
def test_a_url_without_a_scheme(key: str, url: str) -> None:
    """A URL that does not begin with http:// or https:// is a usage error that says so."""
    found = asked_at(url, key)
    assert found.status == EXIT_USAGE
    assert f"must begin with http:// or https://; got {url}" in found.errors


@rows("--url", "--key-file")
def test_an_option_before_the_command(option: str) -> None:
    """An option of a command that is given before the command is a usage error that says so."""
    found = run_command(option, "x", "wait")
    assert found.status == EXIT_USAGE
    assert f"{option} belongs after the command: mailcheck COMMAND {option} x" in found.errors


@rows(
    (401, EXIT_UNDETERMINED),
    (429, EXIT_UNDETERMINED),
    (500, EXIT_UNDETERMINED),
    (404, EXIT_PROBLEM),
    (400, EXIT_USAGE),
)
def test_the_exit_status_of_a_refusal(key: str, status: int, expected: int) -> None:
    """A wrong key or an exceeded limit is status 3: nothing is known about the mail."""
    with serving_answers((status, b'{"error": "no"}', "3600")) as url:
        assert asked_at(url, key).status == expected


@rows("-3", "0", "soon", "nan", "1e9")
def test_a_timeout_that_is_none(key: str, timeout: str) -> None:
    """An invalid timeout is a usage error that names the range and the value."""
    found = run_command("wait", f"--timeout={timeout}", "--key-file", key)
    assert found.status == EXIT_USAGE
    assert f"must be a number of seconds from 1 to 86,400; got {timeout}" in found.errors


def test_a_wait_without_mail_prints_its_json(key: str) -> None:
    """After a timeout ``wait --json`` prints the response, which has the next cursor."""
    body = {"error": "no mail", "cursor": "c7", "waited": 1, "seen": [], "rejected": []}
    answers = (408, json.dumps(body).encode(), "")
    with serving_answers(answers) as url:
        words = ("--json", "--after", "c1", "--timeout", "0.5", "--url", url, "--key-file", key)
        found = run_command("wait", *words)
    assert (found.status, json.loads(found.output)) == (EXIT_PROBLEM, body)


def test_ctrl_c_ends_a_wait(key: str) -> None:
    """A wait that is interrupted ends with status 130 and without a traceback."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        words = ("wait", "--after", "c1", "--url", url, "--key-file", key)
        program = subprocess.Popen(
            [sys.executable, "-c", "from mailcheck.cli.main import main; main()", *words],
            stderr=subprocess.PIPE,
            text=True,
        )
        connection, _ = server.accept()
        with connection:
            connection.recv(1)
            program.send_signal(signal.SIGINT)
            _, errors = program.communicate(timeout=60)
    assert (program.returncode, errors) == (EXIT_INTERRUPTED, "")
