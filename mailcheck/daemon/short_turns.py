"""Sockets of one kind, for which each turn of the reactor has a short time.

A mail takes some eight turns of the reactor to the client that waits for it: one for each command,
and for each answer of a child process. Twisted serves in a turn all that is ready, and a check of a
hostile zone has fifty streams to name servers ready at a time: each of the eight took 10 ms.

`benchmarks.hostile_neighbours --at-once` shows what this module is for. Beside all attacks, 99 of
100 mails were there within 24 to 29 ms with it, and within 53 to 55 ms with the same sockets in the
main reactor. An idle daemon takes 6.5 ms, so only the former is within 6 times that.

Streams to name servers that are opened one at a time, every 2 ms, do not replace it: 49 ms. All
open streams become ready together whenever the daemon has been busy, and HTTP is not bounded. To
pause each HTTP connection after a packet, and to resume it in its turn, was not measured: it takes
two system calls and a delayed call for each packet.

`EPollReactor` has no public name for three things that a bounded turn needs, and so these private
names are used: ``_poller``, the epoll, which the main reactor watches and which is asked for a few
sockets at a time; ``_selectables``, the sockets by descriptor; ``_doReadOrWrite``, which serves one
of them. A reactor of our own in their place would have to repeat how Twisted closes connections.
`tests/test_private_names.py` fails when Twisted changes one of the names.
"""

from collections.abc import Callable
from typing import Any

from twisted.internet.base import DelayedCall
from twisted.internet.epollreactor import EPollReactor
from twisted.python import log
from twisted.python.failure import Failure

TURN = 0.0003
"""Seconds in a turn of the reactor; what is ready beyond that has the next ones. With 1 ms
the slowest mails beside attacks took half as long again, and nobody was served more."""

AT_A_TIME = 2
"""Sockets that are served between two looks at the clock."""


class ShortTurns(EPollReactor):
    """A reactor for sockets of one kind, which all together are one descriptor of the main reactor.

    They are served in the order in which they got ready. All else, such as time, is the main
    reactor's, and with that it ends.
    """

    def __init__(self, reactor: Any) -> None:
        self._main = reactor
        super().__init__()
        reactor.addReader(self)

    def installWaker(self) -> None:  # noqa: N802
        """Need none: nobody sleeps here."""

    def seconds(self) -> float:
        """Give the main reactor's time."""
        return float(self._main.seconds())

    def callLater(  # noqa: N802
        self,
        delay: float,
        callable: Callable[..., Any],  # noqa: A002
        *args: object,
        **kw: object,
    ) -> DelayedCall:
        """Have the main reactor call."""
        call: DelayedCall = self._main.callLater(delay, callable, *args, **kw)
        return call

    def callFromThread(  # noqa: N802
        self, f: Callable[..., Any], *args: object, **kwargs: object
    ) -> None:
        """Have the main reactor call."""
        self._main.callFromThread(f, *args, **kwargs)

    def getThreadPool(self) -> Any:  # noqa: N802
        """Give the main reactor's threads."""
        return self._main.getThreadPool()

    # What the main reactor calls.

    def fileno(self) -> int:
        """Give a descriptor that can be read while any socket is ready."""
        return int(self._poller.fileno())

    def logPrefix(self) -> str:  # noqa: N802
        """Name itself where something fails."""
        return type(self).__name__

    def doRead(self) -> None:  # noqa: N802
        """Serve what is ready, for a turn."""
        end = self.seconds() + TURN
        while ready := self._poller.poll(0, AT_A_TIME):
            for descriptor, event in ready:
                socket = self._selectables.get(descriptor)
                if socket is not None:  # else the one before has closed it
                    log.callWithLogger(socket, self._doReadOrWrite, socket, descriptor, event)
            if self.seconds() >= end:
                return

    def connectionLost(self, reason: Failure) -> None:
        """Close all sockets: the main reactor ends."""
        self.disconnectAll()
