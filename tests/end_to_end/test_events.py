"""Events of an inbox over real connections, in the client libraries and other clients."""

import itertools
import smtplib
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mailcheck.clients.mailcheck_client import Mailcheck
from tests.end_to_end.load import send_subjects as send
from tests.servers.daemon import API, HOST, Daemon, running_daemon

pytestmark = pytest.mark.end_to_end

BACKLOG, AT_ONCE = 10_000, 100
"""Number of messages that a client has missed, and of recipients of each mail."""


def subjects_of(events: Iterator[Any], count: int) -> list[str]:
    """Return the subjects of the next mails."""
    return [mail.subject for mail in itertools.islice(events, count)]


@pytest.mark.interop
def test_the_client_goes_on_over_kill_9(daemon: Daemon) -> None:
    """Mail from before, between and after restarts of a daemon arrives once and in order."""
    inbox = Mailcheck(f"http://{HOST}:{daemon.http_port}", daemon.key)
    events = inbox.address("a").events()
    send(daemon, "1", "2", "3")
    assert subjects_of(events, 2) == ["1", "2"]
    for killed in range(2):
        daemon.kill()
        daemon.start()
        send(daemon, f"{4 + killed}")
        assert subjects_of(events, 1) == [f"{3 + killed}"]
    assert subjects_of(events, 1) == ["5"]


def test_refused_mail_and_an_end(shared_daemon: Daemon) -> None:
    """The client reports rejected mail, and ends at its timeout."""
    daemon, after = shared_daemon, shared_daemon.cursor()
    inbox = Mailcheck(f"http://{HOST}:{daemon.http_port}", daemon.key)
    with pytest.raises(smtplib.SMTPResponseException):
        send(daemon, "no", tag="fault.data-554")
    send(daemon, "yes")
    refused: list[Any] = []
    events = inbox.events(after=after, timeout=1, on_refused=refused.append)
    assert [mail.subject for mail in events] == ["yes"]
    assert ["fault.data-554" in one["reason"] for one in refused] == [True]


@pytest.mark.interop
def test_a_client_in_shell(tmp_path: Path) -> None:
    """Curl reads the stream of an inbox, and ends when it asked for a number of seconds."""
    with running_daemon(tmp_path) as daemon:
        send(daemon, "curled")
        url = f"http://{HOST}:{daemon.http_port}{API}/inbox/events?after=c0&seconds=1"
        command = ["curl", "-sN", "-H", f"X-API-Key: {daemon.key}", url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        assert "event: message\n" in done.stdout
        assert '"subject":"curled"' in done.stdout
