"""Reading the parts of a command: atoms, strings, literals, numbers and sets (RFC 9051 9)."""

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")

_ATOM = re.compile(rb"[^\x00-\x20\x7f-\xff(){%*\"\\\]]+")
_ASTRING = re.compile(rb"[^\x00-\x20\x7f-\xff(){%*\"\\]+")
_LIST_MAILBOX = re.compile(rb"[^\x00-\x20\x7f-\xff(){\"\\]+")
_TAG = re.compile(rb"[^\x00-\x20\x7f-\xff(){%*\"\\+]+")
_QUOTED = re.compile(rb'"((?:[^"\\\r\n\x00]|\\["\\])*)"')
_ESCAPED = re.compile(rb'\\(["\\])')
_BASE64 = re.compile(rb"[A-Za-z0-9+/]*={0,2}")
_ITEM_NAME = re.compile(rb"[A-Za-z0-9.]+\[?")
_SECTION_TEXT = re.compile(rb"[A-Za-z.]+")
_NUMBER = re.compile(rb"\d{1,20}")
_FLAG = re.compile(rb"\\?[^\x00-\x20\x7f-\xff(){%*\"\\\]]+")
_SET = re.compile(
    rb"(?:\d{1,20}|\*)(?::(?:\d{1,20}|\*))?(?:,(?:\d{1,20}|\*)(?::(?:\d{1,20}|\*))?)*"
)
LITERAL = re.compile(rb"~?\{(\d{1,12})(\+)?\}\Z")
"""The announcement of a literal, at the end of a line (RFC 9051 4.3, RFC 3516)."""

MAX_NUMBER = 2**32 - 1
MAX_LARGE_NUMBER = 2**63 - 1


class SyntaxProblem(Exception):
    """A command is not valid. The text names the problem."""


SequenceSet = tuple[tuple[int | None, int | None], ...] | None
"""Ranges of numbers or UIDs; in them `None` is ``*``. `None` alone is ``$``, the saved result."""


class Scanner:
    """Reads one command from its lines, and the literals between them.

    A line that is followed by a literal ends with its announcement.
    """

    def __init__(self, lines: Sequence[bytes], literals: Sequence[bytes]) -> None:
        self._lines = lines
        self._literals = literals
        self._number = 0
        self._line = lines[0]
        self._position = 0

    @property
    def is_at_end(self) -> bool:
        """Whether the whole command has been read."""
        return self._position == len(self._line) and self._number == len(self._literals)

    def sees(self, octets: bytes) -> bool:
        """Return whether these octets follow."""
        return self._line.startswith(octets, self._position)

    def skip(self, octets: bytes) -> bool:
        """Skip these octets if they follow; return whether they did."""
        if not self.sees(octets):
            return False
        self._position += len(octets)
        return True

    def expect(self, octets: bytes) -> None:
        """Skip these octets.

        :raises SyntaxProblem: something else follows.
        """
        if not self.skip(octets):
            raise SyntaxProblem(f"{_show(octets)} is missing before {self._rest}")

    def space(self) -> None:
        """Skip one space."""
        self.expect(b" ")

    def end(self) -> None:
        """Check that the command ends here."""
        if not self.is_at_end:
            raise SyntaxProblem(f"unexpected {self._rest} at the end of the command")

    def tag(self) -> bytes:
        """Read the tag of the command."""
        return self._match(_TAG, "a tag")

    def atom(self) -> bytes:
        """Read an atom."""
        return self._match(_ATOM, "a word")

    def word(self) -> str:
        """Read an atom that is a name of the protocol, in upper case."""
        return self.atom().decode("ascii").upper()

    def flag(self) -> bytes:
        """Read a flag or a keyword."""
        return self._match(_FLAG, "a flag")

    def number(self, most: int = MAX_NUMBER) -> int:
        """Read a number."""
        number = int(self._match(_NUMBER, "a number"))
        if number > most:
            raise SyntaxProblem(f"{number} is larger than {most}")
        return number

    def astring(self) -> bytes:
        """Read a word or a string."""
        found = self._try(_ASTRING)
        return self.string() if found is None else found

    def list_mailbox(self) -> bytes:
        """Read a pattern of mailbox names, with its wildcards."""
        found = self._try(_LIST_MAILBOX)
        return self.string() if found is None else found

    def string(self) -> bytes:
        """Read a quoted string or a literal."""
        match = _QUOTED.match(self._line, self._position)
        if match is not None:
            self._position = match.end()
            return _ESCAPED.sub(rb"\1", match[1])
        return self.literal()

    def literal(self) -> bytes:
        """Read a literal."""
        match = LITERAL.match(self._line, self._position)
        if match is None or self._number == len(self._literals):
            raise SyntaxProblem(f"a string is missing before {self._rest}")
        literal = self._literals[self._number]
        self._number += 1
        self._line = self._lines[self._number]
        self._position = 0
        return literal

    def base64(self) -> bytes:
        """Read an initial response, which is ``=`` if it is empty (RFC 4959 3)."""
        return self._match(_BASE64, "base64")

    def item_name(self) -> str:
        """Read the name of an item of FETCH in upper case, with the bracket behind it."""
        return self._match(_ITEM_NAME, "an item").decode("ascii").upper()

    def peek_name(self) -> str:
        """Return the name of the item that follows, or an empty text."""
        match = _ITEM_NAME.match(self._line, self._position)
        return "" if match is None else match[0].decode("ascii").upper()

    def section_text(self) -> str:
        """Read the name of a section, such as ``HEADER.FIELDS``, in upper case."""
        return self._match(_SECTION_TEXT, "a section").decode("ascii").upper()

    def sees_digit(self) -> bool:
        """Return whether a digit follows."""
        return self._line[self._position : self._position + 1].isdigit()

    def skip_word(self, word: bytes) -> bool:
        """Skip a word in upper case or lower case if it follows; return whether it did."""
        end = self._position + len(word)
        if self._line[self._position : end].upper() != word:
            return False
        self._position = end
        return True

    def nstring(self) -> bytes | None:
        """Read a string, or ``NIL`` as `None`."""
        if self._line[self._position : self._position + 3].upper() == b"NIL":
            self._position += 3
            return None
        return self.string()

    def items(self, read: Callable[[], T], *, may_be_empty: bool = False) -> list[T]:
        """Read a list in parentheses."""
        self.expect(b"(")
        found: list[T] = []
        if may_be_empty and self.skip(b")"):
            return found
        found.append(read())
        while not self.skip(b")"):
            self.space()
            found.append(read())
        return found

    def sequence_set(self) -> SequenceSet:
        """Read a set of message numbers or UIDs."""
        if self.skip(b"$"):
            return None
        ranges: list[tuple[int | None, int | None]] = []
        for written in self._match(_SET, "a set of numbers").split(b","):
            first, _, last = written.partition(b":")
            ranges.append((_bound(first), _bound(last or first)))
        return tuple(ranges)

    def _try(self, pattern: re.Pattern[bytes]) -> bytes | None:
        match = pattern.match(self._line, self._position)
        if match is None:
            return None
        self._position = match.end()
        return match[0]

    def _match(self, pattern: re.Pattern[bytes], wanted: str) -> bytes:
        found = self._try(pattern)
        if found is None:
            raise SyntaxProblem(f"{wanted} is missing before {self._rest}")
        return found

    @property
    def _rest(self) -> str:
        rest = self._line[self._position :]
        return _show(rest) if rest else "the end"


def _bound(written: bytes) -> int | None:
    if written == b"*":
        return None
    number = int(written)
    if not 1 <= number <= MAX_NUMBER:
        raise SyntaxProblem(f"{number} is not a number of a message")
    return number


def _show(octets: bytes) -> str:
    shown = octets[:20].decode("ascii", "replace").replace("\ufffd", "?")
    return f"'{shown}...'" if len(octets) > 20 else f"'{shown}'"
