"""Replies are written together and in order."""

from collections.abc import Sequence
from typing import Any, cast

from twisted.internet.abstract import FileDescriptor
from twisted.internet.main import CONNECTION_LOST
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport

from mailcheck.connections.wire import Wire
from tests.table import rows


class CountingTransport(StringTransport):
    """A transport that counts writes."""

    writes = 0

    def write(self, data: bytes) -> None:
        """Count a write."""
        self.writes += 1
        super().write(data)


def test_replies_are_sent_together() -> None:
    """All replies before a flush are one write; a flush without replies is none."""
    transport = CountingTransport()
    wire = Wire(transport)
    wire.add(b"250 one\r\n")
    wire.add(b"250 two\r\n")
    assert transport.writes == 0
    wire.flush()
    wire.flush()
    assert (transport.writes, transport.value()) == (1, b"250 one\r\n250 two\r\n")


def test_replies_keep_their_order() -> None:
    """A flush writes after earlier ones, and closing writes the pending replies first."""
    transport = CountingTransport()
    wire = Wire(transport)
    for reply in (b"250 one\r\n", b"250 two\r\n"):
        wire.add(reply)
        wire.flush()
    wire.add(b"221 three\r\n")
    wire.close()
    assert transport.value() == b"250 one\r\n250 two\r\n221 three\r\n"
    assert transport.disconnecting


class Socket(FileDescriptor):
    """A socket that accepts part of the data; ``buffered`` is left to the reactor."""

    connected = 1

    def __init__(self, takes: Sequence[int | Exception]) -> None:
        super().__init__(cast(Any, Clock()))
        self.takes = list(takes)
        self.sent = self.buffered = b""

    def writeSomeData(self, data: bytes) -> Any:
        """Accept the next amount of data."""
        taken = self.takes.pop(0)
        if isinstance(taken, int):
            self.sent += data[:taken]
        return taken

    def write(self, data: bytes) -> None:
        """Buffer data."""
        self.buffered += data


@rows(
    ([9, 9], b"250 one\r\n250 two\r\n", b""),
    ([9, 4], b"250 one\r\n250 ", b"two\r\n"),
    ([3], b"250", b" one\r\n250 two\r\n"),
    ([0], b"", b"250 one\r\n250 two\r\n"),
    ([CONNECTION_LOST], b"", b"250 one\r\n250 two\r\n"),
)
def test_unsent_data_is_buffered(
    takes: Sequence[int | Exception], sent: bytes, buffered: bytes
) -> None:
    """If the socket accepts only a part, no octet of a reply is lost, repeated or reordered."""
    socket = Socket(takes)
    wire = Wire(socket)
    for reply in (b"250 one\r\n", b"250 two\r\n"):
        wire.add(reply)
        wire.flush()
    assert (socket.sent, socket.buffered) == (sent, buffered)
