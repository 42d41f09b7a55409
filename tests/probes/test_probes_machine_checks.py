"""Checks of this machine: its disk, its files, its clock and its incoming port."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from twisted.internet.defer import Deferred, fail, succeed

from mailcheck.checks.findings import Finding, Severity
from mailcheck.core.instants import SECOND, Instant
from mailcheck.probes.fetching import Fetched, FetchRequest
from mailcheck.probes.guarded_dialer import FetchFailed, FetchProblem
from mailcheck.probes.machine_checks import (
    CONNECT_SECONDS,
    GREETING_SECONDS,
    examine_certificate,
    examine_clock,
    examine_disk,
    examine_inbound_port,
    examine_rights,
    outgoing_addresses,
)
from tests.house import run
from tests.probes.scripted_hosts import ScriptedHosts, collect
from tests.servers.certificates import Authority
from tests.table import rows

HOST = "mx.mail.example"
ADDRESSES = [ip_address("192.0.2.1")]


def ids(findings: Iterator[Finding] | list[Finding]) -> list[str]:
    """Return the ids of findings."""
    return [finding.id for finding in findings]


def test_a_disk_that_fills_up(tmp_path: Path) -> None:
    """Twice the required free space is enough; with less, a finding says when mail is refused."""
    disk = os.statvfs(tmp_path)
    free = disk.f_bavail * disk.f_frsize
    assert ids(examine_disk(tmp_path, free // 4)) == []
    assert ids(examine_disk(tmp_path, free * 3 // 4)) == ["doctor.disk.low"]
    assert ids(examine_disk(tmp_path, free * 2)) == ["doctor.disk.full"]


def test_files_that_others_can_read(tmp_path: Path) -> None:
    """A private or missing secret is fine, and one that others can read is named."""
    closed, opened = tmp_path / "closed", tmp_path / "opened"
    for file, mode in ((closed, 0o600), (opened, 0o640)):
        file.touch()
        file.chmod(mode)
    (finding,) = examine_rights(tmp_path, [closed, opened, tmp_path / "none"])
    assert finding.id == "doctor.rights.open-file"
    assert finding.fix == f"chmod 600 {opened}"
    assert ids(examine_rights(tmp_path / "none", [])) == ["doctor.rights.no-folder"]


def test_a_certificate_that_ends(tmp_path: Path) -> None:
    """An expiring certificate is a warning, an expired one an error; an invalid file is named."""
    path, _ = Authority().issue(HOST).write_to(tmp_path)
    end = x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc

    def judged(days: float) -> list[tuple[str, Severity]]:
        now = (end - timedelta(days=days)).timestamp()
        return [(one.id, one.severity) for one in examine_certificate(path, now)]

    assert judged(15) == []
    assert judged(3) == [("doctor.certificate.ending", Severity.WARNING)]
    assert judged(-1) == [("doctor.certificate.ending", Severity.ERROR)]
    path.write_text("no certificate")
    assert ids(examine_certificate(path, 0)) == ["doctor.certificate.unreadable"]
    assert ids(examine_certificate(tmp_path / "none", 0)) == ["doctor.certificate.unreadable"]


class Server:
    """A web server with one response."""

    def __init__(self, answer: Fetched | FetchFailed) -> None:
        self._answer = answer

    def fetch(self, _: FetchRequest) -> Deferred[Fetched]:
        """Return the response."""
        return (
            fail(self._answer) if isinstance(self._answer, FetchFailed) else succeed(self._answer)
        )


SERVED = datetime(2026, 11, 23, tzinfo=UTC).timestamp()


@rows((0, None), (4, None), (-4, None), (60, "60 s ahead"), (-60, "60 s behind"))
def test_a_clock_that_goes_wrong(ahead: int, said: str | None) -> None:
    """A clock may differ by seconds; a minute is a finding with its direction."""
    now = Instant(round((SERVED + ahead) * SECOND))
    server: Any = Server(Fetched(200, b"", served_at=SERVED))
    found = run(examine_clock(server, "http://web.example", lambda: now))
    assert [said in one.meaning for one in found if said] == [True] * (said is not None)
    assert ids(found) == ["doctor.clock.wrong"] * (said is not None)


@rows(
    ("", Fetched(200, b""), "No web server is configured"),
    ("http://web.example", Fetched(200, b""), "sends no Date"),
    (
        "http://web.example",
        FetchFailed(FetchProblem.NO_HOST),
        "cannot be fetched: its host has no public address",
    ),
)
def test_no_clock_to_compare_with(url: str, answer: Fetched | FetchFailed, reason: str) -> None:
    """Without a reference the clock is undetermined, and the finding gives the reason."""
    server: Any = Server(answer)
    (finding,) = run(examine_clock(server, url, lambda: Instant(0)))
    assert (finding.id, finding.severity) == ("doctor.clock.undetermined", Severity.UNDETERMINED)
    assert reason in finding.meaning


class WayIn:
    """Checks whether this server greets; the test plays the server."""

    def __init__(self, host_name: str = HOST) -> None:
        self.hosts = ScriptedHosts()
        looking = examine_inbound_port(self.hosts, ADDRESSES, 25, host_name)
        self._results = collect(Deferred.fromCoroutine(looking))

    @property
    def found(self) -> list[str]:
        """The ids of the findings, when they are known."""
        (findings,) = self._results
        assert not self.hosts.getDelayedCalls()
        return ids(findings)


def test_this_server_greets() -> None:
    """The own name in the greeting is the proof, and QUIT ends the connection."""
    way = WayIn()
    server = way.hosts.accept()
    server.send(b"220 mx.mail.example ESMTP\r\n220 more\r\n")
    assert server.take() == b"QUIT\r\n"
    assert way.found == []


def test_another_server_greets() -> None:
    """Another name means that mail goes to another server."""
    way = WayIn()
    way.hosts.accept().send(b"220 old.example ESMTP\r\n")
    assert way.found == ["doctor.port-in.other"]


def test_nobody_listens() -> None:
    """A refusal is a finding; a timeout is not, since a router may block the way to itself."""
    refused, silent = WayIn(), WayIn()
    refused.hosts.refuse()
    assert refused.found == ["doctor.port-in.closed"]
    silent.hosts.advance(CONNECT_SECONDS)
    assert silent.found == ["doctor.port-in.undetermined"]


def test_nobody_greets() -> None:
    """A server that is silent or disconnects is undetermined."""
    mute, ending = WayIn(), WayIn()
    mute.hosts.accept()
    mute.hosts.advance(GREETING_SECONDS)
    assert mute.found == ["doctor.port-in.undetermined"]
    ending.hosts.accept().hang_up()
    assert ending.found == ["doctor.port-in.undetermined"]


def test_a_name_without_an_address() -> None:
    """A name without an address cannot be connected to."""
    (finding,) = run(examine_inbound_port(ScriptedHosts(), [], 25, HOST))
    assert finding.id == "doctor.port-in.undetermined"


def test_the_way_out_is_an_address() -> None:
    """At most one outgoing address of each family is used."""
    versions = [address.version for address in outgoing_addresses()]
    assert len(set(versions)) == len(versions)
