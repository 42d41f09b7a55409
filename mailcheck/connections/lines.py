"""Splits the input of a connection into lines, without I/O."""

import typing

MAX_HELD_INPUT = 65_536
"""Octets buffered while an answer is pending. When they are exceeded, reading stops."""

CRLF = b"\r\n"

HTTP_METHODS = frozenset(
    {b"GET", b"POST", b"PUT", b"HEAD", b"OPTIONS", b"DELETE", b"PATCH", b"CONNECT"}
)
"""Requests that a web page made a browser send to a mail server."""


class CommandError(Exception):
    """A command is rejected; ``args[0]`` is the reply."""

    @property
    def reply(self) -> bytes:
        """The reply as bytes for the wire."""
        answer: bytes = self.args[0]
        return answer


class LineTooLong(Exception):
    """A line is longer than allowed. It has been skipped."""


class BareLineEnding(Exception):
    """A command line contains a bare CR, a bare LF or a NUL (RFC 5321 2.3.8)."""


class Reader(typing.Protocol):
    """Reads input that is not a command, such as a message or a line of AUTH."""

    def feed(self, data: bytes, start: int) -> int | None:
        """Read ``data`` from ``start``; return the end position once complete, or `None`."""


class LineInput:
    """A line buffer that copies each byte only a few times, however the input is split."""

    __slots__ = ("_buffer", "_held", "_is_skipping", "_max_line", "_position", "held_size")

    def __init__(self, max_line: int) -> None:
        """Accept lines of at most ``max_line`` octets, including CRLF."""
        self._max_line = max_line
        self._buffer = b""
        self._position = 0
        self._held: list[bytes] = []
        self._is_skipping = False
        self.held_size = 0

    def hold(self, data: bytes) -> None:
        """Store input until the next `add`; ``held_size`` is its size in octets."""
        self._held.append(data)
        self.held_size += len(data)

    def add(self, data: bytes) -> None:
        """Make input available, after the unread rest and the held input."""
        if self._held or self._position < len(self._buffer):
            data = b"".join((self._buffer[self._position :], *self._held, data))
            self._held.clear()
            self.held_size = 0
        self._buffer = data
        self._position = 0

    @property
    def has_more(self) -> bool:
        """Whether there is unread input."""
        return self._position < len(self._buffer)

    def drop(self) -> None:
        """Discard all unread input."""
        self._position = len(self._buffer)

    def feed(self, reader: Reader) -> bool:
        """Pass input to the reader; return whether the reader is complete."""
        end = reader.feed(self._buffer, self._position)
        self._position = len(self._buffer) if end is None else end
        return end is not None

    def take_line(self) -> bytes | None:
        """Return the next line without its CRLF, or `None` if it is incomplete.

        :raises LineTooLong: the line is too long. Raised once, when the end of the line is found.
        :raises BareLineEnding: the input cannot be split into lines safely.
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
