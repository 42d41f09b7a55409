"""A reactor for sockets of one kind, with a bounded time for each iteration of the main reactor.

A mail needs about eight reactor iterations to reach the client that waits for it: one for each
command and for each answer of a child process. Twisted serves all ready sockets in an iteration,
and a check of a hostile zone has fifty streams to name servers ready at a time. Each of the eight
iterations then took 10 ms.

`benchmarks.hostile_neighbours --at-once` measures the effect. During all attacks, 99 of 100 mails
arrived within 24 to 29 ms with it, and within 53 to 55 ms with the same sockets in the main
reactor. An idle daemon takes 6.5 ms, so only the former is within 6 times that.

Opening streams to name servers one at a time, every 2 ms, is not enough: 49 ms. All open
streams become ready together after any busy period, and HTTP is not bounded. Pausing each HTTP
connection after a packet was not measured. It would cost two system calls and a delayed call for
each packet.

A bounded iteration polls a few sockets at a time, and serves each. Twisted has no public names for
either, so `OpenReactor` gives them some.
"""

from collections.abc import Callable
from typing import Any

from twisted.internet.base import DelayedCall
from twisted.python.failure import Failure

from mailcheck.connections.twisted_private import OpenReactor

TURN = 0.0003
"""Maximum seconds for each iteration of the main reactor. Other ready sockets wait for the next
one. With 1 ms the slowest mails under attack took half as long again, without any benefit."""

AT_A_TIME = 2
"""Number of sockets that are served between two checks of the clock."""


class ShortTurns(OpenReactor):
    """A reactor for sockets of one kind, which is a single descriptor in the main reactor.

    Sockets are served in the order in which they became ready. Timers and threads belong to
    the main reactor, and this reactor ends with it.
    """

    def __init__(self, reactor: Any) -> None:
        self._main = reactor
        super().__init__()
        reactor.addReader(self)

    def installWaker(self) -> None:  # noqa: N802
        """Do nothing: this reactor never blocks."""

    def seconds(self) -> float:
        """Return the main reactor's time."""
        return float(self._main.seconds())

    def callLater(  # noqa: N802
        self,
        delay: float,
        callable: Callable[..., Any],  # noqa: A002
        *args: object,
        **kw: object,
    ) -> DelayedCall:
        """Schedule a call in the main reactor."""
        call: DelayedCall = self._main.callLater(delay, callable, *args, **kw)
        return call

    def callFromThread(  # noqa: N802
        self, f: Callable[..., Any], *args: object, **kwargs: object
    ) -> None:
        """Schedule a call in the main reactor."""
        self._main.callFromThread(f, *args, **kwargs)

    def getThreadPool(self) -> Any:  # noqa: N802
        """Return the main reactor's thread pool."""
        return self._main.getThreadPool()

    # The interface for the main reactor, with `fileno`.

    def logPrefix(self) -> str:  # noqa: N802
        """Return the name for log messages."""
        return type(self).__name__

    def doRead(self) -> None:  # noqa: N802
        """Serve ready sockets for a bounded time."""
        end = self.seconds() + TURN
        while ready := self.ready(AT_A_TIME):
            for descriptor, events in ready:
                self.serve(descriptor, events)
            if self.seconds() >= end:
                return

    def connectionLost(self, reason: Failure) -> None:
        """Close all sockets, since the main reactor ends."""
        self.disconnectAll()
