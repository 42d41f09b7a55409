"""The resolver over real sockets, with a name server in the same process."""

import os
import socket
from typing import Any, cast

from twisted.internet.defer import gatherResults, maybeDeferred
from twisted.internet.protocol import DatagramProtocol

from mailcheck.checks.dns_answers import DnsQuestion, DnsStatus
from mailcheck.dns.exchange import MAX_WAITING, OCTETS_PER_TURN, DnsReactor, Exchange
from mailcheck.dns.resolution import ResolverSettings
from mailcheck.dns.resolver import StubResolver
from mailcheck.dns.servers import Server
from mailcheck.dns.wire_format import pack_question
from tests.fakes.memory_zone import MemoryZone
from tests.servers.name_server import has_address, running_name_server
from tests.table import rows

PATIENT = ResolverSettings(try_timeouts=(60.0,), deadline=60.0, burst_age=60.0)
"""A busy machine neither repeats a question nor lets the buffer of the server overflow."""

HOSTS = [host for host in ("127.0.0.1", "::1") if has_address(host)]


class Denier(DatagramProtocol):
    """Replies NXDOMAIN to every question, and counts them by source port."""

    noisy = False

    def __init__(self) -> None:
        self.ports: list[int] = []
        self.idents: set[bytes] = set()

    def datagramReceived(self, datagram: bytes, addr: Any) -> None:
        """Repeat header and question."""
        assert self.transport is not None
        self.ports.append(addr[1])
        self.idents.add(datagram[:2])
        end = datagram.index(b"\0", 12) + 5
        self.transport.write(datagram[:2] + b"\x81\x83\0\1" + bytes(6) + datagram[12:end], addr)


@rows(*HOSTS)
async def test_loopback_large(host: str) -> None:
    """A large answer comes over TCP from a real name server, over IPv4 and IPv6."""
    from twisted.internet import reactor

    texts = [f"{number:02d}" + "x" * 200 for number in range(50)]
    with running_name_server(MemoryZone({"a.example": {"TXT": texts}}), host) as server:
        stub = StubResolver(cast(DnsReactor, reactor), [server], PATIENT, os.urandom)
        answer = await stub.lookup(DnsQuestion("a.example", "TXT"))
        await stub.close()
    assert sorted(record.to_text() for record in answer.records) == [f'"{text}"' for text in texts]


@rows(*HOSTS)
async def test_loopback_burst(host: str) -> None:
    """50 checks of 32 questions at once lose no answer, and no question is repeated."""
    from twisted.internet import reactor

    network = cast(DnsReactor, reactor)
    denier = Denier()
    port = network.listenUDP(0, denier, host, 4096)
    stub = StubResolver(
        network, [Server(host, cast(Any, port.getHost()).port)], PATIENT, os.urandom
    )
    questions = [DnsQuestion(f"z{zone}.c{check}", "A") for check in range(50) for zone in range(32)]
    try:
        answers = await gatherResults([stub.lookup(question) for question in questions])
    finally:
        await stub.close()
        await maybeDeferred(port.stopListening)
    assert [answer.question for answer in answers] == questions
    assert {answer.status for answer in answers} == {DnsStatus.NXDOMAIN}
    assert len(denier.ports) == len(questions)


async def test_loopback_ports_and_ids_differ() -> None:
    """Ports and ids are random: they differ between resolvers, and ids are not sequential."""
    from twisted.internet import reactor

    network = cast(DnsReactor, reactor)
    denier = Denier()
    port = network.listenUDP(0, denier, "127.0.0.1", 4096)
    server = Server("127.0.0.1", cast(Any, port.getHost()).port)
    for _ in range(10):
        stub = StubResolver(network, [server], PATIENT, os.urandom)
        for number in range(10):
            await stub.lookup(DnsQuestion(f"h{number}.example", "A"))
        await stub.close()
    await maybeDeferred(port.stopListening)
    assert len(set(denier.ports)) >= 8
    assert len(denier.idents) >= 95


class UnreadSockets:
    """A reactor whose new sockets are read by the test."""

    def __init__(self, reactor: Any) -> None:
        self._reactor = reactor
        self.opened: list[Any] = []

    def seconds(self) -> float:
        """Return the reactor's time."""
        return cast(float, self._reactor.seconds())

    def listenUDP(self, *given: Any) -> Any:
        """Open a socket that the reactor does not watch."""
        port = self._reactor.listenUDP(*given)
        port.stopReading()
        self.opened.append(port)
        return port


class Heard:
    """A handler that counts its replies."""

    def __init__(self) -> None:
        self.replies = 0

    def reply_received(self, _: bytes) -> None:
        """Count a reply."""
        self.replies += 1

    def server_unreachable(self) -> None:
        """Ignore the error."""


async def test_replies_are_read_in_small_numbers() -> None:
    """Each iteration of the reactor reads few of the replies that wait at a socket.

    Each reply may be truncated and need a TCP connection; other work runs in between.
    """
    from twisted.internet import reactor

    network, reply_received = UnreadSockets(reactor), Heard()
    exchange = Exchange(cast(DnsReactor, network), os.urandom)
    question = pack_question(DnsQuestion("a.name.of.usual.length.example", "A"))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        for _ in range(MAX_WAITING):
            exchange.ask(Server(*server.getsockname()), question, True, reply_received)
            query, client = server.recvfrom(4096)
            reply = query[:2] + b"\x83\x80\0\1" + bytes(6) + question
            server.sendto(reply, client)
    taken = []
    while reply_received.replies < MAX_WAITING:
        before = reply_received.replies
        network.opened[0].doRead()
        taken.append(reply_received.replies - before)
    await exchange.close()
    assert len(network.opened) == 1
    assert max(taken) <= OCTETS_PER_TURN // len(reply) + 1 <= 12
