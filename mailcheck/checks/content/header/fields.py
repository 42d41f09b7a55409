"""The header section: its fields, their unfolding, and a summary of author and subject."""

import re
from collections.abc import Sequence
from email.utils import parsedate_to_datetime
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.checks.content.charsets import find_declared_charset
from mailcheck.checks.content.decoding import decode_header_bytes, decode_words, is_utf_8
from mailcheck.checks.content.header.mailboxes import parse_first_mailbox, parse_mailboxes
from mailcheck.checks.content.limits import (
    KIB,
    MAX_HEADER_BYTES,
    MAX_HEADER_FIELDS,
    MAX_SHORT_HEADER,
)
from mailcheck.core.content import HeaderSummary
from mailcheck.core.instants import Instant, instant_of

# A name, a colon, a body with its continuation lines. The quantifiers are possessive, so a line
# that is not a field fails at once.
_FIELD = re.compile(rb"([\x21-\x39\x3b-\x7e]++)[ \t]*+:([^\n]*+(?>(?:\n[ \t][^\n]*+)*))\n?")
# An encoded word that an encoder of bodies has divided into lines (RFC 2045 6.7, 6.8), and its
# other lines, which have no fold: with soft line breaks, or of base64.
_CUT_WORD = re.compile(
    rb"=\?[^?\s]{1,64}\?(?:[qQ]\?[^?\s]*+(?<==)|(?P<base64>[bB])\?[A-Za-z0-9+/]*+)\r?\Z"
)
_END_OF_WORD = rb"\?=[^\n]*+(?>(?:\n[ \t][^\n]*+)*)\n?"
_REST_OF_WORD = re.compile(rb"(?>(?:[^?\s]*=\r?\n[ \t]*+)*)[^?\s]*+" + _END_OF_WORD)
_REST_OF_BASE64 = re.compile(rb"(?>(?:[A-Za-z0-9+/]++\r?\n)*)[A-Za-z0-9+/=]*+" + _END_OF_WORD)
_BLANK_LINE = re.compile(rb"\r?\n")
_END_OF_SECTION = re.compile(rb"\n\r?\n")
_MBOX_LINE = re.compile(rb">?From (?![ \t]*+:)[^\n]*\n")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


_TOO_LONG = f"{MAX_HEADER_BYTES // KIB} KiB"
_NO_FIELD = "a line of the header section is not a header field; it is left out"
_END_IN_TEXT = "the header section ends in a line that is not a header field"

_PART_FIELD = re.compile(rb"\ncontent-[a-z-]++[ \t]*+:", re.IGNORECASE)
_COMMON_FIELD = re.compile(
    rb"\n(?:(?:arc|content|dkim|list|resent|x)-[a-z0-9_-]++|from|to|cc|bcc|subject|date|message-id"
    rb"|mime-version|reply-to|sender|received|return-path|references|in-reply-to|delivered-to"
    rb"|received-spf|authentication-results|user-agent|auto-submitted|precedence)[ \t]*+:",
    re.IGNORECASE,
)

_FEW = 3 * MAX_HEADER_FIELDS
"""Octets in which no more fields can stand than are read: each has a name, a colon and an end."""

_PREAMBLES = (_BYTE_ORDER_MARK, b"From ", b">From ", b"\n", b"\r\n")


class HeaderField(Struct, frozen=True):
    """One field: its name as written, its body unfolded, in bytes.

    ``charset`` is the label that the mail declares, where the body has raw octets that are not
    UTF-8 (RFC 6532).
    """

    name: str
    body: bytes
    charset: str = ""

    def as_text(self) -> str:
        """Return the body as text with its encoded words unchanged."""
        return decode_header_bytes(self.body, self.charset)

    def decode(self) -> str:
        """Return the body as text with its encoded words decoded (RFC 2047)."""
        return decode_words(self.as_text())


class HeaderSection(Struct, frozen=True):
    """The fields of an entity and the offset at which its body starts."""

    fields: tuple[HeaderField, ...]
    body_start: int
    problems: tuple[str, ...]

    def find(self, name: str) -> HeaderField | None:
        """Find the first field of a (lower case) name."""
        return next((field for field in self.fields if field.name.lower() == name), None)


def split_header(
    raw_message: bytes, start: int, end: int, max_fields: int = MAX_HEADER_FIELDS
) -> HeaderSection:
    """Read the header section that begins at ``start``.

    The section ends at the empty line (RFC 5322 2.1). A line that is not a field is skipped if
    fields that every mail may have follow it, or if it is one of the last `MAX_STRAY_LINES`.
    Otherwise the empty line is missing, and the body begins there.
    """
    fields: list[HeaderField] = []
    problems: list[str] = []
    limit = min(end, start + MAX_HEADER_BYTES)
    position = _skip_preamble(raw_message, start, limit)
    strays = _StrayLines(raw_message, limit, _PART_FIELD if start else _COMMON_FIELD)
    while position < end:
        blank = _BLANK_LINE.match(raw_message, position, end)
        if blank:
            position = blank.end()
            break
        if len(fields) == max_fields or position >= limit:
            excess = f"{max_fields} fields" if len(fields) == max_fields else _TOO_LONG
            problems.append(f"a header section has more than {excess}: the rest is left out")
            blank = _END_OF_SECTION.search(raw_message, max(0, position - 1), end)
            position = blank.end() if blank else end
            break
        match = _FIELD.match(raw_message, position, limit)
        if match is None:
            following = strays.skip(position, has_fields=bool(fields))
            problems.append(_END_IN_TEXT if following is None else _NO_FIELD)
            if following is None:
                break
            position = following
            continue
        body, position = _complete_word(raw_message, match[2], match.end(), limit)
        fields.append(HeaderField(match[1].decode("ascii"), unfold(body)))
    if not raw_message[start:position].isascii():
        fields = _declare_charset(raw_message, fields)
    return HeaderSection(tuple(fields), position, tuple(dict.fromkeys(problems)))


MAX_STRAY_LINES = 2
"""Maximum number of lines before the empty line that are left out because they are not fields. More
lines are text whose empty line is missing."""

_END_OF_FIELD = re.compile(rb"\n(?![ \t])")
_ANY_FIELD = re.compile(rb"\n(?=[\x21-\x39\x3b-\x7e]++[ \t]*+:)")


def _skip_preamble(raw_message: bytes, start: int, limit: int) -> int:
    """Return where the fields begin: after a byte order mark and an mbox line."""
    if start:
        return start
    if raw_message.startswith(_BYTE_ORDER_MARK):
        start = len(_BYTE_ORDER_MARK)
    mbox_line = _MBOX_LINE.match(raw_message, start, limit)
    return mbox_line.end() if mbox_line else start


def _complete_word(raw_message: bytes, body: bytes, position: int, limit: int) -> tuple[bytes, int]:
    """Add the lines at ``position`` to a field that ends within an encoded word."""
    lines = [body]
    while (start := lines[-1].rfind(b"=?")) >= 0 and (cut := _CUT_WORD.match(lines[-1], start)):
        pattern = _REST_OF_BASE64 if cut["base64"] else _REST_OF_WORD
        rest = pattern.match(raw_message, position, limit)
        if rest is None:
            break
        lines.append(_END_OF_FIELD.sub(b"\n ", rest[0].rstrip()))
        position = rest.end()
    return b"\n ".join(lines), position


class _StrayLines(Struct):
    """Skips lines that are not fields, in one pass over the section."""

    raw_message: bytes
    limit: int
    expected: re.Pattern[bytes]
    end: int = -1
    is_closed: bool = False
    expected_at: int = -1

    def skip(self, position: int, *, has_fields: bool) -> int | None:
        """Return where the next field or the empty line is, or `None` if the body begins here."""
        if self.end < 0:
            blank = _END_OF_SECTION.search(self.raw_message, position, self.limit)
            self.end = blank.start() + 1 if blank else self.limit
            self.is_closed = blank is not None
        if self.expected_at < position:
            found = self.expected.search(self.raw_message, position, self.end)
            self.expected_at = self.limit if found is None else found.start()
        if self.expected_at == self.limit and not (has_fields and self._are_last(position)):
            return None
        following = _ANY_FIELD.search(self.raw_message, position, self.end)
        return self.end if following is None else following.end()

    def _are_last(self, position: int) -> bool:
        lines = _END_OF_FIELD.finditer(self.raw_message, position, self.end)
        return self.is_closed and len(list(islice(lines, MAX_STRAY_LINES + 1))) <= MAX_STRAY_LINES


def _declare_charset(raw_message: bytes, fields: Sequence[HeaderField]) -> list[HeaderField]:
    """Add the charset that the mail declares to the fields whose raw octets are not UTF-8."""
    if all(is_utf_8(field.body) for field in fields):
        return list(fields)
    label = find_declared_charset(raw_message)
    return [field if is_utf_8(field.body) else replace(field, charset=label) for field in fields]


def unfold(body: bytes) -> bytes:
    """Undo folding (RFC 5322 2.2.3) and trim the white space around the body."""
    if b"\n" in body:
        body = body.replace(b"\r\n", b"").replace(b"\n", b"")
    return body.strip()


def parse_moment(text: str) -> Instant | None:
    """Return the moment of a date in a header (RFC 5322 3.3), or `None` if it is not one."""
    try:
        return instant_of(parsedate_to_datetime(text.strip()).timestamp())
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def summarize_header(raw_message: bytes) -> HeaderSummary:
    """Read author and subject as `split_header` does; a missing or broken one is "".

    Never raises, and takes time linear in the size of the header.
    """
    author, subject = _find_bodies(raw_message)
    label = ""
    if not (is_utf_8(author) and is_utf_8(subject)):
        label = find_declared_charset(raw_message)
    authors = decode_header_bytes(author, label)
    address, name = parse_first_mailbox(authors)
    others = parse_mailboxes(authors)[1:] if authors.count("@") > 1 else ()
    return HeaderSummary(
        address,
        name,
        decode_words(decode_header_bytes(subject, label)).strip(),
        ", ".join(f"{name} <{address}>".strip() for address, name in others),
    )


def _find_bodies(raw_message: bytes) -> tuple[bytes, bytes]:
    """Find From and Subject without parsing the whole header, which costs more."""
    blank = _END_OF_SECTION.search(raw_message, 0, MAX_SHORT_HEADER)
    end = blank.start() if blank else len(raw_message)
    if end <= MAX_SHORT_HEADER and not raw_message.startswith(_PREAMBLES):
        header = b"\n" + raw_message[:end]
        lowered = header.lower()
        author = _find_start(lowered, b"\nfrom")
        subject = _find_start(lowered, b"\nsubject")
        last = max(author, subject)
        if last < _FEW or header.count(b"\n", 0, last) < MAX_HEADER_FIELDS:
            return _read_body(header, author), _read_body(header, subject)
    section = split_header(raw_message, 0, len(raw_message))
    found = (section.find("from"), section.find("subject"))
    return found[0].body if found[0] else b"", found[1].body if found[1] else b""


_COLON = re.compile(rb"[ \t]*+:")  # RFC 5322 4.5 allows white space before it


def _find_start(lowered: bytes, name: bytes) -> int:
    """Return where the body of the first field with a name begins, or -1 if there is none."""
    at = lowered.find(name)
    while at >= 0:
        colon = _COLON.match(lowered, at + len(name))
        if colon is not None:
            return colon.end()
        at = lowered.find(name, at + 1)
    return -1


def _read_body(header: bytes, start: int) -> bytes:
    if start < 0:
        return b""
    match = _END_OF_FIELD.search(header, start)
    end = match.start() if match else len(header)
    body, _ = _complete_word(header, header[start:end], end + 1, len(header))
    return unfold(body)


def unsubscribe_addresses(header_list: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Return the addresses of List-Unsubscribe: "<https://...>, <mailto:...>" (RFC 2369 3.2).

    Requesting one of them may unsubscribe.
    """
    values = (value for name, value in header_list if name.lower() == "list-unsubscribe")
    return tuple(piece.strip().strip("<>") for value in values for piece in value.split(","))
