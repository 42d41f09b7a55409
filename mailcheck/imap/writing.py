"""Parts of responses (RFC 9051 9)."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from mailcheck.checks.content.mime_parts import write_string
from mailcheck.core.instants import Instant
from mailcheck.imap.mailbox_names import encode_name
from mailcheck.imap.parsing import MONTHS

CRLF = b"\r\n"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def literal(octets: bytes, *, is_binary: bool = False) -> bytes:
    """Return a literal; a binary one may have NUL (RFC 3516 4.2)."""
    return b"%s{%d}\r\n%s" % (b"~" if is_binary else b"", len(octets), octets)


def write_name(name: str, *, is_utf_8: bool) -> bytes:
    """Return the name of a mailbox as a quoted string."""
    if not is_utf_8:
        return write_string(encode_name(name))
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return b'"%s"' % escaped.encode("utf-8", "replace")


def write_flags(flags: Iterable[str]) -> bytes:
    """Return a list of flags."""
    return b"(%s)" % " ".join(sorted(flags)).encode("ascii")


def write_date_time(instant: Instant) -> bytes:
    """Return a date and a time in UTC (RFC 9051 9, date-time)."""
    moment = _EPOCH + timedelta(milliseconds=instant)
    month = MONTHS[moment.month - 1]
    return f'"{moment.day:2d}-{month}-{moment:%Y %H:%M:%S} +0000"'.encode("ascii")


def write_set(numbers: Sequence[int]) -> bytes:
    """Return a set of increasing numbers, with ranges."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return b",".join(
        b"%d" % first if first == last else b"%d:%d" % (first, last) for first, last in ranges
    )


def response_text(text: str) -> bytes:
    """Return a text for people in one line of ASCII."""
    return text.encode("ascii", "replace").replace(b"\r", b" ").replace(b"\n", b" ")
