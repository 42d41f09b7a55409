"""Replies are written together, and in the order in which they were added."""

from twisted.internet.testing import StringTransport

from mailcheck.smtp.receive_path import Wire


class CountingTransport(StringTransport):
    """A transport that counts the writes."""

    writes = 0

    def write(self, data: bytes) -> None:
        """Count a write."""
        self.writes += 1
        super().write(data)


def test_replies_leave_together() -> None:
    """All replies that were added before a flush are one write; an empty flush is none."""
    transport = CountingTransport()
    wire = Wire(transport)
    wire.add(b"250 one\r\n")
    wire.add(b"250 two\r\n")
    assert transport.writes == 0
    wire.flush()
    wire.flush()
    assert (transport.writes, transport.value()) == (1, b"250 one\r\n250 two\r\n")


def test_replies_keep_their_order() -> None:
    """A later flush writes behind an earlier one, and closing writes what is left first."""
    transport = CountingTransport()
    wire = Wire(transport)
    for reply in (b"250 one\r\n", b"250 two\r\n"):
        wire.add(reply)
        wire.flush()
    wire.add(b"221 three\r\n")
    wire.hang_up()
    assert transport.value() == b"250 one\r\n250 two\r\n221 three\r\n"
    assert transport.disconnecting
