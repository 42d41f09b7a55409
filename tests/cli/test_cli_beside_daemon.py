"""Commands on the database of a running daemon: both see the changes of the other."""

from pathlib import Path

import pytest

from mailcheck.config.reading import load_config
from tests.cli.command_line import Mailcheck
from tests.house import House


@pytest.fixture
def daemon(config_file: Path) -> House:
    """A daemon with the configured database."""
    return House(load_config(config_file, {}))


def test_a_key_issued_beside_the_daemon_works_at_once(daemon: House, mailcheck: Mailcheck) -> None:
    """An issued key works with the running daemon at once, and a revoked one does not."""
    secret = mailcheck("key", "issue", "first", "--per-minute", "7", "--per-day", "9").lines[0]
    answer = daemon.get("/inbox", key=secret)
    assert answer.status == 200
    assert answer.headers["x-ratelimit-remaining"] == "6"
    assert answer.headers["x-ratelimit-daily-remaining"] == "8"
    (line,) = (line for line in mailcheck("key", "list").lines if "7/min" in line)
    assert mailcheck("key", "revoke", line.split()[0]).status == 0
    assert daemon.get("/inbox", key=secret).status == 401


def test_an_account_added_beside_the_daemon_gets_mail(daemon: House, mailcheck: Mailcheck) -> None:
    """Mail to an address that was just created is accepted and readable."""
    address = mailcheck("account", "add", "second").lines[0]
    key = mailcheck("key", "issue", "second").lines[0]
    pending = daemon.ask("GET", "/inbox/wait", key=key)
    daemon.receive(address)
    assert pending.answer().json["to"] == address
