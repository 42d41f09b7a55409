"""A client that decides when it reads, over a connection that pauses a full writer."""

from twisted.internet.testing import StringTransport

from mailcheck.web.site.response_buffers import CHUNK
from tests.web.raw_http import HasSite, RawHttp

FULL = 65_536
"""Number of unread bytes at which a connection of Twisted pauses its writer."""

MOST_UNREAD = FULL + CHUNK + 2_000
"""Maximum number of bytes in a connection: almost full, plus one chunk and the headers."""


class SlowTransport(StringTransport):
    """Pauses its producer as a TCP transport does. ``unread`` is what the client has not read."""

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
        """Buffer bytes for the client."""
        self.unread += data
        self.most_unread = max(self.most_unread, len(self.unread))
        if self.producer is not None and len(self.unread) > FULL:
            self._is_paused = True
            self.producer.pauseProducing()

    def writeSequence(self, data: list[bytes]) -> None:
        """Buffer bytes for the client."""
        self.write(b"".join(data))

    def unregisterProducer(self) -> None:
        """Unregister the producer. A second call has no effect."""
        self.producer = None

    def take(self, size: int) -> bytes:
        """Read some bytes. The producer is resumed when the buffer is empty."""
        taken = bytes(self.unread[:size])
        del self.unread[:size]
        if not self.unread and self._is_paused and self.producer is not None:
            self._is_paused = False
            self.producer.resumeProducing()
        if self.is_closing:
            self.loseConnection()
        return taken


class SlowReader(RawHttp):
    """A client whose ``read`` reads the available data."""

    def __init__(self, house: HasSite, peer: str = "127.0.0.1") -> None:
        super().__init__(house, peer, SlowTransport)
        self.read_so_far = b""

    @property
    def unread(self) -> int:
        """Return the number of bytes in the connection."""
        self.send(b"")
        return len(self.transport.unread)

    def read(self, size: int = FULL) -> int:
        """Read some of the available data. Return the number of bytes."""
        taken: bytes = self.transport.take(size)
        self.read_so_far += taken
        self.send(b"")
        return len(taken)

    def read_on(self) -> None:
        """Read until there is no more data."""
        while self.read():
            pass

    def received(self) -> bytes:
        """Return all data that was read."""
        self.read_on()
        return self.read_so_far
