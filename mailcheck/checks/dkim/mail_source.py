"""A mail as DKIM sees it: header fields and body, byte for byte (RFC 6376 3.4).

What is shown to people is taken apart by `mailcheck.checks.content`, which
unfolds and cuts; a signature covers every blank.
"""

import re
from functools import cached_property

from msgspec import Struct

from mailcheck.checks.content.decoding import end_lines
from mailcheck.checks.dkim.dkimpy_linear import CRLF, Field

MAX_FIELDS = 10_000
"""Header fields that are read; mail through many lists has about 150."""

# A name, a colon, a body with its continuation lines. Possessive: a line that
# is no field is given up at once.
_FIELD = re.compile(rb"([\x21-\x39\x3b-\x7e]++[ \t]*+):([^\n]*+(?:\n[ \t][^\n]*+)*+\n?)")
_BLANK_LINE = re.compile(rb"\r?\n")
_MBOX_LINE = re.compile(rb">?From [^\n]*+\n")


class MailSource(Struct, frozen=True, dict=True):
    """The fields as they came, topmost first, and the body; every line ends in CRLF.

    A name keeps blanks before its colon. ``is_whole`` is false when there are
    more fields than are read: then no signature can be judged.
    """

    fields: tuple[Field, ...]
    body: bytes
    is_whole: bool

    @cached_property
    def by_name(self) -> dict[bytes, list[Field]]:
        """Group the fields by their names in lower case."""
        found: dict[bytes, list[Field]] = {}
        for field in self.fields:
            found.setdefault(field[0].rstrip().lower(), []).append(field)
        return found

    def named(self, name: bytes) -> tuple[bytes, ...]:
        """Give the bodies of all fields of a (lower case) name, topmost first."""
        return tuple(body for _, body in self.by_name.get(name, ()))


def split_mail(raw_message: bytes) -> MailSource:
    """Split a mail of any bytes, in one pass; a line that is no field begins the body.

    Line ends without CR (a file that was saved on Unix) are read as CRLF.
    """
    fields: list[Field] = []
    mbox_line = _MBOX_LINE.match(raw_message)
    position = mbox_line.end() if mbox_line else 0
    is_whole = True
    while position < len(raw_message):
        blank = _BLANK_LINE.match(raw_message, position)
        if blank:
            position = blank.end()
            break
        match = _FIELD.match(raw_message, position)
        if match is None:
            break
        if len(fields) == MAX_FIELDS:
            is_whole = False
            break
        body = end_lines(match[2])
        fields.append((match[1], body if body.endswith(CRLF) else body + CRLF))
        position = match.end()
    return MailSource(tuple(fields), end_lines(raw_message[position:]), is_whole)
