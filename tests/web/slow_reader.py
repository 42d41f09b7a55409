"""A client that reads what it is sent when it likes, over a connection that stops a writer."""

from twisted.internet.testing import StringTransport

from mailcheck.web.site.requests import CHUNK
from tests.web.raw_http import HasSite, RawHttp

FULL = 65_536
"""Bytes unread from which on a connection of Twisted's stops who writes."""

MOST_UNREAD = FULL + CHUNK + 2_000
"""Bytes that a connection may come to hold: full but for one, a piece more, a head."""


class SlowTransport(StringTransport):
    """Stops its producer as a TCP transport does; ``unread`` is what the client has not read."""

    def __init__(self, peerAddress: object) -> None:  # noqa: N803
        super().__init__(peerAddress=peerAddress, lenient=True)
        self.unread = bytearray()
        self.most_unread = 0
        self.is_closing = False
        self._is_paused = False

    def loseConnection(self) -> None:
        """Close the connection when the client has read everything."""
        self.is_closing = True
        self.disconnecting = not self.unread

    def abortConnection(self) -> None:
        """Close the connection now."""
        self.disconnecting = True

    def write(self, data: bytes) -> None:
        """Keep bytes for the client."""
        self.unread += data
        self.most_unread = max(self.most_unread, len(self.unread))
        if self.producer is not None and len(self.unread) > FULL:
            self._is_paused = True
            self.producer.pauseProducing()

    def writeSequence(self, data: list[bytes]) -> None:
        """Keep bytes for the client."""
        self.write(b"".join(data))

    def unregisterProducer(self) -> None:
        """Forget the producer; again, it changes nothing."""
        self.producer = None

    def take(self, size: int) -> bytes:
        """Read some bytes; the producer goes on when there are no more."""
        taken = bytes(self.unread[:size])
        del self.unread[:size]
        if not self.unread and self._is_paused and self.producer is not None:
            self._is_paused = False
            self.producer.resumeProducing()
        if self.is_closing:
            self.loseConnection()
        return taken


class SlowReader(RawHttp):
    """A client whose ``read`` takes what there is, in its own time."""

    def __init__(self, house: HasSite, peer: str = "127.0.0.1") -> None:
        super().__init__(house, peer, SlowTransport)
        self.read_so_far = b""

    @property
    def unread(self) -> int:
        """Say how many bytes the connection holds."""
        self.send(b"")
        return len(self.transport.unread)

    def read(self, size: int = FULL) -> int:
        """Read some of what there is; gives how much it was."""
        taken: bytes = self.transport.take(size)
        self.read_so_far += taken
        self.send(b"")
        return len(taken)

    def read_on(self) -> None:
        """Read until there is no more."""
        while self.read():
            pass

    def received(self) -> bytes:
        """Give all that was read."""
        self.read_on()
        return self.read_so_far
