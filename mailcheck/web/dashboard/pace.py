"""Whether a client keeps up with a stream that goes to it."""

from collections.abc import Iterator
from contextlib import contextmanager

from twisted.internet.interfaces import IPushProducer
from twisted.web.server import Request
from zope.interface import implementer


@implementer(IPushProducer)
class Pace:
    """``is_behind`` while more waits to be sent than a connection holds (64 KiB)."""

    def __init__(self) -> None:
        self.is_behind = False

    def pauseProducing(self) -> None:  # noqa: N802
        """Take note that the client does not read as fast as we write."""
        self.is_behind = True

    def resumeProducing(self) -> None:  # noqa: N802
        """Take note that it has caught up."""
        self.is_behind = False

    def stopProducing(self) -> None:  # noqa: N802
        """Do nothing: who writes is told by the request."""


@contextmanager
def pace_of(request: Request) -> Iterator[Pace]:
    """Watch how a client reads while the block runs."""
    pace = Pace()
    request.registerProducer(pace, True)
    try:
        yield pace
    finally:
        if request.channel is not None:  # it goes when the client does
            request.unregisterProducer()
