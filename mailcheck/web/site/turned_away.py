"""Clients for whom there is no connection left: they are told so, and when to come again."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure

from mailcheck.web.site.errors import TOO_MANY_CONNECTIONS, TRY_AGAIN
from mailcheck.web.site.replies import all_headers, error_reply

AT_ONCE = 100
"""Clients that are told at a time; more are hung up on."""

PATIENCE = 5
"""Seconds for a client to ask, and to take in the answer."""


class TurnedAway(Protocol):
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
        self._timer = self._clock.callLater(PATIENCE, self.transport.abortConnection)

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


class HungUp(Protocol):
    """Ends at once; where Twisted is given no protocol, a TLS connection would stay open."""

    transport: Any

    def connectionMade(self) -> None:
        """Hang up."""
        self.transport.abortConnection()


def _answer() -> bytes:
    reply = error_reply(
        TOO_MANY_CONNECTIONS,
        "there are too many connections: use one for many requests, or try again in a moment",
        {"Retry-After": str(TRY_AGAIN), "Connection": "close"},
    )
    lines = [f"{name}: {value}\r\n" for name, value in all_headers(reply, {}).items()]
    status = HTTPStatus(reply.status)
    head = "".join([f"HTTP/1.1 {status.value} {status.phrase}\r\n", *lines, "\r\n"])
    return head.encode("ascii") + reply.body
