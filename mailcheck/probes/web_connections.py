"""HTTP connections of one request: dialled by the guard, and bounded."""

from collections.abc import Callable, Coroutine
from typing import Any, cast

from twisted.internet.defer import Deferred
from twisted.internet.endpoints import wrapClientTLS
from twisted.internet.interfaces import (
    IProtocol,
    IProtocolFactory,
    IStreamClientEndpoint,
    ITCPTransport,
)
from twisted.internet.protocol import connectionDone
from twisted.protocols.policies import ProtocolWrapper, WrappingFactory
from twisted.python.failure import Failure
from twisted.web.client import URI
from twisted.web.error import SchemeNotSupported
from twisted.web.iweb import IAgentEndpointFactory
from zope.interface import implementer

from mailcheck.probes.guarded_dialer import GuardedDialer
from mailcheck.probes.trust import TrustRoots

Dialling = Coroutine[Deferred[Any], Any, IProtocol]


@implementer(IAgentEndpointFactory)
class WebConnections:
    """Makes the connections that an `Agent` asks for.

    However a server fills them (headers without end included), each takes in
    at most ``max_octets`` before it is cut off: then ``is_flooded``.
    """

    def __init__(
        self, dialer: GuardedDialer, trust: TrustRoots, *, seconds: float, max_octets: int
    ) -> None:
        self._dialer = dialer
        self._trust = trust
        self._seconds = seconds
        self.max_octets = max_octets
        self.is_flooded = False
        self.open_ones: set[_Connection] = set()

    def endpointForURI(self, uri: URI) -> IStreamClientEndpoint:  # noqa: N802
        """Give the way to the host of a URI; over https the host must prove its name."""
        host = uri.host.decode("ascii")

        async def dial(factory: IProtocolFactory) -> IProtocol:
            bounded = _Factory(factory, self)
            made = await self._dialer.dial(host, uri.port, bounded, seconds=self._seconds)
            return cast(_Connection, made).wrappedProtocol

        endpoint = _DialledEndpoint(dial)
        if uri.scheme == b"http":
            return endpoint
        if uri.scheme != b"https":
            raise SchemeNotSupported(uri.scheme)
        return wrapClientTLS(self._trust.verify_as(host), endpoint)

    def hang_up(self) -> None:
        """Cut off what is still open."""
        for connection in tuple(self.open_ones):
            connection.abort()


@implementer(IStreamClientEndpoint)
class _DialledEndpoint:
    def __init__(self, dial: Callable[[IProtocolFactory], Dialling]) -> None:
        self._dial = dial

    def connect(self, protocolFactory: IProtocolFactory) -> Deferred[IProtocol]:  # noqa: N803
        """Connect, as Twisted asks for it."""
        return Deferred.fromCoroutine(self._dial(protocolFactory))


class _Connection(ProtocolWrapper):
    """Counts what comes in."""

    factory: "_Factory"
    transport: ITCPTransport
    octets = 0

    def connectionMade(self) -> None:
        """Be known as open."""
        self.factory.connections.open_ones.add(self)

    def dataReceived(self, data: bytes) -> None:
        """Pass data on as long as it is not too much."""
        self.octets += len(data)
        if self.octets <= self.factory.connections.max_octets:
            super().dataReceived(data)
        else:
            self.factory.connections.is_flooded = True
            self.abort()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Be known as closed."""
        self.factory.connections.open_ones.discard(self)
        super().connectionLost(reason)

    def abort(self) -> None:
        """Cut off."""
        self.transport.abortConnection()


class _Factory(WrappingFactory[_Connection]):
    protocol = _Connection
    noisy = False

    def __init__(self, wrapped: IProtocolFactory, connections: WebConnections) -> None:
        super().__init__(wrapped)
        self.connections = connections
