"""Authentication by SASL (RFC 4422): lines of an exchange, and the mechanism PLAIN."""

import binascii

from msgspec import Struct

from mailcheck.connections.lines import CRLF

MAX_AUTH_LINE = 12_288
"""Maximum number of octets of a line of an AUTH exchange, RFC 4954 4."""


class ResponseReader:
    """Reads one line of the AUTH exchange. ``line`` is `None` if it was too long."""

    __slots__ = ("_is_too_long", "_part", "line")

    def __init__(self) -> None:
        self._part = b""
        self._is_too_long = False
        self.line: bytes | None = None

    def feed(self, data: bytes, start: int) -> int | None:
        """Read ``data`` from ``start``; return the position after the line, or `None`."""
        window = self._part + data[start:]
        end = window.find(CRLF)
        self._is_too_long = self._is_too_long or end > MAX_AUTH_LINE
        if end < 0:
            self._is_too_long = self._is_too_long or len(window) > MAX_AUTH_LINE
            self._part = window[-1:] if self._is_too_long else window
            return None
        if not self._is_too_long:
            self.line = window[:end]
        return start + end + len(CRLF) - len(self._part)


class PlainCredentials(Struct, frozen=True):
    """A user name and a password, decoded by `decode_text`."""

    user: str
    password: str


def decode_base64(response: bytes) -> bytes:
    """Decode a response of the client.

    :raises ValueError: it is not valid base64.
    """
    try:
        return binascii.a2b_base64(response, strict_mode=True)
    except binascii.Error:
        raise ValueError("not valid base64") from None


def parse_plain(response: bytes) -> PlainCredentials:
    """Parse ``authorization NUL user NUL password`` (RFC 4616 2). The first part is ignored.

    :raises ValueError: the response does not have three parts.
    """
    parts = response.split(b"\0")
    if len(parts) != 3:
        raise ValueError("PLAIN needs an authorization identity, a user name and a password")
    return PlainCredentials(decode_text(parts[1]), decode_text(parts[2]))


def decode_text(part: bytes) -> str:
    """Decode a user name or a password. Octets that are not UTF-8 become surrogates."""
    return part.decode("utf-8", "surrogateescape")
