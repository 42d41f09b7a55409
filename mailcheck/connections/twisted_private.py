"""All private names of Twisted that mailcheck uses, each with the reason.

`tests/test_private_names.py` fails when Twisted changes one of them, and when another module uses a
private name of a library. ``setup.cfg`` bounds the version of Twisted.
"""

import select
import sys
from abc import abstractmethod
from collections.abc import Iterable

from twisted.python import log
from twisted.web.http import HTTPChannel


class OpenHttpChannel(HTTPChannel):
    """Twisted's HTTP connection, with a public name for each private one."""

    @property
    def target(self) -> bytes:
        """The target in the request line. Twisted gives it to the request after the body only."""
        target: bytes = self._path
        return target

    @abstractmethod
    def reject_malformed(self) -> None:
        """Respond to a request that Twisted cannot parse, and close the connection."""

    def _respondToBadRequestAndDisconnect(self) -> None:  # noqa: N802
        # Twisted sends only a status line, without a body that names the problem, and resets a
        # connection on which the client is still sending.
        self.reject_malformed()


if sys.platform == "linux":
    from twisted.internet.epollreactor import EPollReactor

    class OpenReactor(EPollReactor):
        """Twisted's reactor for Linux, which can serve a few sockets at a time.

        `ShortTurns` says why this is needed. An own reactor would have to repeat how Twisted
        closes connections.
        """

        def fileno(self) -> int:
            """Return the descriptor that is readable while any socket is ready."""
            return int(self._poller.fileno())

        def ready(self, at_most: int) -> Iterable[tuple[int, int]]:
            """Return some of the sockets that are ready, each with its events."""
            poller: select.epoll = self._poller
            return poller.poll(0, at_most)

        def serve(self, descriptor: int, events: int) -> None:
            """Read from a socket or write to it. Does nothing if it was closed meanwhile."""
            socket = self._selectables.get(descriptor)
            if socket is not None:
                log.callWithLogger(socket, self._doReadOrWrite, socket, descriptor, events)
