"""Connections of HTTP with limits: their number, their time, and requests that are not valid.

Twisted parses requests. This module adds limits and error responses that Twisted lacks.
"""

import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from twisted.internet.abstract import FileDescriptor
from twisted.internet.interfaces import (
    IDelayedCall,
    IReactorTime,
    ITCPTransport,
)
from twisted.internet.protocol import Protocol, connectionDone
from twisted.protocols.basic import LineReceiver
from twisted.protocols.policies import ProtocolWrapper
from twisted.python.failure import Failure
from twisted.web.http import HTTPChannel
from twisted.web.http import Request as HttpRequest
from twisted.web.http_headers import Headers

from mailcheck.connections.twisted_private import OpenHttpChannel
from mailcheck.core.memory.client_limits import ConnectionCounts, ConnectionLimits
from mailcheck.operations.concurrency import stop_timer
from mailcheck.web.site.failures import (
    BAD_REQUEST,
    RETRY_AFTER_SECONDS,
    TOO_MANY_CONNECTIONS,
)
from mailcheck.web.site.replies import error_reply, reply_as_bytes

SERVER = b"mailcheck"
"""The Server header. It does not reveal the version."""

MAX_AHEAD = 1_024
"""Maximum number of bytes of the next request that are read before the current one is answered.
Reading is needed to detect that the client disconnects."""

MALFORMED = (
    "invalid HTTP/1.1 request: the first line, a header field or the length of the body is "
    f"malformed, or there are more than {HTTPChannel.maxHeaders} header fields or "
    f"{HTTPChannel.totalHeadersSize // 1_024} KiB of header fields"
)

IDLE_TIMEOUT = 75
"""Seconds until an idle connection is closed: between requests, from the first byte of a request
to its last, or while the client does not read the response. A long poll is not idle."""

MAX_UNSENT = 131_072
"""Maximum number of bytes that the kernel buffers beyond the client's receive window."""


MIN_IDLE = 0.2
"""Minimum number of seconds before an idle connection is closed to make room. Otherwise many
clients that connect at once would close each other's connections before their requests are read."""

REJECT_TIMEOUT = 5
"""Seconds in which a rejected client must send its request and read the response."""


HEALTH = tuple(
    b"%s /%s " % (method, path) for method in (b"GET", b"HEAD") for path in (b"healthz", b"readyz")
)
"""Beginnings of requests that are answered even at the maximum of connections."""


class Connections:
    """The open connections. At the maximum, the one that has been idle longest is closed.

    A connection is idle while the service is not answering a complete request on it: between
    requests, and while a request arrives slowly. So idle connections do not block active ones.

    :param limits: they may be changed.
    :param is_exempt: returns whether many clients may share a peer's address.
    """

    def __init__(
        self, limits: ConnectionLimits, is_exempt: Callable[[str], bool], clock: IReactorTime
    ) -> None:
        self.limits = limits
        self._is_exempt = is_exempt
        self._clock = clock
        self._counts: ConnectionCounts[WebConnection] = ConnectionCounts()
        self._idle_since: dict[WebConnection, float] = {}
        self.open: set[Protocol] = set()

    @property
    def is_crowded(self) -> bool:
        """Whether so many connections are open that the next one cannot even be rejected.

        It counts connections until they are closed, when others have had their places already.
        """
        return len(self.open) >= self.limits.open

    def __len__(self) -> int:
        """Return the number of connections."""
        return len(self._counts)

    def count_of_address(self, host: str) -> int:
        """Return the number of connections from an address."""
        return self._counts.of_client(host)

    def admit(self, connection: "WebConnection", host: str) -> bool:
        """Count a connection from an address. Return whether it is within the limits."""
        if self.count_of_address(host) >= self.limits.of_address and not self._is_exempt(host):
            return False
        if len(self) >= self.limits.in_all and not self._make_room():
            return False
        self._counts.add(connection, host)
        self._idle_since[connection] = self._clock.seconds()
        return True

    def seconds(self) -> float:
        """Return the time on the clock of the site."""
        return self._clock.seconds()

    def mark_busy(self, connection: "WebConnection") -> None:
        """Mark a connection as answering a request."""
        self._idle_since.pop(connection, None)

    def mark_idle(self, connection: "WebConnection") -> None:
        """Mark a connection as waiting for its next request."""
        if connection in self._counts:
            self._idle_since[connection] = self._clock.seconds()

    def remove(self, connection: "WebConnection") -> None:
        """Remove a closed connection."""
        self._idle_since.pop(connection, None)
        self._counts.remove(connection)

    def _make_room(self) -> bool:
        longest = next(iter(self._idle_since), None)
        if longest is None:
            return False
        if 0 <= self._clock.seconds() - self._idle_since[longest] < MIN_IDLE:
            return False
        self.remove(longest)
        longest.hang_up()
        return True


class WebConnection(OpenHttpChannel):
    """Twisted's HTTP connection with limits.

    Neither a slowly arriving request nor a client that does not read extends the timeout.

    An invalid or too large request is answered at once. The rest of it is read and discarded,
    because closing a connection with unread data resets it, and the client loses the response.
    """

    is_full = False
    began = 0.0
    """The time at which the last request was complete, on the clock of the site."""
    _has_begun = False
    _is_answering = False
    _ahead = b""
    _head_problem: str | None = None
    _drops_input = False
    _waits_for_reader = False
    _receive: Callable[[bytes], None] | None = None
    transport: Any

    def __init__(self, connections: Connections) -> None:
        super().__init__()
        self._connections = connections

    def dataReceived(self, data: bytes) -> None:
        """Receive data. Only the first bytes of a request restart the timeout."""
        if self._drops_input:
            return
        if self._receive is not None:
            self._receive(data)
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
        """Reject a request whose line exceeds the maximum length."""
        self._reject(MALFORMED)

    def headerReceived(self, line: bytes) -> bool:  # noqa: N802
        """Receive a header field. Return whether it is valid."""
        try:
            return bool(super().headerReceived(line))
        except ValueError:  # Python does not convert a Content-Length with so many digits
            self._reject(MALFORMED)
            return False

    def checkPersistence(self, request: HttpRequest, version: bytes) -> bool:  # noqa: N802
        """Validate the headers as well. Twisted passes the HTTP version only to this method."""
        self._head_problem = _explain_bad_head(request.requestHeaders, version)
        if self._head_problem is not None:
            request.requestHeaders.removeHeader(b"Expect")  # the client must not send the body
        return bool(super().checkPersistence(request, version))

    def allHeadersReceived(self) -> None:  # noqa: N802
        """Handle the complete headers. Reject invalid headers and requests that are too large."""
        super().allHeadersReceived()
        request = self.requests[-1]
        if self._head_problem is not None:
            self._reject(self._head_problem)
        elif request.is_too_large:
            self.length = 0  # no further bytes of the body are expected
            self._discard_rest(request)

    def rawDataReceived(self, data: bytes) -> None:  # noqa: N802
        """Receive a part of a body, or the bytes that follow a request in a packet."""
        super().rawDataReceived(data)
        if self._is_answering or self._drops_input or not self.requests:
            return
        if self.requests[-1].is_too_large:
            self._discard_rest(self.requests[-1])
            self.allContentReceived()

    def allContentReceived(self) -> None:  # noqa: N802
        """Process a complete request."""
        self._connections.mark_busy(self)
        self.began = self._connections.seconds()
        self._is_answering = True
        super().allContentReceived()

    def requestDone(self, request: HttpRequest) -> None:  # noqa: N802
        """Become idle after a response, or close the connection."""
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

    def switch_protocol(self, receive: Callable[[bytes], None]) -> None:
        """Pass all further bytes to a function. The response has told the client to switch."""
        self._receive = receive
        self.setTimeout(None)
        ahead, self._ahead = self._ahead, b""
        if ahead:
            receive(ahead)

    def start_read_timeout(self) -> None:
        """Start the timeout in which the client must read the response."""
        if not self._waits_for_reader:
            self._waits_for_reader = True
            _keep_kernel_buffer_small(self.transport)
        self.setTimeout(self.factory.timeOut)

    def stop_read_timeout(self) -> None:
        """Stop the timeout, because the client has read all data so far."""
        self._waits_for_reader = False
        self.setTimeout(None)

    def timeoutConnection(self) -> None:
        """Close an idle connection. Discard data that its client does not read."""
        if self._waits_for_reader:
            self.forceAbortClient()
        else:
            super().timeoutConnection()

    def loseConnection(self) -> None:  # noqa: N802
        """Close the connection. If the client may still be sending, close only the sending side."""
        is_plain = ITCPTransport.providedBy(self.transport) and not self.isSecure()
        if self._drops_input and is_plain:
            self.transport.unregisterProducer()
            self.transport.loseWriteConnection()
        else:  # TLS itself waits for the client
            super().loseConnection()

    def writeHeaders(  # noqa: N802
        self, version: bytes, code: bytes, reason: bytes, headers: Headers
    ) -> None:
        """Write the headers of a response."""
        headers.setRawHeaders(b"Server", [SERVER])
        super().writeHeaders(version, code, reason, headers)

    def hang_up(self) -> None:
        """Abort the connection."""
        if self.transport is not None:
            self.transport.abortConnection()

    def pauseProducing(self) -> None:  # noqa: N802
        """Mark the write buffer as full."""
        self.is_full = True
        super().pauseProducing()

    def resumeProducing(self) -> None:  # noqa: N802
        """Mark the write buffer as empty."""
        self.is_full = False
        super().resumeProducing()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Remove the connection from the limits."""
        self._connections.remove(self)
        self._connections.open.discard(self)
        super().connectionLost(reason)

    def _discard_rest(self, request: HttpRequest) -> None:
        """Answer a request without reading its body, and close the connection afterwards."""
        self._stop_reading()
        self.persistent = False
        request.responseHeaders.setRawHeaders(b"Connection", [b"close"])

    def _stop_reading(self) -> None:
        self._drops_input = True
        self.clearLineBuffer()

    def _reject(self, problem: str) -> None:
        """Respond to an invalid request, and close the connection."""
        self._stop_reading()
        self.length = None  # so that Twisted does not consider the request complete
        reply = error_reply(BAD_REQUEST, problem, {"Connection": "close"})
        self.transport.write(reply_as_bytes(reply))
        self.loseConnection()
        self.start_read_timeout()

    def reject_malformed(self) -> None:
        """Reject a request that Twisted cannot parse."""
        self._reject(MALFORMED)


def _explain_bad_head(headers: Headers, version: bytes) -> str | None:
    """Return why the target or the body length of a request is ambiguous (RFC 9112 3.2, 6.3)."""
    hosts = headers.getRawHeaders(b"Host", ())
    if len(hosts) > 1:
        return "there are several Host header fields: send one"
    if not hosts and version == b"HTTP/1.1":
        return "the Host header field is missing: HTTP/1.1 requires it"
    codings = headers.getRawHeaders(b"Transfer-Encoding", ())
    if len(codings) > 1 or (codings and headers.hasHeader(b"Content-Length")):
        return "the body length is ambiguous: send Content-Length, or one Transfer-Encoding"
    return None


def _send_now(transport: Any) -> None:
    """Write buffered data to the kernel now, not after other work of the reactor.

    If that fails, the transport remains registered for writing, and the reactor handles the error.
    """
    if isinstance(transport, FileDescriptor) and not transport.disconnecting:
        transport.doWrite()


def _keep_kernel_buffer_small(transport: Any) -> None:
    """Limit the data in the kernel, so that progress of a slow client is noticed sooner.

    The kernel's own limit can be several megabytes.
    """
    while isinstance(transport, ProtocolWrapper):  # TLS
        transport = transport.transport
    handle = getattr(transport, "getHandle", lambda: None)()
    if isinstance(handle, socket.socket) and hasattr(socket, "TCP_NOTSENT_LOWAT"):
        with suppress(OSError):  # not a TCP socket
            handle.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, MAX_UNSENT)


class RejectedConnection(Protocol):
    """Responds to a rejected client with 503, and closes the connection.

    It waits for the first bytes of the request. A response before them would be lost. A question
    about the health of the daemon is answered: a supervisor must not restart a busy daemon.

    :param ordinary: the connection that then answers.
    """

    transport: Any

    def __init__(
        self,
        clock: IReactorTime,
        ordinary: Protocol,
        on_end: Callable[["RejectedConnection"], None],
    ) -> None:
        self._clock = clock
        self._ordinary = ordinary
        self._on_end = on_end
        self._timer: IDelayedCall | None = None
        self._served: Protocol | None = None

    def connectionMade(self) -> None:
        """Start the timeout for the request and its response."""
        self._timer = self._clock.callLater(REJECT_TIMEOUT, self.transport.abortConnection)

    def dataReceived(self, data: bytes) -> None:
        """Respond to the beginning of a request. The rest is not read."""
        if self._served is None and data.startswith(HEALTH):
            self._served = self._ordinary
            self._served.makeConnection(self.transport)
        if self._served is not None:
            self._served.dataReceived(data)
        elif not self.transport.disconnecting:
            self.transport.write(_too_many_connections())
            self.transport.loseConnection()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Make room for the next rejected client."""
        stop_timer(self._timer)
        if self._served is not None:
            self._served.connectionLost(reason)
        self._on_end(self)


def _too_many_connections() -> bytes:
    reply = error_reply(
        TOO_MANY_CONNECTIONS,
        "too many connections: reuse one for several requests, or try again in a moment",
        {"Retry-After": str(RETRY_AFTER_SECONDS), "Connection": "close"},
    )
    return reply_as_bytes(reply)
