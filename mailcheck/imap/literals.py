"""The literals of commands: reading them, and the memory that they take."""

import re

from msgspec import Struct

from mailcheck.imap.scanning import LITERAL

NON_SYNCHRONIZING = 4_096
"""Maximum octets of a literal that the client sends without waiting (RFC 7888 5, LITERAL-)."""

MAX_LITERALS = 200
"""Maximum number of literals of one command."""

MAX_STRINGS = 65_536
"""Maximum octets of all literals of a command other than APPEND."""

BEFORE_LOGIN = 4_096
"""Maximum octets of all literals of a command before the login."""

_APPEND = re.compile(rb"[^ ]+ APPEND ", re.IGNORECASE)


class LiteralReader:
    """Reads the octets of a literal."""

    __slots__ = ("_left", "_pieces")

    def __init__(self, size: int) -> None:
        self._left = size
        self._pieces: list[bytes] = []

    def feed(self, data: bytes, start: int) -> int | None:
        """Read ``data`` from ``start``; return the end of the literal, or `None`."""
        piece = data[start : start + self._left]
        self._pieces.append(piece)
        self._left -= len(piece)
        return None if self._left else start + len(piece)

    @property
    def octets(self) -> bytes:
        """The octets that were read."""
        return b"".join(self._pieces)


class MemoryBudget(Struct, eq=False):
    """The memory for mails that are being appended over all connections of a port."""

    octets: int

    def take(self, octets: int) -> bool:
        """Take some memory; return whether there was enough."""
        if octets > self.octets:
            return False
        self.octets -= octets
        return True

    def give_back(self, octets: int) -> None:
        """Return memory that was taken."""
        self.octets += octets


class PendingCommand:
    """A command of which the first lines and literals have arrived."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.literals: list[bytes] = []
        self.held = 0

    @property
    def tag(self) -> bytes:
        """The tag, or ``*`` if the command has none."""
        return tag_of(self.lines[0]) if self.lines else b"*"

    @property
    def is_append(self) -> bool:
        """Whether the command appends a mail."""
        return bool(self.lines) and _APPEND.match(self.lines[0]) is not None


_TAG = re.compile(rb"[!#$&',-\[\]-z|}~.]{1,64}")


def tag_of(line: bytes) -> bytes:
    """Return the tag of a line, or ``*`` if it has none."""
    match = _TAG.match(line)
    return b"*" if match is None or line[match.end() : match.end() + 1] not in b" " else match[0]


def find_literal(line: bytes) -> tuple[int, bool] | None:
    """Return the size of the literal after a line, and whether the client waits before it."""
    match = LITERAL.search(line)
    return None if match is None else (int(match[1]), match[2] is None)
