"""The HTTP server: dispatch to the applications, the limits of connections, and its metrics.

The REST API is served below its versioned path, next to the MCP endpoint and the dashboard.
"""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from ipaddress import IPv4Network, IPv6Network
from typing import Any, cast

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import (
    IAddress,
    IListeningPort,
    IProtocol,
    IProtocolFactory,
    IReactorTime,
    IStreamServerEndpoint,
)
from twisted.internet.protocol import Protocol
from twisted.logger import Logger
from twisted.protocols.haproxy import proxyEndpoint
from twisted.web.http import Request as HttpRequest
from twisted.web.resource import IResource, Resource
from twisted.web.server import Request, Site
from zope.interface import implementer

from mailcheck.api.urls import API_PATH, MCP_PATH
from mailcheck.core.memory.client_limits import ConnectionLimits
from mailcheck.core.memory.instruments import SECONDS, Distribution, Labels, Tally
from mailcheck.core.network_addresses import parse_ip_address
from mailcheck.ports.journals import WebJournal
from mailcheck.web.site.connections import (
    IDLE_TIMEOUT,
    Connections,
    RejectedConnection,
    WebConnection,
)
from mailcheck.web.site.failures import SERVER_ERRORS
from mailcheck.web.site.requests import LOCAL_PEER, BodyLimits, ClientAddresses, PacedRequest
from mailcheck.web.site.response_buffers import ResponseBuffers

NO_ROUTE = "none"
"""The name in metrics of all requests that no route answers."""

PUBLIC_SEGMENTS = (b"healthz", b"readyz", b"clients", b"docs", b"tls-reports")
"""First path segments of the pages that need no API key."""

WARNING_INTERVAL = 60
"""Minimum number of seconds between equal warnings in the log."""


class Root(Resource):
    """Passes requests to the doors that are always open, the MCP endpoint, or doors opened late.

    :param ready: the application of the API and the public pages.
    :param late: the applications of other APIs and of OAuth, by the first segment of a path.
    """

    def __init__(
        self,
        ready: IResource,
        mcp: IResource,
        late: Mapping[str, IResource],
        dashboard: IResource,
    ) -> None:
        super().__init__()
        self._ready = ready
        self._late = {name.encode(): other for name, other in late.items()}
        self._mcp = mcp
        self._dashboard = dashboard
        self._api_segments = [segment.encode() for segment in API_PATH.strip("/").split("/")]
        name = MCP_PATH.strip("/").encode()
        self._mcp_segments = ([name], [name, b""])

    def getChild(self, path: bytes, request: Request) -> IResource:
        """Return the resource for a path. ``path`` is its first segment."""
        segments = [path, *(request.postpath or [])]
        depth = len(self._api_segments)
        if segments[:depth] == self._api_segments:
            return self._ready
        if segments in self._mcp_segments:
            return self._mcp
        if segments[0] in self._late:
            return self._late[segments[0]]
        return self._ready if segments[0] in PUBLIC_SEGMENTS else self._dashboard


class BoundedSite(Site):
    """The site, with limits of connections and flow control of responses.

    It has no access log, which would contain share tokens.
    """

    noisy = False
    displayTracebacks = False  # noqa: N815
    _log = Logger()

    def __init__(
        self,
        root: IResource,
        limits: ConnectionLimits,
        addresses: ClientAddresses,
        clock: IReactorTime,
        journal: WebJournal,
        bodies: BodyLimits,
        buffers: ResponseBuffers,
    ) -> None:
        self._journal = journal
        self.response_buffers = buffers
        self.addresses = addresses
        self.connections = Connections(limits, addresses.is_shared, clock)
        super().__init__(
            root,
            requestFactory=partial(PacedRequest, self.response_buffers, bodies, addresses),
            # Handlers parse forms. Twisted itself would respond to an invalid form.
            parsePOSTFormSubmission=False,
            timeout=IDLE_TIMEOUT,
            reactor=clock,
        )
        self._clock = clock
        self.answers = Tally()
        self.seconds: dict[Labels, Distribution] = {}
        self._rejected: dict[RejectedConnection, None] = {}
        self._warned_at = -math.inf

    def protocol(self) -> Any:
        """Create an HTTP/1.1 connection. Twisted's HTTP/2 lacks these limits."""
        return WebConnection(self.connections)

    def buildProtocol(self, addr: IAddress | None) -> Any:
        """Create a connection, or a protocol that rejects the client."""
        connection = super().buildProtocol(addr)
        if not self.connections.admit(connection, getattr(addr, "host", None) or LOCAL_PEER):
            connection = self._reject_connection(connection)
        self.connections.open.add(connection)
        return connection

    @property
    def is_crowded(self) -> bool:
        """Whether the next connection cannot even be rejected."""
        return self.connections.is_crowded

    def acceptableProtocols(self) -> list[bytes]:  # noqa: N802
        """Return the supported protocols for TLS endpoints."""
        return [b"http/1.1"]

    def log(self, request: HttpRequest) -> None:
        """Count the response and its time. Log it if it is an internal error.

        Requests without a route share a name, so that strangers cannot make metrics.
        """
        route = getattr(request, "route_name", "") or NO_ROUTE
        self.answers.add(route, str(request.code))
        if isinstance(request.channel, WebConnection):
            taken = self.seconds.setdefault((route,), Distribution(SECONDS))
            taken.observe(self._clock.seconds() - request.channel.began)
        if request.code in SERVER_ERRORS and isinstance(request, PacedRequest):
            self._journal.note_fault(request.fault())

    def _reject_connection(self, ordinary: Protocol) -> Protocol:
        now = self._clock.seconds()
        if now - self._warned_at >= WARNING_INTERVAL:
            self._warned_at, count = now, len(self.connections)
            self._log.warn("HTTP connections are rejected: {count} are open", count=count)
        if len(self._rejected) >= self.connections.limits.surplus:
            # The oldest has sent nothing yet, or it does not read.
            oldest = next(iter(self._rejected))
            del self._rejected[oldest]
            oldest.transport.abortConnection()
        rejected = RejectedConnection(self._clock, ordinary, self._end_rejected)
        self._rejected[rejected] = None
        return rejected

    def _end_rejected(self, rejected: RejectedConnection) -> None:
        self._rejected.pop(rejected, None)
        self.connections.open.discard(rejected)


@implementer(IProtocolFactory)
class ProxyProtocolFactory:
    """Expects the PROXY protocol from the hosts of some networks, and plain HTTP from others."""

    def __init__(self, factory: BoundedSite, networks: Sequence[IPv4Network | IPv6Network]) -> None:
        self._factory = factory
        self._networks = networks
        # Twisted supports the PROXY protocol only for whole endpoints. This port has both kinds
        # of clients, so the factory that Twisted creates is captured.
        endpoint = _CapturingEndpoint()
        proxyEndpoint(endpoint).listen(factory)
        self._for_proxies = cast(IProtocolFactory, endpoint.factory)

    @property
    def is_crowded(self) -> bool:
        """Whether the next connection cannot even be rejected."""
        return self._factory.is_crowded

    def buildProtocol(self, addr: IAddress) -> IProtocol | None:
        """Create a protocol. The protocol for a proxy reads the PROXY header first."""
        peer = parse_ip_address(getattr(addr, "host", ""))
        is_proxy = peer is not None and any(peer in network for network in self._networks)
        return (self._for_proxies if is_proxy else self._factory).buildProtocol(addr)

    def doStart(self) -> None:
        """Start the wrapped factory."""
        self._factory.doStart()

    def doStop(self) -> None:
        """Stop the wrapped factory."""
        self._factory.doStop()


@implementer(IStreamServerEndpoint)
class _CapturingEndpoint:
    """An endpoint that does not listen, but stores the factory that it receives."""

    factory: Any = None

    def listen(self, factory: Any) -> Deferred[IListeningPort]:
        self.factory = factory
        return succeed(cast(IListeningPort, None))
