"""What a client has sent and nobody has looked at yet: lines, and parts that are no lines."""

from typing import Protocol

CRLF = b"\r\n"


class LineTooLong(Exception):
    """A line was longer than allowed; it has been skipped."""


class BareLineEnding(Exception):
    """A command line holds a CR or LF that stands alone, or a NUL (RFC 5321 2.3.8)."""


class Reader(Protocol):
    """Takes input that is not a command: a message, a chunk, a line of AUTH."""

    def feed(self, data: bytes, start: int) -> int | None:
        """Take in ``data`` from ``start``; give the position behind its part, once complete."""


class LineInput:
    """A buffer that copies no byte more than a few times, however the input is cut."""

    __slots__ = ("_arrived", "_buffer", "_is_skipping", "_max_line", "_position", "arrived_size")

    def __init__(self, max_line: int) -> None:
        """Take lines of at most ``max_line`` octets, CRLF included."""
        self._max_line = max_line
        self._buffer = b""
        self._position = 0
        self._arrived: list[bytes] = []
        self._is_skipping = False
        self.arrived_size = 0

    def add(self, data: bytes) -> None:
        """Keep what has arrived until `gather` is called; ``arrived_size`` octets by now."""
        self._arrived.append(data)
        self.arrived_size += len(data)

    def gather(self) -> None:
        """Make all that has arrived ready to be taken."""
        rest = self._buffer[self._position :]
        if rest or len(self._arrived) > 1:
            self._buffer = b"".join((rest, *self._arrived))
        else:
            self._buffer = self._arrived[0] if self._arrived else b""
        self._position = 0
        self._arrived.clear()
        self.arrived_size = 0

    @property
    def has_more(self) -> bool:
        """Tell whether there is anything that was not taken yet."""
        return self._position < len(self._buffer)

    def drop(self) -> None:
        """Forget all that was not taken yet."""
        self._position = len(self._buffer)

    def feed(self, reader: Reader) -> bool:
        """Give the reader its part; tell whether it has all of it."""
        end = reader.feed(self._buffer, self._position)
        self._position = len(self._buffer) if end is None else end
        return end is not None

    def take_line(self) -> bytes | None:
        """Take a line, without its CRLF; nothing while its end is not there.

        :raises LineTooLong: the line was too long; once, when its end is there.
        :raises BareLineEnding: what follows can't be told into lines safely.
        """
        start = self._position
        end = self._buffer.find(CRLF, start, start + self._max_line)
        if end < 0 or self._is_skipping:
            self._skip_or_wait()
            return None
        line = self._buffer[start:end]
        if b"\n" in line or b"\r" in line or b"\0" in line:
            raise BareLineEnding
        self._position = end + len(CRLF)
        return line

    def _skip_or_wait(self) -> None:
        rest = self._buffer[self._position :]
        if not self._is_skipping:
            if b"\n" in rest[: self._max_line]:
                raise BareLineEnding
            if len(rest) < self._max_line:
                return
            self._is_skipping = True
        end = rest.find(CRLF)
        if end < 0:
            self._position += len(rest) - rest.endswith(b"\r")
            return
        self._position += end + len(CRLF)
        self._is_skipping = False
        raise LineTooLong
