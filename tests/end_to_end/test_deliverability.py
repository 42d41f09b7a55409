"""Deliverability tests with swaks, which sends over TLS as a host on the Internet.

One real name server has a perfect sender and senders with one fault each. swaks on loopback tells
the daemon with XCLIENT which host it represents.
"""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted

from tests.cli.command_line import run_work
from tests.end_to_end.single_faults import SENDERS, Sender, zone_of_all
from tests.servers.certificates import Authority
from tests.servers.daemon import HOST, Daemon, running_daemon
from tests.servers.name_server import running_name_server

pytestmark = pytest.mark.end_to_end

HOST_NAME = "mailcheck.example"
DEADLINE = 60.0

GTUBE = b"XJS*C4JDBQADN1.NSBN3*2IDNEN*GTUBE-STANDARD-ANTI-UBE-TEST-EMAIL*C.34X"
"""A text that every content filter classifies as spam (SpamAssassin's own test)."""


class World:
    """A daemon, and senders to it."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon

    def send(
        self, sender: Sender, recipient: str, raw: bytes = b""
    ) -> "subprocess.CompletedProcess[str]":
        """Send a sender's mail or the given bytes with swaks, and return its result."""
        mail = self.daemon.folder / "mail.eml"
        mail.write_bytes(raw or sender.mail())
        done = subprocess.run(
            [
                "swaks",
                *("--server", HOST, "--port", str(self.daemon.smtp_port)),
                *("--from", f"ann@{sender.domain}", "--to", recipient),
                *("--helo", sender.helo_name),
                *("--xclient-addr", sender.address),
                *(["--tls"] if sender.has_tls else []),
                *("--data", f"@{mail}"),
            ],
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    def when_done(self, test_id: str) -> Any:
        """Wait for a report."""
        answer = self.daemon.get(f"/test/{test_id}/wait", timeout=60)
        assert answer.status == 200, answer
        return answer.json

    def scored(self, sender: Sender) -> Any:
        """Send a sender's mail to a new test, and return the completed test."""
        made = self.daemon.request("POST", "/test/generate").json
        self.send(sender, made["email"])
        return self.when_done(made["testId"])


@pytest.fixture(scope="module")
def dns() -> Iterator[str]:
    """The address of the name server of all senders and blocklists."""
    with running_name_server(zone_of_all()) as server:
        yield f"{server.host}:{server.port}"


def options(folder: Path, dns: str) -> dict[str, Any]:
    """Return the options of the daemon."""
    certificate, key = Authority().issue(HOST_NAME).write_to(folder)
    return {
        "dns_resolvers": [dns],
        "smtp_certificate": str(certificate),
        "smtp_private_key": str(key),
        "smtp_xclient_from": [HOST],
    }


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, dns: str) -> Iterator[World]:
    """Run the daemon once, without a content filter, for the tests of this module."""
    folder = tmp_path_factory.mktemp("deliverability")
    with running_daemon(folder, **options(folder, dns), spamassassin_spamd="off") as daemon:
        yield World(daemon)


def faults(found: Any) -> dict[str, float]:
    """Return the deductions by the id of the finding."""
    return {one["id"]: one["points"] for one in found["deductions"]}


FEW = ("perfect", "spf-fail", "listed", "plain")
"""One sender for each part of the daemon. The others differ in evaluations that have own tests."""

MORE = [pytest.param(name, marks=pytest.mark.interop) for name in SENDERS if name not in FEW]


@pytest.mark.parametrize("name", [*FEW, *MORE])
@pytest_twisted.ensureDeferred
async def test_each_fault_costs_what_is_published(world: World, name: str) -> None:
    """A perfect sender gets 10.0; a fault has its own finding and its published deduction.

    The same mail has the same result over REST, on the command line, and after a recheck.
    """
    sender = SENDERS[name]
    found = world.scored(sender)
    assert (faults(found), found["score"]) == (dict(sender.costs), sender.score)
    assert found["undetermined"] == ["spamassassin"]  # it is off here
    test_id = found["testId"]
    world.daemon.request("POST", f"/test/{test_id}/recheck")
    again = world.when_done(test_id)
    assert (faults(again), again["score"]) == (faults(found), found["score"])
    assert await judged_by_command(world, sender, test_id) == (faults(found), found["score"])


async def judged_by_command(
    world: World, sender: Sender, test_id: str
) -> tuple[dict[str, float], float]:
    """Return the result of ``mailcheck score`` for the mail that a test has received."""
    headers = {"Accept": "message/rfc822"}
    raw = world.daemon.request("GET", f"/test/{test_id}/raw", headers)
    file = world.daemon.folder / "received.eml"
    file.write_bytes(raw.body)
    shown = await run_work(
        world.daemon.environment,
        *("score", str(file), "--json"),
        *("--ip", sender.address, "--helo", sender.helo_name),
        *("--mail-from", f"ann@{sender.domain}"),
        *([] if sender.has_tls else ["--no-tls"]),
    )
    assert shown.status in (0, 1), shown
    found = json.loads(shown.output)
    return faults(found), found["score"]


def test_the_session_is_in_the_report(world: World) -> None:
    """The report shows the conversation, the encryption and the host."""
    report = world.scored(SENDERS["perfect"])["report"]
    assert report["transport"]["tls"]["version"] == "TLSv1.3"
    said = report["transport"]["transcript"]
    assert f"C: EHLO {SENDERS['perfect'].helo_name}" in said
    assert "C: MAIL FROM:<ann@perfect.example>" in said
    assert report["reverseDns"]["ip"] == SENDERS["perfect"].address
    assert report["helo"]["name"] == SENDERS["perfect"].helo_name
    assert all(checklist["met"] for checklist in report["checklists"])


@pytest.mark.interop
def test_with_the_content_filter(tmp_path: Path, dns: str) -> None:
    """With the SpamAssassin that the daemon starts every check is determined, and spam is found."""
    perfect = SENDERS["perfect"]
    spammer = replace(perfect, writes=lambda raw: raw + GTUBE + b"\r\n")
    with running_daemon(tmp_path, **options(tmp_path, dns)) as daemon:
        world = World(daemon)
        found, spam = world.scored(perfect), world.scored(spammer)
    assert (found["score"], found["undetermined"]) == (10.0, [])
    checked = found["checks"]["spamassassin"]
    assert checked["status"] == "pass"
    assert checked["engine"].startswith("SpamAssassin")
    assert (faults(spam), spam["score"]) == ({"spamassassin.points": 4.0}, 6.0)
    rules = {rule["name"] for rule in spam["checks"]["spamassassin"]["rules"]}
    assert "GTUBE" in rules
