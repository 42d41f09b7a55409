"""Scripted name servers: the test chooses each reply, and the clock advances under its control.

    network = ScriptedNetwork()
    stub = StubResolver(network, [SERVER], ResolverSettings(), network.random_bytes)
    answers = collect(stub.lookup(DnsQuestion("example.com", "A")))
    network.queries[0].reply("example.com. 60 IN A 192.0.2.1")

``network.queries`` has all queries except the liveness probes of a resolver. Those are in
``network.probes``, and are answered while the network ``knows_root``. ``network.accept()`` accepts
a TCP connection.
"""

import socket
from collections.abc import Callable
from itertools import count
from typing import Any, cast

import dns.flags
import dns.message
import dns.rcode
import dns.rrset
from twisted.internet.defer import Deferred, succeed
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IProtocol
from twisted.internet.protocol import DatagramProtocol
from twisted.internet.testing import MemoryReactorClock, StringTransport
from zope.interface import implementer

from mailcheck.checks.dns_answers import DnsAnswer
from mailcheck.dns.exchange import DnsReactor
from mailcheck.dns.servers import Server

SERVER = Server("192.0.2.53")
SECOND_SERVER = Server("198.51.100.53")

ROOT_SERVER = ". 60 IN NS a.root-servers.net."


def collect(lookup: Deferred[DnsAnswer]) -> list[Any]:
    """Return a list that will contain the answer or the failure."""
    results: list[Any] = []
    lookup.addBoth(results.append)
    return results


def build_reply(
    query: dns.message.Message,
    records: tuple[str, ...] = (),
    *,
    authority: tuple[str, ...] = (),
    rcode: int = dns.rcode.NOERROR,
    flags: int = 0,
) -> dns.message.Message:
    """Build a reply to a query; records as in a zone file: ``example.com. 60 IN A 192.0.2.1``."""
    reply = dns.message.make_response(query, recursion_available=True)
    reply.set_rcode(dns.rcode.Rcode(rcode))
    reply.flags |= flags
    for section, texts in ((reply.answer, records), (reply.authority, authority)):
        for text in texts:
            owner, ttl, rdclass, rdtype, rdata = text.split(" ", 4)
            section.append(dns.rrset.from_text(owner, int(ttl), rdclass, rdtype, rdata))
    return reply


class Query:
    """A sent query, and the possible replies of the test."""

    def __init__(self, wire: bytes, server: Server, deliver: Callable[[bytes], None]) -> None:
        self.wire = wire
        self.server = server
        self.message = dns.message.from_wire(wire)
        self._deliver = deliver

    @property
    def question(self) -> tuple[str, str]:
        """The name and the type, as text."""
        asked = self.message.question[0]
        return asked.name.to_text(), asked.to_text().split()[-1]

    def send(self, wire: bytes) -> None:
        """Send any bytes from the server."""
        self._deliver(wire)

    def reply(
        self,
        *records: str,
        authority: tuple[str, ...] = (),
        rcode: int = dns.rcode.NOERROR,
        flags: int = 0,
    ) -> None:
        """Send a valid reply; see `build_reply`."""
        reply = build_reply(self.message, records, authority=authority, rcode=rcode, flags=flags)
        self.send(reply.to_wire(max_size=0xFFFF))


class DatagramQuery(Query):
    """A query over UDP."""

    def __init__(self, port: "MemoryPort", wire: bytes, server: Server) -> None:
        super().__init__(wire, server, lambda reply: self.send_from(reply, server))
        self.port = port

    def send_from(self, wire: bytes, sender: tuple[str, int]) -> None:
        """Send a datagram with this sender to the port of the query."""
        self.port.protocol.datagramReceived(wire, (sender[0], sender[1]))

    def refuse(self) -> None:
        """Send an ICMP error: no server listens there."""
        self.port.protocol.connectionRefused()


class StreamQuery(Query):
    """A query over TCP, accepted by the test."""

    def __init__(self, protocol: IProtocol, transport: StringTransport, server: Server) -> None:
        self.protocol = protocol
        self.transport = transport
        length = int.from_bytes(transport.value()[:2], "big")
        super().__init__(transport.value()[2 : 2 + length], server, self._send_framed)

    def _send_framed(self, wire: bytes) -> None:
        self.protocol.dataReceived(len(wire).to_bytes(2, "big") + wire)


class MemoryPort:
    """The transport of a datagram protocol, and its socket."""

    def __init__(self, network: "ScriptedNetwork", number: int, protocol: DatagramProtocol) -> None:
        self.number = number
        self.protocol = protocol
        self.options: dict[int, int] = {}
        self.is_open = True
        self._network = network
        self._server = Server("")

    def getHandle(self) -> "MemoryPort":
        """Return the socket."""
        return self

    def setsockopt(self, level: int, option: int, value: int) -> None:
        """Store a socket option."""
        assert level == socket.SOL_SOCKET
        self.options[option] = value

    def connect(self, host: str, port: int) -> None:
        """Set the server."""
        self._server = Server(host, port)
        if host in self._network.unreachable:
            raise OSError("Network is unreachable")

    def write(self, datagram: bytes) -> None:
        """Send a query to the server."""
        if self._server.host in self._network.unreachable:
            raise OSError("Network is unreachable")
        query = DatagramQuery(self, datagram, self._server)
        if query.question != (".", "NS"):
            self._network.queries.append(query)
            return
        self._network.probes.append(query)
        if self._network.knows_root:
            self._network.callLater(0, query.reply, ROOT_SERVER)

    def stopListening(self) -> Deferred[None]:
        """Close the port."""
        assert self.is_open
        self.is_open = False
        self.protocol.doStop()
        return succeed(None)


@implementer(DnsReactor)
class ScriptedNetwork(MemoryReactorClock):
    """A reactor whose datagrams and connections are handled by the test."""

    def __init__(self) -> None:
        super().__init__()
        self.queries: list[DatagramQuery] = []
        self.probes: list[DatagramQuery] = []
        self.knows_root = True
        self.ports: list[MemoryPort] = []
        self.unreachable: set[str] = set()
        self.has_sockets = True
        self._numbers = count(1)

    def random_bytes(self, length: int) -> bytes:
        """Return a counter, so that ids are known: 0001, 0002, ..."""
        return next(self._numbers).to_bytes(length, "big")

    def listenUDP(
        self,
        port: int,
        protocol: DatagramProtocol,
        interface: str = "",
        max_packet_size: int = 8192,
    ) -> Any:
        """Open a random port."""
        assert port == 0, "source ports must be random"
        if not self.has_sockets:
            raise CannotListenError(interface, port, OSError("Too many open files"))
        opened = MemoryPort(self, 40_000 + len(self.ports), protocol)
        self.ports.append(opened)
        protocol.makeConnection(cast(Any, opened))
        return opened

    def accept(self) -> StreamQuery:
        """Accept the newest connection, and read its query."""
        host, port, factory, _, _ = self.tcpClients[-1]
        protocol = cast(Any, factory.buildProtocol(cast(Any, None)))
        transport = StringTransport()
        protocol.makeConnection(transport)
        return StreamQuery(protocol, transport, Server(host, port))

    @property
    def open_ports(self) -> list[MemoryPort]:
        """The open ports."""
        return [port for port in self.ports if port.is_open]
