"""kill -9 during an analysis: after the restart the test completes with the same verdict."""

import smtplib
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.memory_zone import MemoryZone
from tests.servers.daemon import HOST, Daemon, running_daemon
from tests.servers.name_server import running_name_server

pytestmark = [pytest.mark.end_to_end, pytest.mark.interop]

KILLS = 2
"""All attempts of a test but one, so that the last one must succeed."""

RECORDS = {
    "good.test": {"A": ["127.0.0.1"], "MX": ["10 good.test."], "TXT": ["v=spf1 a -all"]},
    "_dmarc.good.test": {"TXT": ["v=DMARC1; p=reject"]},
    "1.0.0.127.in-addr.arpa": {"PTR": ["good.test."]},
}

MAIL = (
    b"From: Ann <ann@good.test>\r\nTo: you@mailcheck.example\r\nSubject: Hello\r\n"
    b"Date: Sat, 21 Nov 2026 12:00:00 +0000\r\nMessage-ID: <1@good.test>\r\n\r\n"
    b"How are you?\r\n"
)


@pytest.fixture
def silence() -> Iterator[str]:
    """The address of a name server that never answers, so that analyses never end."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.bind((HOST, 0))
        yield f"{HOST}:{datagrams.getsockname()[1]}"


@pytest.fixture
def answers() -> Iterator[str]:
    """The address of a name server that knows the sender."""
    with running_name_server(MemoryZone(RECORDS)) as server:
        yield f"{server.host}:{server.port}"


@pytest.fixture
def daemon(tmp_path: Path, answers: str) -> Iterator[Daemon]:
    """A daemon that tests mail from loopback."""
    with running_daemon(
        tmp_path,
        dns_resolvers=[answers],
        dns_allow_special_use=True,
        network_allow_private=True,
        spamassassin_spamd="off",
    ) as daemon:
        yield daemon


def generate(daemon: Daemon) -> Any:
    """Create a test."""
    return daemon.request("POST", "/test/generate").json


def send(daemon: Daemon, address: str) -> None:
    """Send the mail, which is on disk when its reply arrives."""
    with smtplib.SMTP(HOST, daemon.smtp_port, "good.test") as client:
        client.sendmail("ann@good.test", [address], MAIL)


def status(daemon: Daemon, test_id: str) -> str:
    """Return the status of a test."""
    status: str = daemon.get(f"/test/{test_id}").json["status"]
    return status


def verdict(daemon: Daemon, test_id: str) -> Any:
    """Wait for the report, and return its verdict."""
    tested = daemon.get(f"/test/{test_id}/wait", timeout=60).json
    assert tested["status"] == "completed", tested
    checks = {
        name: (check["status"], check["result"], check["deduction"])
        for name, check in tested["checks"].items()
    }
    return tested["score"], tested["deductions"], checks


def test_killed_while_it_analyses(daemon: Daemon, answers: str, silence: str) -> None:
    """A test whose analysis was killed is resumed at the start, with an unchanged result.

    A regular stop of the daemon does not count as an attempt.
    """
    reference = generate(daemon)
    send(daemon, reference["email"])
    expected = verdict(daemon, reference["testId"])
    daemon.stop()
    daemon.options["dns_resolvers"] = [silence]
    daemon.start()
    test = generate(daemon)
    send(daemon, test["email"])
    for number in range(2 * KILLS):
        assert status(daemon, test["testId"]) == "processing"
        if number % 2:
            daemon.stop()
        else:
            time.sleep(0.2)  # so that it has begun
            daemon.kill()
        daemon.start()
    daemon.stop()
    daemon.options["dns_resolvers"] = [answers]
    daemon.start()
    assert verdict(daemon, test["testId"]) == expected
    assert daemon.total() == 0
