"""The reactor without log contexts serves as it did with them."""

import socket
from collections.abc import Callable

from twisted.internet.epollreactor import EPollReactor
from twisted.internet.interfaces import IReadDescriptor
from twisted.python.failure import Failure
from zope.interface import implementer

from mailcheck.daemon.reactor import dispatch_bare


@implementer(IReadDescriptor)
class Reader:
    """One end of a pair of sockets, at which something waits to be read."""

    def __init__(self, when_read: Callable[["Reader"], object]) -> None:
        self.end, self.other = socket.socketpair()
        self.other.send(b"x")
        self.received = b""
        self.is_lost = False
        self._when_read = when_read

    def fileno(self) -> int:
        """Give the descriptor."""
        return self.end.fileno()

    def logPrefix(self) -> str:
        """Give a name for the log."""
        return "reader"

    def doRead(self) -> Failure | None:
        """Read."""
        self.received += self.end.recv(100)
        self._when_read(self)
        return Failure(ConnectionError()) if self.received == b"x!" else None

    def connectionLost(self, reason: object) -> None:
        """Take note of the end."""
        self.is_lost = True
        self.close()

    def close(self) -> None:
        """Close both ends."""
        self.end.close()
        self.other.close()


def test_who_is_ready_is_called() -> None:
    """What is ready is read; one that was taken away in the same round is not; errors end one."""
    reactor = EPollReactor()
    dispatch_bare(reactor)

    def take_away(reader: Reader) -> None:
        for one in readers:
            if one is not reader:
                reactor.removeReader(one)

    readers = [Reader(take_away), Reader(take_away)]
    for reader in readers:
        reactor.addReader(reader)
    reactor.doIteration(1)
    assert sorted(reader.received for reader in readers) == [b"", b"x"]
    (served,) = (reader for reader in readers if reader.received)
    served.other.send(b"!")
    reactor.doIteration(1)
    assert served.is_lost
    assert served not in reactor.getReaders()
    for reader in readers:
        reader.close()


def test_other_reactors_stay_as_they_are() -> None:
    """A reactor that works in another way is left alone."""

    class SelectReactor:
        doIteration: object = None  # noqa: N815

    reactor = SelectReactor()
    dispatch_bare(reactor)
    assert reactor.doIteration is None
