"""Names, redirects and hosts that try to lead probes inside, to delay them, or to fill memory."""

import gzip
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.internet.protocol import Factory, Protocol

from mailcheck.checks.dns_answers import DnsAnswer, DnsQuestion
from mailcheck.checks.hosts.starttls import ProbeOutcome
from mailcheck.cluster.local import LocalMemory, LocalRateCounters
from mailcheck.core.network_addresses import IpAddress
from mailcheck.daemon.wall_clock import time_of_day
from mailcheck.probes.fetching import HEADER_ALLOWANCE, FetchRequest, GuardedFetcher
from mailcheck.probes.guarded_dialer import (
    AddressRefused,
    FetchFailed,
    FetchProblem,
    GuardedDialer,
    HostNotFound,
)
from mailcheck.probes.mail_host_prober import MailHostProber, OutboundPortCheck, ProbeSettings
from mailcheck.probes.trust import TrustRoots, find_trust_roots
from tests.fakes.memory_zone import MemoryZone
from tests.probes.scripted_hosts import (
    AcceptedConnection,
    ScriptedHosts,
    collect,
    no_own_address,
)
from tests.servers.certificates import Authority
from tests.table import rows

pytestmark = pytest.mark.attack

FORBIDDEN = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "::/128",
    "::1/128",
    "64:ff9b:1::/48",
    "100::/64",
    "2001:2::/48",
    "2001:db8::/32",
    "fc00::/7",
    "fe80::/10",
    "fec0::/10",
    "ff00::/8",
]
"""Forbidden ranges, written independently of the program's own table."""

INSIDE_V4 = st.sampled_from([n for n in map(ip_network, FORBIDDEN) if n.version == 4]).flatmap(
    lambda network: st.ip_addresses(v=4, network=network)
)
INSIDE_V6 = st.sampled_from([n for n in map(ip_network, FORBIDDEN) if n.version == 6]).flatmap(
    lambda network: st.ip_addresses(v=6, network=network)
)

TRANSITION_FORMS: list[Callable[[int], int]] = [
    lambda inner: 0xFFFF << 32 | inner,  # IPv4-mapped
    lambda inner: inner,  # IPv4-compatible
    lambda inner: 0x64FF9B << 96 | inner,  # NAT64
    lambda inner: 0x64FF9B0001 << 80 | inner,  # NAT64 with a local-use prefix
    lambda inner: 0x2002 << 112 | inner << 80 | 0x1,  # 6to4
    lambda inner: 0x20010000 << 96 | 0x08080808 << 64 | inner ^ 0xFFFFFFFF,  # Teredo
    lambda inner: 0x260647000000 << 80 | 0x5EFE << 32 | inner,  # ISATAP
    lambda inner: 0x260647000000 << 80 | 0x02005EFE << 32 | inner,  # ISATAP, unique
    lambda inner: 0xFE80 << 112 | 0x5EFE << 32 | 0x08080808 + 0 * inner,  # ISATAP, link-local
]


@pytest.fixture(scope="module")
def trust(tmp_path_factory: pytest.TempPathFactory) -> TrustRoots:
    """The certificate authority of the tests."""
    return find_trust_roots(Authority().write_to(tmp_path_factory.mktemp("trust") / "ca.pem"))


NOBODY = TrustRoots(())


class Lure:
    """All probes, and hosts that count the packets they get."""

    def __init__(self, zone: Any, trust: TrustRoots = NOBODY) -> None:
        self.hosts = ScriptedHosts()
        self.zone = zone
        self.dialer = GuardedDialer(
            self.hosts, zone, is_own_address=no_own_address, allow_private=False
        )
        self.fetcher = GuardedFetcher(self.hosts, self.dialer, trust)
        outbound = OutboundPortCheck(self.dialer, self.hosts, 25, ())
        settings, memory = ProbeSettings("check.example"), LocalMemory(self.hosts)
        self.prober = MailHostProber(
            self.hosts,
            self.dialer,
            trust,
            outbound,
            settings,
            memory,
            LocalRateCounters(),
            time_of_day,
        )

    def dial(self, host: str) -> list[Any]:
        """Dial a host, and return a list that will contain the result."""
        dialling = self.dialer.dial(host, 443, Factory.forProtocol(Protocol), seconds=5.0)
        return collect(Deferred.fromCoroutine(dialling))

    def fetch(self, url: str, redirects: int = 3) -> list[Any]:
        """Fetch at most 1,000 octets, and return a list that will contain the result."""
        request = FetchRequest(url, "text/plain", 1_000, max_redirects=redirects)
        return collect(self.fetcher.fetch(request))


def problem(results: list[Any]) -> FetchProblem | None:
    """Return the problem of a fetch, or ``None`` while it is pending."""
    if not results:
        return None
    assert isinstance(results[0].value, FetchFailed), results
    return results[0].value.problem


# Forbidden addresses


def assert_untouched(address: IpAddress) -> None:
    """Check that an address is neither dialled by name or directly, nor probed."""
    rdtype = "A" if isinstance(address, IPv4Address) else "AAAA"
    lure = Lure(MemoryZone({"evil.example": {rdtype: [str(address)]}}))
    for host in ("evil.example", str(address)):
        assert lure.dial(host)[0].type is AddressRefused
    assert problem(lure.fetch("http://evil.example/")) is FetchProblem.NO_HOST
    (probe,) = collect(lure.prober.probe("evil.example"))
    assert probe.outcome is ProbeOutcome.NOT_PROBED
    assert lure.hosts.dialled == []


@given(INSIDE_V4 | INSIDE_V6)
def test_probes_never_touch_a_forbidden_range(address: IpAddress) -> None:
    """No address of any special-purpose range gets a packet."""
    assert_untouched(address)


@given(INSIDE_V4, st.sampled_from(TRANSITION_FORMS))
def test_probes_see_through_transition_forms(
    inner: IPv4Address, wrap: Callable[[int], int]
) -> None:
    """A forbidden IPv4 address stays forbidden in each IPv6 form that contains it."""
    assert_untouched(IPv6Address(wrap(int(inner))))


@given(st.lists(INSIDE_V4, min_size=1, max_size=12), st.integers(0, 12))
def test_probes_pick_the_public_ones(inside: list[IPv4Address], position: int) -> None:
    """Among forbidden addresses only the public one gets packets, at any position."""
    addresses = [str(address) for address in inside]
    addresses.insert(position, "8.8.8.8")
    lure = Lure(MemoryZone({"mixed.example": {"A": addresses, "AAAA": ["::1", "fe80::1"]}}))
    lure.dial("mixed.example")
    lure.hosts.pump([0.25] * 30)
    assert lure.hosts.dialled_hosts == ["8.8.8.8"]


@rows(
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0177.0.0.1",
    "127.1",
    "127.0.0.1.",
    "0",
    "[::1]",
    "::ffff:127.0.0.1",
    "fe80::1%lo",
    "8.8.8.8%lo",
    "2606:4700::1%lo",
    "localhost",
    "LOCALHOST.",
    "ip6-localhost",
    "①②⑦.⓪.⓪.①",
    "127。0。0。1",
    "8.8.8.8\x00.evil.example",
    "evil.example\r\nHost: inside",
)
def test_probes_read_no_strange_spellings(host: str) -> None:
    """Text that only some programs parse as an address is a name that does not exist."""
    lure = Lure(MemoryZone({"evil.example": {"A": ["8.8.8.8"]}}))
    assert lure.dial(host)[0].type in (AddressRefused, HostNotFound)
    assert lure.hosts.dialled == []


class RebindingZone(MemoryZone):
    """Returns a public address first, and inner addresses afterwards."""

    def lookup(self, question: DnsQuestion) -> Deferred[DnsAnswer]:
        """Return the next answer."""
        answer = super().lookup(question)
        if question.rdtype == "A":
            self.publish(question.name, "A", "127.0.0.1")
        return answer


def test_probes_are_not_rebound() -> None:
    """The checked address is dialled, not the address that the name has a moment later."""
    lure = Lure(RebindingZone({"evil.example": {"A": ["8.8.8.8"]}}))
    results = lure.fetch("http://evil.example/")
    assert lure.hosts.dialled == [("8.8.8.8", 80)]
    assert lure.zone.asked_pairs.count(("evil.example", "A")) == 1
    lure.hosts.accept().send(b"HTTP/1.1 302 X\r\nLocation: /again\r\n\r\n")
    assert problem(results) is FetchProblem.NO_HOST
    assert len(lure.hosts.dialled) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@rows(
    "http://127.0.0.1/",
    "http://127.0.0.1:25/",
    "http://169.254.169.254/latest/meta-data/",
    "http://[::1]/",
    "http://[::ffff:10.0.0.1]/",
    "http://2130706433/",
    "http://0x7f.1/",
    "http://inside.example/",
    "http://INSIDE.example./",
    "//inside.example/",
    "http://evil.example@127.0.0.1/",
    "http://evil.example:80@127.0.0.1/",
    "http://127.0.0.1\\@evil.example/",
    "http://evil.example#@127.0.0.1/",
    "http:127.0.0.1",
    "gopher://127.0.0.1:25/_HELO",
    "file:///etc/passwd",
    "\thttp://127.0.0.1/",
    "http://127.0.0.1/\x00",
    "http://127。0。0。1/",
)
def test_probes_follow_no_redirect_inside(status: int, location: str) -> None:
    """A redirect is dialled like any other host: no inner address gets a packet."""
    zone = {"evil.example": {"A": ["8.8.8.8"]}, "inside.example": {"A": ["192.168.0.1"]}}
    lure = Lure(MemoryZone(zone))
    results = lure.fetch("http://evil.example/", redirects=1)
    connection = lure.hosts.accept()
    head = f"HTTP/1.1 {status} X\r\nLocation: {location}\r\n\r\n"
    connection.send(head.encode())
    assert set(lure.hosts.dialled_hosts) == {"8.8.8.8"}
    if results:
        assert problem(results) in (FetchProblem.NO_HOST, FetchProblem.BAD_REDIRECT)
    else:  # the redirect names a public host
        lure.hosts.advance(10)


# Delays and endless responses


class Web:
    """A fetch from a malicious server."""

    def __init__(self) -> None:
        self.lure = Lure(MemoryZone({"evil.example": {"A": ["8.8.8.8"]}}))
        self.results = self.lure.fetch("http://evil.example/")
        self.connection: AcceptedConnection = self.lure.hosts.accept()
        self.octets = 0

    def pour(self, head: bytes, piece: bytes, pieces: int) -> None:
        """Send ``pieces`` pieces, or fewer if the connection is closed."""
        for data in (head, *[piece] * pieces):
            if self.connection.transport.aborted:
                break
            self.octets += len(data)
            self.connection.send(data)
        else:
            pytest.fail("the whole response was read")
        self.connection.hang_up()

    @property
    def problem(self) -> FetchProblem | None:
        """Return the problem of the fetch."""
        return problem(self.results)


OK = b"HTTP/1.1 200 OK\r\n"


@rows(
    (OK + b"\r\n", b"x" * 65_536),
    (OK + b"Content-Length: 99999999999\r\n\r\n", b"x" * 65_536),
    (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + b"x" * 65_536 + b"\r\n"),
    (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 1_000),
    (OK, b"X-Header: " + b"x" * 1_000 + b"\r\n"),
    (OK, b"X: y\r\n" * 1_000),
    (OK, b"x" * 10_000),
    (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
    (b"HTTP/1.1 404 X\r\n", b"X: y\r\n" * 1_000),
)
def test_probes_are_not_filled_up(head: bytes, piece: bytes) -> None:
    """A response with any endless part is cut off after about 64 KiB."""
    web = Web()
    web.pour(head, piece, 1_000)
    assert web.octets <= HEADER_ALLOWANCE + 2 * 65_550
    assert web.problem is FetchProblem.TOO_LARGE
    assert web.lure.hosts.getDelayedCalls() == []


@rows(b"gzip", b"deflate", b"br", b"gzip, gzip", b"identity, gzip")
def test_probes_unpack_nothing(encoding: bytes) -> None:
    """A small body that would unpack to a gigabyte is not unpacked."""
    bomb = gzip.compress(bytes(10_000_000))[:900]
    web = Web()
    web.connection.send(
        OK + b"Content-Encoding: %s\r\nContent-Length: %d\r\n\r\n" % (encoding, len(bomb)) + bomb
    )
    assert web.problem is FetchProblem.NO_HTTP
    assert web.connection.transport.aborted


@rows(b"", OK, OK + b"Content-Length: 900\r\n\r\n")
def test_probes_are_not_held_up_by_a_slow_web_server(said: bytes) -> None:
    """A server that sends an octet a second cannot exceed the deadline."""
    web = Web()
    web.connection.send(said)
    for _ in range(8):
        web.lure.hosts.advance(1)
        web.connection.send(b"H")
        assert not web.results
    web.lure.hosts.advance(1.1)
    assert web.problem is FetchProblem.SILENT
    assert web.connection.transport.aborted
    assert web.lure.hosts.getDelayedCalls() == []


def test_probes_share_one_deadline_over_redirects() -> None:
    """Slow redirects share one deadline."""
    web = Web()
    connection = web.connection
    for _ in range(3):
        web.lure.hosts.advance(2.9)
        assert not web.results
        connection.send(b"HTTP/1.1 302 X\r\nLocation: /\r\n\r\n")
        connection = web.lure.hosts.accept()
    web.lure.hosts.advance(0.4)
    assert web.problem is FetchProblem.SILENT
    assert connection.transport.aborted


@rows(b"2", b"220-wait\r\n", b"220 mx.evil.example\r\n", b"250-wait\r\n", b"\0")
def test_probes_are_not_held_up_by_a_slow_mail_host(trust: TrustRoots, drip: bytes) -> None:
    """A probe of a mail host that sends its replies slowly ends at the deadline or before."""
    lure = Lure(MemoryZone({"mx.evil.example": {"A": ["8.8.8.8"]}}), trust)
    results = collect(lure.prober.probe("mx.evil.example"))
    connection = lure.hosts.accept()
    said = b""
    for _ in range(9):
        assert not results or connection.transport.aborted
        connection.send(drip)
        said += connection.take()
        lure.hosts.advance(1)
    lure.hosts.advance(0.1)
    assert [probe.outcome for probe in results] == [ProbeOutcome.NO_SMTP]
    assert connection.transport.aborted
    assert said in (b"", b"EHLO check.example\r\n")
    connection.hang_up()
    assert lure.hosts.getDelayedCalls() == []


def test_probes_repeat_nothing_that_a_host_says(trust: TrustRoots) -> None:
    """The result of a probe contains no banner and no system error of the host."""
    for reply in (b"220 secret\r\n", b"554 secret\r\n", b"SSH-2.0-secret\r\n"):
        lure = Lure(MemoryZone({"mx.evil.example": {"A": ["8.8.8.8"]}}), trust)
        results = collect(lure.prober.probe("mx.evil.example"))
        connection = lure.hosts.accept()
        connection.send(reply)
        connection.hang_up()
        assert "secret" not in repr(results)
        assert "8.8.8.8" not in repr(results)


def test_probes_of_a_flood_of_names_reach_a_victim_seldom(trust: TrustRoots) -> None:
    """A wildcard that leads a thousand names to one mail host does not cause a thousand probes."""
    lure = Lure(MemoryZone({"*.evil.example": {"A": ["8.8.8.8"]}}), trust)
    for number in range(1_000):
        probe = lure.prober.probe(f"n{number}.evil.example")
        probe.addErrback(lambda _: None)
        if len(lure.hosts.tcpClients) > number:
            lure.hosts.refuse()
    assert len(lure.hosts.dialled) == 30
    lure.prober.stop()
