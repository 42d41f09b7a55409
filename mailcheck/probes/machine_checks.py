"""What the doctor looks at on this machine: disk, rights, certificate, clock, the way in."""

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from ipaddress import ip_address
from pathlib import Path

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
"""Days before its end in which a certificate that renews itself would have been renewed."""

CLOCK_TOLERANCE = 5.0
"""Seconds: signatures and time-based codes stand more, waits and cursors do not mind at all."""

CONNECT_SECONDS = 5.0
GREETING_SECONDS = 10.0


def examine_disk(folder: Path, min_free: int) -> Iterator[Finding]:
    """Find a disk on which mail is refused, or soon will be."""
    disk = os.statvfs(folder)
    free = disk.f_bavail * disk.f_frsize
    if free < min_free:
        yield make_finding(
            "doctor.disk.full",
            f"{_mebibytes(free)} are free at {folder}, less than [storage] min_free"
            f" ({_mebibytes(min_free)}): mail is refused for now (452).",
        )
    elif free < 2 * min_free:
        yield make_finding(
            "doctor.disk.low",
            f"{_mebibytes(free)} are free at {folder}; below {_mebibytes(min_free)} mail is"
            " refused.",
        )


def _mebibytes(octets: int) -> str:
    return f"{octets / 1024 / 1024:,.0f} MiB"


def examine_rights(folder: Path, files: Sequence[Path]) -> Iterator[Finding]:
    """Find a folder that can't be written, and mail or secrets that others can read."""
    if not folder.is_dir():
        yield make_finding(
            "doctor.rights.no-folder",
            f"There is no folder {folder}: no daemon has been started with this configuration.",
        )
        return
    if not os.access(folder, os.W_OK | os.X_OK):
        yield make_finding("doctor.rights.not-writable", f"{folder} can't be written by this user.")
    for file in files:
        if file.exists() and stat.S_IMODE(file.stat().st_mode) & 0o077:
            yield make_finding(
                "doctor.rights.open-file",
                f"Other users of this machine can read {file}.",
                f"chmod 600 {file}",
            )


def examine_certificate(path: Path, now: float) -> Iterator[Finding]:
    """Find a certificate that ends soon, or has ended; ``now`` is in seconds since 1970."""
    try:
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
    except (OSError, ValueError) as error:
        yield make_finding(
            "doctor.certificate.unreadable", f"The certificate {path} can't be read: {error}."
        )
        return
    days = (certificate.not_valid_after_utc.timestamp() - now) / DAY
    if days < CERTIFICATE_DAYS:
        when = f"ends in {days:.0f} days" if days >= 0 else f"ended {-days:.0f} days ago"
        yield make_finding(
            "doctor.certificate.ending",
            f"The certificate {path} {when}; nothing has renewed it.",
            severity=Severity.ERROR if days < 0 else Severity.WARNING,
        )


async def examine_clock(fetcher: GuardedFetcher, url: str, now: Now) -> list[Finding]:
    """Compare this machine's clock with that of a web server."""
    if not url.startswith("http"):
        return [undetermined_finding("clock", "No web server is known whose clock could be asked.")]
    try:
        fetched = await fetcher.fetch(FetchRequest(url, "*/*", max_octets=4 * 1024 * 1024))
    except FetchFailed as failure:
        why = f"No clock to compare with: {url} can't be fetched ({failure.problem.value})."
        return [undetermined_finding("clock", why)]
    if fetched.served_at is None:
        return [undetermined_finding("clock", f"No clock to compare with: {url} tells no time.")]
    ahead = now() / SECOND - fetched.served_at
    if abs(ahead) <= CLOCK_TOLERANCE:
        return []
    side = "ahead" if ahead > 0 else "behind"
    meaning = f"This machine's clock is {abs(ahead):.0f} s {side}."
    return [make_finding("doctor.clock.wrong", meaning)]


async def examine_inbound_port(
    reactor: ProbeReactor, addresses: Sequence[IpAddress], port: int, host_name: str
) -> list[Finding]:
    """Connect to this server as other mail servers do, and see who greets."""
    if not addresses:
        why = f"{host_name} has no address that could be connected to."
        return [undetermined_finding("port-in", why, "Publish its address first.")]
    greeting = _Greeting()
    try:
        await connect_first(
            reactor, list(addresses), port, quiet_factory(lambda: greeting), CONNECT_SECONDS
        )
        line = await greeting.heard.addTimeout(GREETING_SECONDS, reactor)
    except ConnectionsRefused:
        meaning = f"Nobody listens at port {port} of {_named(addresses)}: no mail comes in."
        fix = f"Let [smtp] listen be 0.0.0.0:{port}, or forward that port to where it listens."
        return [make_finding("doctor.port-in.closed", meaning, fix)]
    except NotConnected:
        why = f"Port {port} of {_named(addresses)} does not answer from here."
        fix = (
            "Open it in the firewall. Where a router translates addresses, try from outside:"
            f" nc {host_name} {port}"
        )
        return [undetermined_finding("port-in", why, fix)]
    except Exception as problem:  # nothing came, or the connection broke off
        why = f"Port {port} of {_named(addresses)} takes connections and does not greet: {problem}"
        return [undetermined_finding("port-in", why.rstrip(".: ") + ".")]
    if line.split(" ")[1:2] != [host_name]:
        meaning = f"At port {port} of {_named(addresses)} another server greets: {line[:100]!r}."
        fix = f"Stop that server, or let mail for the inbox domain pass from it to {host_name}."
        return [make_finding("doctor.port-in.other", meaning, fix)]
    return []


def _named(addresses: Iterable[IpAddress]) -> str:
    return ", ".join(map(str, addresses))


class _Greeting(LineOnlyReceiver):
    """Fires ``heard`` with the first line of a server, and says goodbye."""

    def __init__(self) -> None:
        self.heard: Deferred[str] = Deferred()

    def lineReceived(self, line: bytes) -> None:
        """Take the first line, and say goodbye."""
        assert self.transport is not None
        self.transport.write(b"QUIT\r\n")
        self.transport.loseConnection()
        if not self.heard.called:
            self.heard.callback(line.decode("ascii", "replace"))

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Fail where no line has come."""
        if not self.heard.called:
            self.heard.errback(reason)


def outgoing_addresses() -> tuple[IpAddress, ...]:
    """Return the addresses that this machine talks to the Internet from; nothing is sent.

    Behind a router that translates addresses they are private ones.
    """
    found = (source_towards(ip_address(one)) for one in ("192.0.2.1", "2001:db8::1"))
    return tuple(address for address in found if address is not None)
