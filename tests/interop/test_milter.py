"""A real Postfix sends copies of its mail to the daemon, and its mail is never changed or lost."""

import os
import signal
import smtplib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mailcheck.dns.servers import Server
from tests.docs.blocks import ROOT, code_with
from tests.fakes.mail_signer import RSA
from tests.fakes.memory_zone import MemoryZone
from tests.servers.daemon import HOST, Daemon, free_ports, running_daemon
from tests.servers.mail_relay import MailRelay, running_relay
from tests.servers.name_server import running_name_server
from tests.servers.postfix import Postfix, running_postfix

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(300)]

DOMAIN = "elsewhere.example"
GUIDE = ROOT / "docs" / "how-to" / "score-your-traffic.md"
MAX_DELAY = 8.0
"""Seconds by which a mail is delayed at most, as the guide says: four steps of 2 seconds."""

ZONE = {
    "sender.example": {"TXT": [f"v=spf1 ip4:{HOST} -all"]},
    "_dmarc.sender.example": {"TXT": ["v=DMARC1; p=reject"]},
    RSA.key_name: {"TXT": [RSA.key_record]},
    "forger.example": {"TXT": ["v=spf1 -all"]},
    "_dmarc.forger.example": {"TXT": ["v=DMARC1; p=none"]},
}

SCORED = 'mailcheck_milter_mails_total{outcome="scored"}'
"""The metric that counts the mails whose evaluation has ended."""


def mail_of(domain: str, number: int) -> bytes:
    """Return a mail with folded fields, a long line, dots and no final line break."""
    return (
        f"From:  Ann <ann@{domain}>\r\nTo: bob@{DOMAIN}\r\nSubject: Mail {number}\r\n"
        f"\tfolded   twice\r\n by hand\r\nDate: Thu, 26 Nov 2026 12:00:00 +0000\r\n"
        f"Message-ID: <{number}@{domain}>\r\n\r\nHello  Bob,\r\n..\r\n.dot\r\n"
        + "x" * 900
        + "\r\n\r\n\r\nend\r\n"
    ).encode()


@pytest.fixture(scope="module")
def relay() -> Iterator[MailRelay]:
    """The server to which Postfix relays its mail."""
    with running_relay() as relay:
        yield relay


@contextmanager
def silent_name_server() -> Iterator[Server]:
    """Take questions, and answer none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taking:
        taking.bind((HOST, 0))
        yield Server(*taking.getsockname())


@pytest.fixture
def name_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """The name server of all domains here, or another one that a test names."""
    running = getattr(request, "param", partial(running_name_server, MemoryZone(ZONE)))
    with running() as server:
        yield server


@pytest.fixture
def daemon(tmp_path: Path, name_server: Server) -> Iterator[Daemon]:
    """A daemon with a milter endpoint."""
    (port,) = free_ports(1)
    with running_daemon(
        tmp_path,
        milter_listen=f"{HOST}:{port}",
        dns_resolvers=[f"{name_server.host}:{name_server.port}"],
        dns_allow_special_use=True,
        network_allow_private=True,
        spamassassin_spamd="off",
        ops_listen=f"{HOST}:{free_ports(1)[0]}",
    ) as daemon:
        yield daemon


@pytest.fixture
def postfix(daemon: Daemon, relay: MailRelay) -> Iterator[Postfix]:
    """Postfix with the lines of the guide."""
    relay.taken.clear()
    lines = code_with(GUIDE, "smtpd_milters")
    port = str(daemon.options["milter_listen"]).rpartition(":")[2]
    with running_postfix(relay.port, {DOMAIN: HOST}, lines.replace("8891", port)) as postfix:
        yield postfix


def send(postfix: Postfix, *mails: tuple[str, bytes]) -> float:
    """Send mails with their senders in one session; return the longest time of a mail."""
    longest = 0.0
    with smtplib.SMTP(HOST, postfix.port, "client.example", timeout=120) as smtp:
        for sender, raw in mails:
            begun = time.monotonic()
            smtp.sendmail(sender, f"bob@{DOMAIN}", raw)
            longest = max(longest, time.monotonic() - begun)
    return longest


def without_trace(raw: bytes) -> bytes:
    """Return a mail without the Received field that Postfix has added at its top."""
    lines = raw.split(b"\r\n")
    assert lines[0].startswith(b"Received: ")
    end = next(number for number, line in enumerate(lines) if number and line[:1] not in b"\t ")
    return b"\r\n".join(lines[end:])


def traffic(daemon: Daemon, mails: int) -> Mapping[str, Any]:
    """Return the senders by domain, when all mails are counted."""
    deadline = time.monotonic() + 60
    while True:
        found = daemon.get("/traffic").json
        if found["mails"] >= mails or time.monotonic() > deadline:
            assert found["mails"] == mails
            return {one["domain"]: one for one in found["senders"]}
        time.sleep(0.2)


def metrics_of(daemon: Daemon) -> str:
    """Return the metrics of a daemon."""
    return _get(f"http://{daemon.options['ops_listen']}/metrics")


def test_a_copy_of_the_traffic(daemon: Daemon, postfix: Postfix, relay: MailRelay) -> None:
    """Twenty mails arrive unchanged, and their senders are counted with the right results."""
    signed = [("ann@sender.example", RSA.sign(mail_of("sender.example", n))) for n in range(10)]
    forged = [("x@forger.example", mail_of("sender.example", n)) for n in range(10, 16)]
    bounces = [("", mail_of("forger.example", n)) for n in range(16, 20)]
    sent = [*signed, *forged, *bounces]
    send(postfix, *sent[:7])
    send(postfix, *sent[7:])
    taken = {one.mail["Message-ID"]: one for one in relay.wait_for(20)}
    assert len(taken) == 20
    for sender, raw in sent:
        (key,) = [line for line in raw.split(b"\r\n") if line.startswith(b"Message-ID: ")]
        one = taken[key.partition(b" ")[2].decode()]
        assert one.sender == sender
        assert without_trace(one.raw) == raw
    found = traffic(daemon, 20)
    mine, other = found["sender.example"], found["forger.example"]
    assert (mine["mails"], mine["dkimPass"]) == (16, 10)
    assert (mine["dmarcPass"], mine["dmarcFail"]) == (10, 6)
    assert (other["mails"], other["spfPass"], other["dmarcFail"]) == (4, 0, 4)
    sources = daemon.get("/traffic/sources", domain="sender.example").json["sources"]
    assert [(one["source"], one["envelopeDomain"], one["spf"], one["dkim"]) for one in sources] == [
        (HOST, "sender.example", "pass", "pass"),
        (HOST, "forger.example", "fail", "none"),
    ]
    assert f"{SCORED} 20" in metrics_of(daemon)
    database = (daemon.folder / "var" / "mailcheck.db").read_bytes()
    assert f"bob@{DOMAIN}".encode() not in database


def test_a_daemon_that_is_stopped(daemon: Daemon, postfix: Postfix, relay: MailRelay) -> None:
    """Mail flows while the daemon is stopped, and is counted again after its start."""
    assert "doctor.milter" not in diagnose(daemon)
    daemon.stop()
    assert "doctor.milter.silent" in diagnose(daemon)
    assert send(postfix, ("ann@sender.example", mail_of("sender.example", 1))) < MAX_DELAY
    relay.wait_for(1)
    daemon.start()
    send(postfix, ("ann@sender.example", mail_of("sender.example", 2)))
    relay.wait_for(2)
    assert traffic(daemon, 1)["sender.example"]["mails"] == 1


def test_a_daemon_that_stands_still(daemon: Daemon, postfix: Postfix, relay: MailRelay) -> None:
    """Mail flows while the daemon does not answer, within the delay that the guide states."""
    assert f"at most {MAX_DELAY:.0f} seconds" in GUIDE.read_text()
    os.kill(daemon.process.pid, signal.SIGSTOP)
    try:
        mails = [("ann@sender.example", mail_of("sender.example", n)) for n in range(3)]
        assert send(postfix, *mails) < MAX_DELAY
        relay.wait_for(3)
    finally:
        os.kill(daemon.process.pid, signal.SIGCONT)


@pytest.mark.parametrize("name_server", [silent_name_server], indirect=True)
def test_a_slow_evaluation(daemon: Daemon, postfix: Postfix, relay: MailRelay) -> None:
    """The time of an evaluation does not delay a mail: mails go on before they are scored."""
    send(postfix, *(("ann@sender.example", mail_of("sender.example", n)) for n in range(3)))
    relay.wait_for(3)
    assert SCORED not in metrics_of(daemon)
    daemon.wait_until(lambda: f"{SCORED} 3" in metrics_of(daemon))


def diagnose(daemon: Daemon) -> str:
    """Return the findings of ``mailcheck doctor``."""
    command = [str(Path(sys.executable).with_name("mailcheck")), "doctor", "--json"]
    environment, folder = daemon.environment, daemon.folder
    return subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, timeout=120
    ).stdout


def _get(url: str) -> str:
    from urllib.request import urlopen

    with urlopen(url, timeout=10) as answer:
        text: str = answer.read().decode()
    return text
