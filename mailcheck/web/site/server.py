"""The HTTP server: how many connections there are, what comes over them, and who answers it.

Twisted takes requests apart; here are the bounds, and answers where Twisted has none. The API
lies below its versioned path, beside it the endpoint for agents and the dashboard.
"""

import math
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from ipaddress import IPv4Network, IPv6Network
from typing import Any, cast

from twisted.internet.abstract import FileDescriptor
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import (
    IAddress,
    IDelayedCall,
    IListeningPort,
    IProtocol,
    IProtocolFactory,
    IReactorTime,
    IStreamServerEndpoint,
    ITCPTransport,
)
from twisted.internet.protocol import Protocol, connectionDone
from twisted.logger import Logger
from twisted.protocols.basic import LineReceiver
from twisted.protocols.haproxy import proxyEndpoint
from twisted.protocols.policies import ProtocolWrapper
from twisted.python.failure import Failure
from twisted.web.http import HTTPChannel
from twisted.web.http import Request as HttpRequest
from twisted.web.http_headers import Headers
from twisted.web.resource import IResource, Resource
from twisted.web.server import Request, Site
from zope.interface import implementer

from mailcheck.api.urls import API_PATH, MCP_PATH
from mailcheck.core.client_limits import ConnectionCounts, ConnectionLimits
from mailcheck.core.instruments import Tally
from mailcheck.core.network_addresses import parse_ip_address
from mailcheck.ports.journals import WebJournal
from mailcheck.web.site.errors import (
    BAD_REQUEST,
    RETRY_AFTER_SECONDS,
    SERVER_ERRORS,
    TOO_MANY_CONNECTIONS,
)
from mailcheck.web.site.replies import error_reply, reply_as_bytes
from mailcheck.web.site.requests import LOCAL_PEER, ClientAddresses, PacedRequest, ResponseBuffers
from mailcheck.web.site.twisted_private import OpenHttpChannel

SERVER = b"mailcheck"
"""What we call ourselves; of which version is nobody's business."""

MAX_AHEAD = 1_024
"""Bytes of the next request that are read while one is answered; then the client waits. Some are
read since that is how a client is seen to go away."""

MALFORMED = (
    "this is no request of HTTP/1.1: its first line, a header field or the length of its body "
    f"is malformed, or it has over {HTTPChannel.maxHeaders} header fields or "
    f"{HTTPChannel.totalHeadersSize} bytes of them"
)

IDLE_TIMEOUT = 75
"""Seconds until a connection is closed that sends nothing between requests, or from the first
byte of a request to its last; or whose client reads nothing of its answer. A parked wait is
not idle."""

MAX_UNSENT = 131_072
"""Bytes of an answer that the kernel takes ahead of what the client's side has room for."""


MIN_IDLE = 0.2
"""Seconds for which one that rests makes no room: those who come in a crowd, and find few places,
would end each other before anybody has read what they ask."""


class Connections:
    """Counts connections. When there are too many, the one that rests longest makes room.

    A connection rests while no whole request of it is being answered: between
    two requests, and also while one trickles in. So those who only hold
    connections don't keep out those who use them.

    :param is_exempt: tells of a peer's address whether many clients may be behind it.
    """

    def __init__(
        self, limits: ConnectionLimits, is_exempt: Callable[[str], bool], clock: IReactorTime
    ) -> None:
        self._limits = limits
        self._is_exempt = is_exempt
        self._clock = clock
        self._counts: ConnectionCounts[WebConnection] = ConnectionCounts()
        self._resting: dict[WebConnection, float] = {}

    def __len__(self) -> int:
        """Say how many there are."""
        return len(self._counts)

    def count_of_address(self, host: str) -> int:
        """Say how many there are of one client."""
        return self._counts.of_client(host)

    def admit(self, connection: "WebConnection", host: str) -> bool:
        """Count a connection from an address, or refuse it."""
        if self.count_of_address(host) >= self._limits.of_address and not self._is_exempt(host):
            return False
        if len(self) >= self._limits.in_all and not self._make_room():
            return False
        self._counts.add(connection, host)
        self._resting[connection] = self._clock.seconds()
        return True

    def mark_busy(self, connection: "WebConnection") -> None:
        """Note that a request is being answered."""
        self._resting.pop(connection, None)

    def mark_idle(self, connection: "WebConnection") -> None:
        """Note that the connection waits for its next request."""
        if connection in self._counts:
            self._resting[connection] = self._clock.seconds()

    def remove(self, connection: "WebConnection") -> None:
        """Uncount a connection that has ended."""
        self._resting.pop(connection, None)
        self._counts.remove(connection)

    def _make_room(self) -> bool:
        longest = next(iter(self._resting), None)
        if longest is None or 0 <= self._clock.seconds() - self._resting[longest] < MIN_IDLE:
            return False
        self.remove(longest)
        longest.hang_up()
        return True


class WebConnection(OpenHttpChannel):
    """Twisted's connection with bounds.

    A request that comes in slowly does not put the time-out off, and neither does an
    answer that the client does not read.

    What is no request, or too large a one, is answered at once. The rest of it is read and
    dropped: a connection that is closed over unread bytes is reset, answer and all.
    """

    is_full = False
    _has_begun = False
    _is_answering = False
    _ahead = b""
    _head_problem: str | None = None
    _drops_input = False
    _waits_for_reader = False
    transport: Any

    def __init__(self, connections: Connections) -> None:
        super().__init__()
        self._connections = connections

    def dataReceived(self, data: bytes) -> None:
        """Take bytes; only the first ones of a request give it more time."""
        if self._drops_input:
            return
        if self._is_answering:
            self._ahead += data
            if len(self._ahead) > MAX_AHEAD:
                self.transport.pauseProducing()  # `requestDone` resumes it
            return
        if not self._has_begun:
            self._has_begun = True
            self.resetTimeout()
        LineReceiver.dataReceived(self, data)

    def lineLengthExceeded(self, _: bytes) -> None:  # noqa: N802
        """Refuse a head that has a line without end."""
        self._refuse(MALFORMED)

    def headerReceived(self, line: bytes) -> bool:  # noqa: N802
        """Take a header field; tells whether it is one."""
        try:
            return bool(super().headerReceived(line))
        except ValueError:  # a Content-Length of more digits than Python reads
            self._refuse(MALFORMED)
            return False

    def checkPersistence(self, request: HttpRequest, version: bytes) -> bool:  # noqa: N802
        """Check the head of a request as well: only this method is told the version."""
        self._head_problem = _explain_bad_head(request.requestHeaders, version)
        if self._head_problem is not None:
            request.requestHeaders.removeHeader(b"Expect")  # so that no body is asked for
        return bool(super().checkPersistence(request, version))

    def allHeadersReceived(self) -> None:  # noqa: N802
        """Take the head of a request, now that it is whole; one that says too much ends there."""
        super().allHeadersReceived()
        request = self.requests[-1]
        if self._head_problem is not None:
            self._refuse(self._head_problem)
        elif request.is_too_large:
            self.length = 0  # of what is still awaited
            self._drop_the_rest(request)

    def rawDataReceived(self, data: bytes) -> None:  # noqa: N802
        """Take a piece of a body, or the rest of the packet in which a request ended."""
        super().rawDataReceived(data)
        if self._is_answering or self._drops_input or not self.requests:
            return
        if self.requests[-1].is_too_large:
            self._drop_the_rest(self.requests[-1])
            self.allContentReceived()

    def allContentReceived(self) -> None:  # noqa: N802
        """Work on a request, now that it is whole."""
        self._connections.mark_busy(self)
        self._is_answering = True
        super().allContentReceived()

    def requestDone(self, request: HttpRequest) -> None:  # noqa: N802
        """Rest until the next request; a connection that ends has to come to its end too."""
        self._has_begun = self._waits_for_reader = self._is_answering = False
        self._connections.mark_idle(self)
        ends = not self.persistent
        super().requestDone(request)
        if ends:
            self.start_read_timeout()
        else:
            _send_now(self.transport)
            ahead, self._ahead = self._ahead, b""
            if ahead:
                self.dataReceived(ahead)

    def start_read_timeout(self) -> None:
        """Give the client its time, from now on, to read what it was sent."""
        if not self._waits_for_reader:
            self._waits_for_reader = True
            _keep_kernel_buffer_small(self.transport)
        self.setTimeout(self.factory.timeOut)

    def stop_read_timeout(self) -> None:
        """Take all the time there is to go on with an answer: the client has read what there is."""
        self._waits_for_reader = False
        self.setTimeout(None)

    def timeoutConnection(self) -> None:
        """End a connection on which nothing moves; what its client does not read is dropped."""
        if self._waits_for_reader:
            self.forceAbortClient()
        else:
            super().timeoutConnection()

    def loseConnection(self) -> None:  # noqa: N802
        """End the connection; one whose client may still be sending is closed by that client."""
        is_plain = ITCPTransport.providedBy(self.transport) and not self.isSecure()
        if self._drops_input and is_plain:
            self.transport.unregisterProducer()
            self.transport.loseWriteConnection()
        else:  # TLS waits for the client by itself
            super().loseConnection()

    def writeHeaders(  # noqa: N802
        self, version: bytes, code: bytes, reason: bytes, headers: Headers
    ) -> None:
        """Write the head of an answer."""
        headers.setRawHeaders(b"Server", [SERVER])
        super().writeHeaders(version, code, reason, headers)

    def hang_up(self) -> None:
        """End the connection at once."""
        if self.transport is not None:
            self.transport.abortConnection()

    def pauseProducing(self) -> None:  # noqa: N802
        """Note that the connection is full."""
        self.is_full = True
        super().pauseProducing()

    def resumeProducing(self) -> None:  # noqa: N802
        """Note that the connection is empty."""
        self.is_full = False
        super().resumeProducing()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Make room for another."""
        self._connections.remove(self)
        super().connectionLost(reason)

    def _drop_the_rest(self, request: HttpRequest) -> None:
        """Answer a request as it is, and end."""
        self._stop_reading()
        self.persistent = False
        request.responseHeaders.setRawHeaders(b"Connection", [b"close"])

    def _stop_reading(self) -> None:
        self._drops_input = True
        self.clearLineBuffer()

    def _refuse(self, problem: str) -> None:
        """Answer what is no request, and end."""
        self._stop_reading()
        self.length = None  # so that Twisted does not take it for a whole one
        reply = error_reply(BAD_REQUEST, problem, {"Connection": "close"})
        self.transport.write(reply_as_bytes(reply))
        self.loseConnection()
        self.start_read_timeout()

    def reject_malformed(self) -> None:
        """Refuse a request that Twisted cannot parse."""
        self._refuse(MALFORMED)


def _explain_bad_head(headers: Headers, version: bytes) -> str | None:
    """Say why a head leaves open who is asked, or where the body ends (RFC 9112 3.2, 6.3)."""
    hosts = headers.getRawHeaders(b"Host", ())
    if len(hosts) > 1:
        return "Host is given twice: send it once"
    if not hosts and version == b"HTTP/1.1":
        return "Host is missing: every request of HTTP/1.1 has it"
    codings = headers.getRawHeaders(b"Transfer-Encoding", ())
    if len(codings) > 1 or (codings and headers.hasHeader(b"Content-Length")):
        return "a body has one length: send Content-Length, or one Transfer-Encoding"
    return None


def _send_now(transport: Any) -> None:
    """Hand the kernel what was written: else it waits for all that the reactor is at.

    One that fails is still watched for writing: there the reactor meets the failure itself.
    """
    if isinstance(transport, FileDescriptor) and not transport.disconnecting:
        transport.doWrite()


def _keep_kernel_buffer_small(transport: Any) -> None:
    """Have the kernel tell sooner that a slow client reads on: its own buffer may be megabytes."""
    while isinstance(transport, ProtocolWrapper):  # TLS
        transport = transport.transport
    handle = getattr(transport, "getHandle", lambda: None)()
    if isinstance(handle, socket.socket) and hasattr(socket, "TCP_NOTSENT_LOWAT"):
        with suppress(OSError):  # no TCP
            handle.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, MAX_UNSENT)


MAX_REJECTED_AT_ONCE = 100
"""Clients that are told at a time; more are hung up on."""

REJECT_TIMEOUT = 5
"""Seconds for a client to ask, and to take in the answer."""


class RejectedConnection(Protocol):
    """Answers whatever comes first with 503, and ends.

    Not before: an answer to a request that is still on its way would be lost.
    """

    transport: Any

    def __init__(self, clock: IReactorTime, on_end: Callable[[], None]) -> None:
        self._clock = clock
        self._on_end = on_end
        self._timer: IDelayedCall | None = None

    def connectionMade(self) -> None:
        """Wait for the request."""
        self._timer = self._clock.callLater(REJECT_TIMEOUT, self.transport.abortConnection)

    def dataReceived(self, data: bytes) -> None:
        """Answer the beginning of a request; what follows is not read."""
        if not self.transport.disconnecting:
            self.transport.write(_answer())
            self.transport.loseConnection()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Make place for the next."""
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        self._on_end()


class AbortedConnection(Protocol):
    """Ends at once; where Twisted is given no protocol, a TLS connection would stay open."""

    transport: Any

    def connectionMade(self) -> None:
        """Hang up."""
        self.transport.abortConnection()


def _answer() -> bytes:
    reply = error_reply(
        TOO_MANY_CONNECTIONS,
        "there are too many connections: use one for many requests, or try again in a moment",
        {"Retry-After": str(RETRY_AFTER_SECONDS), "Connection": "close"},
    )
    return reply_as_bytes(reply)


PUBLIC_SEGMENTS = (b"healthz", b"readyz", b"clients", b"docs", b"tls-reports")
"""First segments of what is asked for without a key."""

WARNING_INTERVAL = 60
"""Seconds between two lines in the log that say the same."""


class Root(Resource):
    """Sends what lies below the API's path there, agents to theirs, all else to the dashboard."""

    def __init__(
        self, api: IResource, mcp: IResource, pages: IResource, dashboard: IResource
    ) -> None:
        super().__init__()
        self._api = api
        self._mcp = mcp
        self._pages = pages
        self._dashboard = dashboard
        self._api_segments = [segment.encode() for segment in API_PATH.strip("/").split("/")]
        name = MCP_PATH.strip("/").encode()
        self._mcp_segments = ([name], [name, b""])

    def getChild(self, path: bytes, request: Request) -> IResource:
        """Find what answers; called with the first segment taken off the path."""
        segments = [_as_utf8(segment) for segment in (path, *(request.postpath or []))]
        depth = len(self._api_segments)
        if segments[:depth] == self._api_segments:
            request.prepath, request.postpath = segments[:depth], segments[depth:]
            return self._api
        if segments in self._mcp_segments:
            return self._mcp
        request.prepath, request.postpath = [], segments
        return self._pages if segments[0] in PUBLIC_SEGMENTS else self._dashboard


def _as_utf8(segment: bytes) -> bytes:
    # Klein answers a path that is not UTF-8 by itself, past the gate and in plain text.
    return segment.decode("utf-8", "replace").encode("utf-8")


class BoundedSite(Site):
    """Makes connections, only so many, of requests whose answers are paced.

    It has no access log: its lines would hold share tokens.
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
    ) -> None:
        self._journal = journal
        self.room = ResponseBuffers()
        self.connections = Connections(limits, addresses.is_shared, clock)
        super().__init__(
            root,
            requestFactory=partial(PacedRequest, self.room, addresses),
            # No form is read here; a broken one would be answered past the gate.
            parsePOSTFormSubmission=False,
            timeout=IDLE_TIMEOUT,
            reactor=clock,
        )
        self._clock = clock
        self.answers = Tally()
        self._turned_away = 0
        self._warned_at = -math.inf

    def protocol(self) -> Any:
        """Make what Twisted would make, but for HTTP/2, which has none of the bounds."""
        return WebConnection(self.connections)

    def buildProtocol(self, addr: IAddress | None) -> Any:
        """Make a connection, or what turns its client away."""
        connection = super().buildProtocol(addr)
        if self.connections.admit(connection, getattr(addr, "host", None) or LOCAL_PEER):
            return connection
        return self._turn_away()

    def acceptableProtocols(self) -> list[bytes]:  # noqa: N802
        """Name what is spoken, for endpoints with TLS."""
        return [b"http/1.1"]

    def log(self, request: HttpRequest) -> None:
        """Count the answer; a line is written where the fault is ours."""
        self.answers.add(str(request.code))
        if request.code in SERVER_ERRORS and isinstance(request, PacedRequest):
            self._journal.note_fault(request.fault())

    def _turn_away(self) -> Protocol:
        now = self._clock.seconds()
        if now - self._warned_at >= WARNING_INTERVAL:
            self._warned_at, count = now, len(self.connections)
            self._log.warn("HTTP clients are turned away: {count} are connected", count=count)
        if self._turned_away >= MAX_REJECTED_AT_ONCE:
            return AbortedConnection()
        self._turned_away += 1
        return RejectedConnection(self._clock, self._forget_turned_away)

    def _forget_turned_away(self) -> None:
        self._turned_away -= 1


@implementer(IProtocolFactory)
class ProxyProtocolFactory:
    """Lets hosts of some networks speak for others, as they then must; all else stays as it is."""

    def __init__(
        self, factory: IProtocolFactory, networks: Sequence[IPv4Network | IPv6Network]
    ) -> None:
        self._factory = factory
        self._networks = networks
        # Twisted wraps endpoints only; here one port has both kinds of clients.
        caught = _Caught()
        proxyEndpoint(caught).listen(factory)
        self._for_proxies = cast(IProtocolFactory, caught.factory)

    def buildProtocol(self, addr: IAddress) -> IProtocol | None:
        """Make a protocol; that of a proxy waits for its header."""
        peer = parse_ip_address(getattr(addr, "host", ""))
        is_proxy = peer is not None and any(peer in network for network in self._networks)
        return (self._for_proxies if is_proxy else self._factory).buildProtocol(addr)

    def doStart(self) -> None:
        """Begin to listen."""
        self._factory.doStart()

    def doStop(self) -> None:
        """Listen no more."""
        self._factory.doStop()


@implementer(IStreamServerEndpoint)
class _Caught:
    """Stands for an endpoint, to find out what would listen there."""

    factory: Any = None

    def listen(self, factory: Any) -> Deferred[IListeningPort]:
        self.factory = factory
        return succeed(cast(IListeningPort, None))
