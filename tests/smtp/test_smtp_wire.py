"""Replies written at once, and in order when the socket does not take them."""

from twisted.internet.abstract import FileDescriptor
from twisted.internet.testing import MemoryReactor

from mailcheck.smtp.receive_path import Wire


class NarrowSocket(FileDescriptor):
    """A socket that takes so many octets, and then no more; or that has gone."""

    def __init__(self, room: int, *, is_gone: bool = False) -> None:
        super().__init__(MemoryReactor())
        self.room = room
        self.is_gone = is_gone
        self.sent = b""
        self.buffered = b""

    def getHandle(self) -> "NarrowSocket":
        """Give what the system knows it by."""
        return self

    def send(self, data: bytes) -> int:
        """Take what there is room for, as a socket that does not block."""
        if self.is_gone:
            raise ConnectionResetError
        if not self.room:
            raise BlockingIOError
        taken = data[: self.room]
        self.room -= len(taken)
        self.sent += taken
        return len(taken)

    def write(self, data: bytes) -> None:
        """Keep the rest."""
        self.buffered += data


def wire_on(socket: NarrowSocket, *replies: bytes) -> None:
    """Send the replies one by one."""
    wire = Wire(socket)
    for reply in replies:
        wire.add(reply)
        wire.flush()


def test_replies_are_sent_at_once() -> None:
    """As long as the socket takes all, nothing waits for the reactor."""
    socket = NarrowSocket(100)
    wire_on(socket, b"250 one\r\n", b"250 two\r\n")
    assert (socket.sent, socket.buffered) == (b"250 one\r\n250 two\r\n", b"")


def test_nothing_overtakes_what_waits() -> None:
    """Once the socket was full all goes through the buffer, even when there is room again."""
    socket = NarrowSocket(12)
    wire = Wire(socket)
    for reply in (b"250 one\r\n", b"250 two\r\n", b"250 three\r\n"):
        wire.add(reply)
        wire.flush()
        socket.room += 1
    assert socket.sent + socket.buffered == b"250 one\r\n250 two\r\n250 three\r\n"
    assert socket.sent == b"250 one\r\n250 "


def test_a_socket_that_has_gone_is_left_to_the_transport() -> None:
    """The transport knows how to report that the connection is lost."""
    socket = NarrowSocket(100, is_gone=True)
    wire_on(socket, b"250 one\r\n")
    assert (socket.sent, socket.buffered) == (b"", b"250 one\r\n")


def test_replies_leave_together() -> None:
    """What was added before a flush is one write."""
    socket = NarrowSocket(0)
    wire = Wire(socket)
    wire.add(b"250 one\r\n")
    wire.add(b"250 two\r\n")
    wire.flush()
    wire.flush()
    assert socket.buffered == b"250 one\r\n250 two\r\n"
