"""One HTTP connection: a request has its time to come in, an answer goes on while it is read."""

import socket
from contextlib import suppress
from typing import Any

from twisted.internet.protocol import connectionDone
from twisted.protocols.basic import LineReceiver
from twisted.protocols.policies import ProtocolWrapper
from twisted.python.failure import Failure
from twisted.web.http import HTTPChannel
from twisted.web.http import Request as HttpRequest

from mailcheck.web.site.connections import Connections

IDLE_TIMEOUT = 75
"""Seconds until a connection is closed that sends nothing between requests, or from the first
byte of a request to its last; or whose client reads nothing of its answer. A parked wait is
not idle."""

UNSENT = 131_072
"""Bytes of an answer that the kernel takes ahead of what the client's side has room for."""


class WebConnection(HTTPChannel):
    """Twisted's connection with bounds: a trickle is no sign of life, an unread answer no rest."""

    is_full = False
    _has_begun = False
    _waits_for_reader = False
    transport: Any

    def __init__(self, connections: Connections) -> None:
        super().__init__()
        self._connections = connections

    def dataReceived(self, data: bytes) -> None:
        """Take bytes; only the first ones of a request give it more time."""
        if not self._has_begun:
            self._has_begun = True
            self.resetTimeout()
        LineReceiver.dataReceived(self, data)

    def allContentReceived(self) -> None:  # noqa: N802
        """Work on a request, now that it is whole."""
        self._connections.keep(self)
        super().allContentReceived()

    def requestDone(self, request: HttpRequest) -> None:  # noqa: N802
        """Rest until the next request; a connection that ends has to come to its end too."""
        self._has_begun = self._waits_for_reader = False
        self._connections.let_rest(self)
        ends = not self.persistent
        super().requestDone(request)
        if ends:
            self.watch_reader()

    def watch_reader(self) -> None:
        """Give the client its time, from now on, to read what it was sent."""
        if not self._waits_for_reader:
            self._waits_for_reader = True
            _keep_kernel_buffer_small(self.transport)
        self.setTimeout(self.factory.timeOut)

    def watch_no_more(self) -> None:
        """Take all the time there is to go on with an answer: the client has read what there is."""
        self._waits_for_reader = False
        self.setTimeout(None)

    def timeoutConnection(self) -> None:
        """End a connection on which nothing moves; what its client does not read is dropped."""
        if self._waits_for_reader:
            self.forceAbortClient()
        else:
            super().timeoutConnection()

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
        self._connections.forget(self)
        super().connectionLost(reason)


def _keep_kernel_buffer_small(transport: Any) -> None:
    """Have the kernel tell sooner that a slow client reads on: its own buffer may be megabytes."""
    while isinstance(transport, ProtocolWrapper):  # TLS
        transport = transport.transport
    handle = getattr(transport, "getHandle", lambda: None)()
    if isinstance(handle, socket.socket) and hasattr(socket, "TCP_NOTSENT_LOWAT"):
        with suppress(OSError):  # no TCP
            handle.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT)
