"""A real name server (NSD) on loopback that serves a `MemoryZone`.

    with running_name_server(MemoryZone(RECORDS)) as server:
        ...  # server.host, server.port; UDP and TCP

It runs as an ordinary user (``nobody`` when the tests run as root), with its configuration and
zones in a temporary folder, and is stopped afterwards.
"""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import dns.exception
import dns.message
import dns.name
import dns.query
import pytest
from dns.name import Name

from mailcheck.dns.servers import Server
from tests.fakes.memory_zone import NEGATIVE_TTL, POSITIVE_TTL, MemoryZone
from tests.servers.programs import find_program

START_DEADLINE = 60.0  # seconds
ATTEMPTS = 3  # another process may take the free port first

_CONFIGURATION = """\
server:
    ip-address: {host}@{port}
    username: ""
    chroot: ""
    zonesdir: "{folder}"
    database: ""
    pidfile: "{folder}/nsd.pid"
    xfrdfile: "{folder}/xfrd.state"
    xfrdir: "{folder}"
    zonelistfile: "{folder}/zone.list"
    server-count: 1
    ipv4-edns-size: 1232
    rrl-ratelimit: 0
    rrl-whitelist-ratelimit: 0
remote-control:
    control-enable: no
"""

_ZONE = """\
zone:
    name: "{name}"
    zonefile: "{file}"
"""


@contextmanager
def running_name_server(zone: MemoryZone, host: str = "127.0.0.1") -> Iterator[Server]:
    """Run NSD on a free port as long as the context lasts."""
    with _running(zone, host, POSITIVE_TTL) as (server, _):
        yield server


@contextmanager
def publishing_name_server(zone: MemoryZone) -> Iterator[tuple[Server, Callable[[], None]]]:
    """Run NSD with a TTL of 0; also yield a function that publishes changes of the zone."""
    with _running(zone, "127.0.0.1", 0) as running:
        yield running


@contextmanager
def _running(zone: MemoryZone, host: str, ttl: int) -> Iterator[tuple[Server, Callable[[], None]]]:
    nsd = find_program("nsd")
    with tempfile.TemporaryDirectory(prefix="mailcheck-nsd-") as folder:
        zones = _write_zones(zone, Path(folder), ttl, 1)
        user, group = _ordinary_user()
        shutil.chown(folder, user, group)
        for attempt in range(ATTEMPTS):
            server = Server(host, _free_port(host))
            configuration = _CONFIGURATION.format(host=host, port=server.port, folder=folder)
            Path(folder, "nsd.conf").write_text(configuration + zones)
            log = Path(folder, f"log.{attempt}")
            process = _start(nsd, Path(folder, "nsd.conf"), log, user, group)
            try:
                if _is_serving(server, process, 1):
                    yield server, _Publishing(zone, Path(folder), ttl, server, process).publish
                    return
            finally:
                process.terminate()
                process.wait(START_DEADLINE)
        pytest.fail(f"NSD does not start: {log.read_text()}")


def write_name_server(
    zone: MemoryZone, folder: Path, host: str, port: int, ttl: int = POSITIVE_TTL, serial: int = 1
) -> Path:
    """Write the files for NSD to serve a zone on an address; return its configuration.

    The names below the root are in ``0.zone``, to which records may be added before the start.
    """
    zones = _write_zones(zone, folder, ttl, serial)
    configuration = folder / "nsd.conf"
    configuration.write_text(_CONFIGURATION.format(host=host, port=port, folder=folder) + zones)
    return configuration


@dataclass
class _Publishing:
    """A name server that can load changes of its zone."""

    zone: MemoryZone
    folder: Path
    ttl: int
    server: Server
    process: "subprocess.Popen[bytes]"
    serial: int = 1

    def publish(self) -> None:
        """Write the zone again, and wait until the server has loaded it."""
        self.serial += 1
        _write_zones(self.zone, self.folder, self.ttl, self.serial)
        self.process.send_signal(signal.SIGHUP)
        assert _is_serving(self.server, self.process, self.serial)


def _ordinary_user() -> tuple[int, int]:
    if os.getuid() != 0:
        return os.getuid(), os.getgid()
    nobody = pwd.getpwnam("nobody")
    return nobody.pw_uid, nobody.pw_gid


def has_address(host: str) -> bool:
    """Return whether servers can listen on an address here (``::1`` may be disabled)."""
    try:
        _free_port(host)
    except OSError:
        return False
    return True


def _free_port(host: str) -> int:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    stream = socket.socket(family, socket.SOCK_STREAM)
    datagrams = socket.socket(family, socket.SOCK_DGRAM)
    with stream, datagrams:
        stream.bind((host, 0))
        port: int = stream.getsockname()[1]
        datagrams.bind((host, port))
        return port


def _start(
    nsd: str, configuration: Path, log: Path, user: int, group: int
) -> subprocess.Popen[bytes]:
    command = [nsd, "-d", "-c", str(configuration)]
    with log.open("wb") as output:
        if os.getuid() == user:
            return subprocess.Popen(command, stdout=output, stderr=output)
        return subprocess.Popen(
            command, stdout=output, stderr=output, user=user, group=group, extra_groups=[]
        )


def _is_serving(server: Server, process: subprocess.Popen[bytes], serial: int) -> bool:
    """Wait for an answer with this serial; return false if the process ends before."""
    deadline = time.monotonic() + START_DEADLINE
    query = dns.message.make_query(".", "SOA")
    while process.poll() is None and time.monotonic() < deadline:
        try:
            answer = dns.query.tcp(query, server.host, 1.0, server.port)
            if any(rdata.serial == serial for rrset in answer.answer for rdata in rrset):
                return True
        except (OSError, EOFError, dns.exception.DNSException):
            pass
        time.sleep(0.02)
    return False


def _write_zones(zone: MemoryZone, folder: Path, ttl: int, serial: int) -> str:
    """Write a file for each zone (the root, and names with SOA or NS); return their stanzas."""
    records = list(zone.records())
    apexes = {owner for owner, rdtype, _ in records if rdtype in ("SOA", "NS")} | {dns.name.root}
    lines: dict[Name, list[str]] = {apex: [] for apex in apexes}
    for owner, rdtype, record in records:
        line = f"{owner} {ttl} IN {rdtype} {record.to_text()}"
        lines[_apex_of(owner, apexes)].append(line)
    for apex in apexes:
        types = {rdtype for owner, rdtype, _ in records if owner == apex}
        if "SOA" not in types:
            negative = min(ttl, NEGATIVE_TTL)
            soa = f"ns.invalid. host.invalid. {serial} 1 1 1 {negative}"
            lines[apex].append(f"{apex} IN SOA {soa}")
        if "NS" not in types:
            lines[apex].append(f"{apex} IN NS ns.invalid.")
        if apex != dns.name.root:
            lines[_apex_of(apex.parent(), apexes)].append(f"{apex} IN NS ns.invalid.")
    stanzas = ""
    for number, (apex, content) in enumerate(lines.items()):
        text = "\n".join([f"$TTL {ttl}", *content, ""])
        Path(folder, f"{number}.zone").write_text(text)
        stanzas += _ZONE.format(name=apex, file=f"{number}.zone")
    return stanzas


def _apex_of(owner: Name, apexes: set[Name]) -> Name:
    while owner not in apexes:
        owner = owner.parent()
    return owner
