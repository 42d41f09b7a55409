r"""Hosts whose connections a test answers, on a clock that the test advances.

hosts = ScriptedHosts()
dialer = dialer_to(hosts, zone)
... dialer.dial("mx.example", 25, factory, seconds=5)
hosts.dialled            # every (address, port) that a packet was sent to, in order
hosts.accept().send(b"220 ready\r\n")
"""

from typing import Any, cast

from twisted.internet import error
from twisted.internet.address import IPv4Address as StreamAddress
from twisted.internet.defer import Deferred
from twisted.internet.testing import MemoryReactorClock, StringTransport
from twisted.python.failure import Failure
from zope.interface import implementer

from mailcheck.checks.dns_answers import DnsStatus
from mailcheck.core.network_addresses import IpAddress
from mailcheck.probes.guarded_dialer import GuardedDialer, ProbeReactor
from tests.fakes.memory_zone import MemoryZone


def no_own_address(_: IpAddress) -> bool:
    """Return that an address belongs to another host."""
    return False


def collect(result: Deferred[Any]) -> list[Any]:
    """Return a list that will contain the result, or the failure."""
    results: list[Any] = []
    result.addBoth(results.append)
    return results


class Transport(StringTransport):
    """A connection; ``aborted`` when the client has aborted it."""

    def __init__(self, address: str, port: int) -> None:
        super().__init__(peerAddress=StreamAddress("TCP", address, port))
        self.aborted = False

    def abortConnection(self) -> None:
        """Abort the connection."""
        self.aborted = True
        super().abortConnection()


class AcceptedConnection:
    """The server's end of a connection that the test has accepted."""

    def __init__(self, protocol: Any, transport: Transport) -> None:
        self.protocol = protocol
        self.transport = transport

    def send(self, data: bytes) -> None:
        """Send data to the client."""
        self.protocol.dataReceived(data)

    def hang_up(self, reason: Exception | None = None) -> None:
        """Close the connection."""
        self.protocol.connectionLost(Failure(reason or error.ConnectionDone()))

    def take(self) -> bytes:
        """Return the data that the client has sent since the last call."""
        said = cast(bytes, self.transport.value())
        self.transport.clear()
        return said


@implementer(ProbeReactor)
class ScriptedHosts(MemoryReactorClock):
    """A reactor whose connections end in the test."""

    @property
    def dialled(self) -> list[tuple[str, int]]:
        """Every address and port of a connection attempt, in order."""
        return [(attempt[0], attempt[1]) for attempt in self.tcpClients]

    @property
    def dialled_hosts(self) -> list[str]:
        """The addresses alone."""
        return [host for host, _ in self.dialled]

    def accept(self, index: int = -1) -> AcceptedConnection:
        """Accept a connection, by default the newest."""
        host, port, factory, _, _ = self.tcpClients[index]
        protocol = factory.buildProtocol(cast(Any, None))
        transport = Transport(host, port)
        cast(Any, protocol).makeConnection(transport)
        return AcceptedConnection(protocol, transport)

    def refuse(self, index: int = -1, reason: Exception | None = None) -> None:
        """Refuse a connection, by default the newest."""
        self.tcpClients[index][2].clientConnectionFailed(
            cast(Any, self.connectors[index]), Failure(reason or error.ConnectionRefusedError())
        )

    def is_given_up(self, index: int) -> bool:
        """Return whether the client has abandoned a connection."""
        return bool(cast(Any, self.connectors[index]).stoppedConnecting)


WEB = {
    "web.example": {"A": ["8.8.8.8"]},
    "other.example": {"A": ["8.8.4.4"]},
    "inside.example": {"A": ["10.0.0.1"]},
}


class ScriptedWeb:
    """Web servers that the test scripts, and the dialer of their clients."""

    def __init__(self) -> None:
        self.hosts = ScriptedHosts()
        self.zone = MemoryZone(WEB, failing={"silent.example": DnsStatus.TIMEOUT})
        self.dialer = dialer_to(self.hosts, self.zone)
        self.results: list[Any] = []


def dialer_to(hosts: ScriptedHosts, zone: MemoryZone) -> GuardedDialer:
    """Return a dialer without own addresses, which dials public ones only."""
    return GuardedDialer(hosts, zone, is_own_address=no_own_address, allow_private=False)
