"""The header section of an entity, split into fields (RFC 5322 2.2), within the caps."""

import re
from dataclasses import dataclass

from mailcheck.checks.content.charsets import decode_header_bytes
from mailcheck.checks.content.encoded_words import decode_words
from mailcheck.checks.content.limits import MAX_HEADER_BYTES, MAX_HEADER_FIELDS

# A name, a colon, a body with its continuation lines. Possessive: a line that
# is no field is given up at once.
_FIELD = re.compile(
    rb"([\x21-\x39\x3b-\x7e]++)[ \t]*+:([^\n]*+(?:\n[ \t][^\n]*+)*+)\n?",
)
_BLANK_LINE = re.compile(rb"\r?\n")
_END_OF_SECTION = re.compile(rb"\n\r?\n")
_MBOX_LINE = re.compile(rb"(?:>?From |\xef\xbb\xbf)[^\n]*\n")


@dataclass(frozen=True, slots=True)
class HeaderField:
    """One field: its name as written, its body unfolded, in bytes."""

    name: str
    body: bytes

    def decode(self) -> str:
        """Give the body as text, RFC 2047 undone."""
        return decode_words(decode_header_bytes(self.body))


@dataclass(frozen=True, slots=True)
class HeaderSection:
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
    """Read the header section that begins at ``start``; a line that is no field ends it."""
    fields: list[HeaderField] = []
    problems: list[str] = []
    limit = min(end, start + MAX_HEADER_BYTES)
    mbox_line = _MBOX_LINE.match(raw_message, start, limit) if start == 0 else None
    position = mbox_line.end() if mbox_line else start
    while position < end:
        blank = _BLANK_LINE.match(raw_message, position, end)
        if blank:
            position = blank.end()
            break
        if len(fields) == max_fields or position >= limit:
            problems.append(_describe_excess(len(fields) == max_fields, max_fields))
            position = _skip_section(raw_message, position, end)
            break
        match = _FIELD.match(raw_message, position, limit)
        if match is None:
            problems.append("the header section ends in a line that is no header field")
            break
        fields.append(HeaderField(match[1].decode("ascii"), unfold(match[2])))
        position = match.end()
    return HeaderSection(tuple(fields), position, tuple(problems))


def unfold(body: bytes) -> bytes:
    """Undo folding (RFC 5322 2.2.3) and trim the white space around the body."""
    if b"\n" in body:
        body = body.replace(b"\r\n", b"").replace(b"\n", b"")
    return body.strip()


def _describe_excess(has_many: bool, max_fields: int) -> str:
    if has_many:
        return f"a header section has more than {max_fields} fields: the rest is left out"
    return f"a header section has more than {MAX_HEADER_BYTES} bytes: the rest is left out"


def _skip_section(raw_message: bytes, position: int, end: int) -> int:
    blank = _END_OF_SECTION.search(raw_message, max(0, position - 1), end)
    return blank.end() if blank else end
