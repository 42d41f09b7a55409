"""Cursors: opaque positions of messages in an inbox.

A position is a counter of the inbox, advanced in the transaction that inserts
the message, so a cursor is exact where a clock or a database sequence is not.
"""

import re
from typing import NewType

from mailcheck.core.errors import InvalidParameter

Position = NewType("Position", int)

START: Position = Position(0)
"""The position before the first message of any inbox."""

_PREFIX = "c"
_CURSOR = re.compile(r"c(0|[1-9a-f][0-9a-f]{0,14})", re.ASCII)

CURSOR_PATTERN = f"^{_CURSOR.pattern}$"
"""Pattern of all cursors, for any inbox."""


def format_cursor(position: Position) -> str:
    """Return the cursor for a position, a text that clients pass back unchanged."""
    return f"{_PREFIX}{position:x}"


def parse_cursor(text: str) -> Position:
    """Parse a cursor that `format_cursor` wrote.

    :raises ValueError: the text was not made by this service.
    """
    if not is_cursor(text):
        raise ValueError("not a cursor of this service")
    return Position(int(text[len(_PREFIX) :], 16))


def is_cursor(text: str) -> bool:
    """Return whether the text has the form of a cursor."""
    return _CURSOR.fullmatch(text) is not None


def require_reached(after: Position, last_position: Position) -> None:
    """Reject a cursor that the inbox has not reached, since it belongs to another inbox.

    :raises InvalidParameter: for the parameter ``after``.
    """
    if after > last_position:
        raise InvalidParameter("after", "after is a cursor of another inbox")
