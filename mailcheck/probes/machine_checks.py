"""The doctor's checks of this machine: disk, permissions, certificate, clock and inbound port."""

import os
import stat
from collections.abc import Iterator, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from twisted.internet.defer import Deferred
from twisted.internet.protocol import connectionDone
from twisted.protocols.basic import LineOnlyReceiver
from twisted.python.failure import Failure

from mailcheck.checks.findings import Finding, Severity
from mailcheck.checks.findings_table import make_finding
from mailcheck.core.instants import SECOND
from mailcheck.core.network_addresses import IpAddress
from mailcheck.operations.doctor import undetermined_finding
from mailcheck.ports.clocks import Now
from mailcheck.probes.fetching import FetchRequest, GuardedFetcher
from mailcheck.probes.guarded_dialer import (
    ConnectionsRefused,
    FetchFailed,
    NotConnected,
    ProbeReactor,
    connect_first,
    quiet_factory,
    source_towards,
)

DAY = 86_400.0
CERTIFICATE_DAYS = 14
"""Days before expiry by which a self-renewing certificate would have been renewed."""

CLOCK_TOLERANCE = 5.0
"""Tolerated clock error in seconds. Signatures and time-based codes tolerate more; waits and
cursors do not depend on the clock."""

CONNECT_SECONDS = 5.0
GREETING_SECONDS = 10.0


def examine_disk(folder: Path, min_free: int) -> Iterator[Finding]:
    """Find a disk on which mail is rejected, or soon will be."""
    disk = os.statvfs(folder)
    free = disk.f_bavail * disk.f_frsize
    if free < min_free:
        yield make_finding(
            "doctor.disk.full", free=_mebibytes(free), folder=folder, min_free=_mebibytes(min_free)
        )
    elif free < 2 * min_free:
        yield make_finding(
            "doctor.disk.low", free=_mebibytes(free), folder=folder, min_free=_mebibytes(min_free)
        )


def _mebibytes(octets: int) -> str:
    return f"{octets / 1024 / 1024:,.0f} MiB"


def examine_rights(folder: Path, files: Sequence[Path]) -> Iterator[Finding]:
    """Find a folder that cannot be written, and mail or secrets that other users can read."""
    if not folder.is_dir():
        yield make_finding("doctor.rights.no-folder", folder=folder)
        return
    if not os.access(folder, os.W_OK | os.X_OK):
        yield make_finding("doctor.rights.not-writable", folder=folder)
    for file in files:
        if file.exists() and stat.S_IMODE(file.stat().st_mode) & 0o077:
            yield make_finding("doctor.rights.open-file", file=file)


def examine_certificate(path: Path, now: float) -> Iterator[Finding]:
    """Find a certificate that expires soon or has expired; ``now`` is in seconds since 1970."""
    try:
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
    except (OSError, ValueError) as error:
        yield make_finding("doctor.certificate.unreadable", path=path, error=error)
        return
    days = (certificate.not_valid_after_utc.timestamp() - now) / DAY
    if days < CERTIFICATE_DAYS:
        when = f"expires in {days:.0f} days" if days >= 0 else f"expired {-days:,.0f} days ago"
        yield make_finding(
            "doctor.certificate.ending",
            severity=Severity.ERROR if days < 0 else Severity.WARNING,
            path=path,
            when=when,
        )


async def examine_clock(fetcher: GuardedFetcher, url: str, now: Now) -> list[Finding]:
    """Compare this machine's clock with the clock of a web server."""
    if not url.startswith("http"):
        return [undetermined_finding("clock", "no-server")]
    try:
        fetched = await fetcher.fetch(FetchRequest(url, "*/*", max_octets=4 * 1024 * 1024))
    except FetchFailed as failure:
        problem = failure.problem.value
        return [undetermined_finding("clock", "not-fetched", url=url, problem=problem)]
    if fetched.served_at is None:
        return [undetermined_finding("clock", "no-date", url=url)]
    ahead = now() / SECOND - fetched.served_at
    if abs(ahead) <= CLOCK_TOLERANCE:
        return []
    side = "ahead" if ahead > 0 else "behind"
    return [make_finding("doctor.clock.wrong", ahead=abs(ahead), side=side)]


async def examine_inbound_port(
    reactor: ProbeReactor, addresses: Sequence[IpAddress], port: int, host_name: str
) -> list[Finding]:
    """Connect to this server as other mail servers do, and check its greeting."""
    if not addresses:
        return [undetermined_finding("port-in", "no-address", host_name=host_name)]
    place: dict[str, Any] = {
        "port": port,
        "addresses": ", ".join(map(str, addresses)),
        "host_name": host_name,
    }
    greeting = _Greeting()
    try:
        await connect_first(
            reactor, list(addresses), port, quiet_factory(lambda: greeting), CONNECT_SECONDS
        )
        line = await greeting.heard.addTimeout(GREETING_SECONDS, reactor)
    except ConnectionsRefused:
        return [make_finding("doctor.port-in.closed", **place)]
    except NotConnected:
        return [undetermined_finding("port-in", "no-answer", **place)]
    except Exception as problem:  # no greeting, or the connection was lost
        why = str(problem).rstrip(".: ")
        why = f": {why}" if why else ""
        return [undetermined_finding("port-in", "no-greeting", problem=why, **place)]
    if line.split(" ")[1:2] != [host_name]:
        return [make_finding("doctor.port-in.other", line=line[:100], **place)]
    return []


class _Greeting(LineOnlyReceiver):
    """Fires ``heard`` with the first line of a server, and quits."""

    def __init__(self) -> None:
        self.heard: Deferred[str] = Deferred()

    def lineReceived(self, line: bytes) -> None:
        """Handle the first line, and quit."""
        assert self.transport is not None
        self.transport.write(b"QUIT\r\n")
        self.transport.loseConnection()
        if not self.heard.called:
            self.heard.callback(line.decode("ascii", "replace"))

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Fail if no line was received."""
        if not self.heard.called:
            self.heard.errback(reason)


def outgoing_addresses() -> tuple[IpAddress, ...]:
    """Return the source addresses of this machine towards the Internet, without sending a packet.

    Behind a router that translates addresses, they are private.
    """
    found = (source_towards(ip_address(target)) for target in ("192.0.2.1", "2001:db8::1"))
    return tuple(address for address in found if address is not None)
