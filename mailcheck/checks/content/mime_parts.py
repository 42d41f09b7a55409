"""The parts of a mail as mail programs number them, and their description (RFC 9051 7.5.2).

The tree is that of ``structure.py``, with these differences: an attached mail has the parts of that
mail, and a text with uuencoded files is one part. An attached mail or a multipart whose parts are
not known is data, since the grammar needs them (RFC 9051 9). All offsets refer to the received
bytes.
"""

import base64
import re
from calendar import timegm
from collections.abc import Iterator, Mapping, Sequence
from email.utils import parsedate
from itertools import islice
from urllib.parse import quote

from msgspec import Struct

from mailcheck.checks.content.decoding import decode_words
from mailcheck.checks.content.header.fields import HeaderField, split_header
from mailcheck.checks.content.header.mailboxes import parse_addresses
from mailcheck.checks.content.header.parameters import parse_value
from mailcheck.checks.content.limits import MAX_HEADER_BYTES, MAX_HEADER_FIELDS, MAX_PART_FIELDS
from mailcheck.checks.content.structure import MAIL_TYPES, Entity, scan_structure
from mailcheck.core.instants import Instant, instant_of

MAX_ATTACHED = 10
"""Maximum depth of mails that are attached to attached mails. Each level is read once more."""

MAX_ADDRESSES = 2_000
"""Maximum number of addresses of one field in an envelope."""

_UNENCODED = ("", "7bit", "8bit", "binary")
_WORD_OCTETS = 42
"""Octets of one encoded word: with the charset it has at most 75 characters (RFC 2047 2)."""


Fields = Mapping[str, HeaderField]
"""The first field of each name, which is in lower case."""


_END_OF_GROUP = (None, "")

_ESCAPED = re.compile(r"\\(.)")


class Part(Struct, frozen=True):
    """A part: the ranges of its header and its body in the bytes of the mail.

    ``parts`` belong to a multipart. ``attached`` is the mail in a part of type message/rfc822.
    """

    content_type: str
    parameters: Mapping[str, str]
    encoding: str
    header: tuple[int, int]
    body: tuple[int, int]
    parts: "tuple[Part, ...]" = ()
    attached: "Part | None" = None


def read_parts(raw_message: bytes) -> Part:
    """Return the mail as a part. Linear in its size; never raises."""
    return _part_of(raw_message, 0, scan_structure(raw_message).root, 0)


def read_fields(raw_message: bytes, start: int, end: int, max_fields: int) -> Fields:
    """Return the first field of each name in the header that begins at ``start``."""
    return _first_of_each(split_header(raw_message, start, end, max_fields).fields)


def _first_of_each(fields: Sequence[HeaderField]) -> Fields:
    return {field.name.lower(): field for field in reversed(fields)}


def find_part(root: Part, numbers: Sequence[int]) -> Part | None:
    """Return the part with a number such as ``(1, 2)``, or `None` (RFC 9051 6.4.5.1).

    A mail without a multipart has one part, which is the mail itself.
    """
    part, numbered = root, root.parts or (root,)
    for number in numbers:
        if not 1 <= number <= len(numbered):
            return None
        part = numbered[number - 1]
        inner = part.attached
        numbered = part.parts if inner is None else inner.parts or (inner,)
    return part


def _part_of(raw_message: bytes, base: int, entity: Entity, attached: int) -> Part:
    start, end = entity.body
    parts: tuple[Part, ...] = ()
    content_type = entity.content_type
    if _is_divided_text(entity):
        content_type = "text/plain"
    else:
        parts = tuple(_part_of(raw_message, base, part, attached) for part in entity.parts)
    inner = None
    # An encoded mail (against RFC 2046 5.2.1) has no parts at offsets of the received bytes.
    is_known = entity.encoding in _UNENCODED and attached < MAX_ATTACHED
    if content_type in MAIL_TYPES and is_known:
        mail = raw_message[base + start : base + end]
        root = scan_structure(mail).root
        inner = _part_of(raw_message, base + start, root, attached + 1)
    elif content_type in MAIL_TYPES or (content_type.startswith("multipart/") and not parts):
        content_type = "application/octet-stream"
    return Part(
        content_type,
        entity.parameters,
        entity.encoding,
        (base + entity.start, base + start),
        (base + start, base + end),
        parts=parts,
        attached=inner,
    )


def _is_divided_text(entity: Entity) -> bool:
    """Return whether the entity is a text that ``structure.py`` has divided at uuencoded files."""
    return any(
        part.encoding == "x-uuencode" and part.start == part.body[0] for part in entity.parts
    )


def derive_structures(mails: Sequence[bytes]) -> list[tuple[bytes, bytes, Instant | None]]:
    """Return the ENVELOPE, the BODYSTRUCTURE and the day of the Date field of each mail."""
    return [_derive(raw_message) for raw_message in mails]


def _derive(raw_message: bytes) -> tuple[bytes, bytes, Instant | None]:
    scanned = scan_structure(raw_message)
    fields = _first_of_each(scanned.fields)
    root = _part_of(raw_message, 0, scanned.root, 0)
    structure = _write_structure(raw_message, root, fields, is_extended=True)
    return write_envelope(fields), structure, find_sent_day(fields)


def find_sent_day(fields: Fields) -> Instant | None:
    """Return the day of the Date field, at midnight UTC in milliseconds.

    The offset of its time zone is ignored (RFC 9051 6.4.4).
    """
    field = fields.get("date")
    try:
        parsed = parsedate(field.as_text()) if field is not None else None
        return None if parsed is None else instant_of(timegm((*parsed[:3], 0, 0, 0)))
    except (ValueError, OverflowError, IndexError, TypeError):
        return None


def write_envelope(fields: Fields) -> bytes:
    """Return the ENVELOPE of a mail (RFC 9051 7.5.2)."""
    author = _addresses(fields, "from")
    items = [
        _field(fields, "date"),
        _field(fields, "subject"),
        author,
        _addresses(fields, "sender", author),
        _addresses(fields, "reply-to", author),
        _addresses(fields, "to"),
        _addresses(fields, "cc"),
        _addresses(fields, "bcc"),
        _field(fields, "in-reply-to"),
        _field(fields, "message-id"),
    ]
    return b"(" + b" ".join(items) + b")"


def _field(fields: Fields, name: str) -> bytes:
    field = fields.get(name)
    return b"NIL" if field is None else _header_string(field.as_text())


def _addresses(fields: Fields, name: str, default: bytes = b"NIL") -> bytes:
    field = fields.get(name)
    if field is None:
        return default
    found = list(islice(parse_addresses(field.as_text(), MAX_HEADER_BYTES), MAX_ADDRESSES))
    if len(found) == MAX_ADDRESSES and _is_group_open(found):
        found[-1] = _END_OF_GROUP
    written = [_address(address, display_name) for address, display_name in found]
    return b"(" + b"".join(written) + b")" if written else default


def _is_group_open(found: Sequence[tuple[str | None, str]]) -> bool:
    return next((bool(name) for address, name in reversed(found) if address is None), False)


def _address(address: str | None, name: str) -> bytes:
    """Return an address, or the marker of a group: its name, or NIL at its end."""
    if address is None:
        return b"(NIL NIL %s NIL)" % (_header_string(name) if name else b"NIL")
    local_part, _, domain = address.rpartition("@")
    # An address without a domain is only a local part; an empty host would begin a group.
    local_part, domain = (local_part, domain) if local_part else (domain, "")
    if len(local_part) > 1 and local_part[0] == local_part[-1] == '"':
        local_part = _ESCAPED.sub(r"\1", local_part[1:-1])
    return b"(%s NIL %s %s)" % (
        _header_string(name) if name else b"NIL",
        write_string(local_part.encode("utf-8", "replace")),
        write_string(domain.encode("utf-8", "replace")),
    )


_WORD = re.compile(r"=\?[^?\s]++\?[bBqQ]\?([^?]*+)\?=")


def _is_unreadable(word: re.Match[str]) -> bool:
    """Return whether an encoded word may end with a NUL, or has a soft line break."""
    text = word[1]
    return text.rstrip("=").endswith(("A", "=00")) or "= " in text or "=\t" in text


def _header_string(text: str) -> bytes:
    """Return a text of a header as a string of ASCII, with encoded words where needed.

    ASCII stays as it was received, except encoded words that clients do not read.
    """
    if not text.isascii() or ("=?" in text and any(map(_is_unreadable, _WORD.finditer(text)))):
        text = decode_words(text)
    return write_string(text.encode("ascii") if text.isascii() else _encode_words(text))


def _encode_words(text: str) -> bytes:
    words: list[bytes] = []
    piece = b""
    for character in text:
        octets = character.encode("utf-8", "replace")
        if len(piece) + len(octets) > _WORD_OCTETS:
            words.append(piece)
            piece = b""
        piece += octets
    words.append(piece)
    return b" ".join(b"=?utf-8?B?%s?=" % base64.b64encode(word) for word in words)


_UNQUOTABLE = frozenset(b"\r\n\0")


def write_string(octets: bytes) -> bytes:
    """Return a quoted string, or a literal if the octets cannot be quoted (RFC 9051 4.3)."""
    if len(octets) > 1000 or not octets.isascii() or not _UNQUOTABLE.isdisjoint(octets):
        octets = octets.replace(b"\0", b"")
        return b"{%d}\r\n%s" % (len(octets), octets)
    return b'"' + octets.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'


def write_structure(raw_message: bytes, part: Part, *, is_extended: bool) -> bytes:
    """Return the BODYSTRUCTURE of a part, or its BODY without extension data (RFC 9051 7.5.2)."""
    fields = read_fields(raw_message, *part.header, MAX_PART_FIELDS)
    return _write_structure(raw_message, part, fields, is_extended=is_extended)


def _write_structure(raw_message: bytes, part: Part, fields: Fields, *, is_extended: bool) -> bytes:
    kind, _, subtype = part.content_type.upper().partition("/")
    if part.parts:
        parts = b"".join(
            write_structure(raw_message, inner, is_extended=is_extended) for inner in part.parts
        )
        extended = [_parameters(part.parameters), *_disposition_and_more(fields)]
        more = b" " + b" ".join(extended) if is_extended else b""
        return b"(%s %s%s)" % (parts, write_string(subtype.encode("ascii")), more)
    start, end = part.body
    items = [
        write_string(kind.encode("ascii")),
        write_string(subtype.encode("ascii")),
        _parameters(part.parameters),
        _field(fields, "content-id"),
        _field(fields, "content-description"),
        write_string((part.encoding or "7bit").upper().encode("ascii", "replace")),
        b"%d" % (end - start),
    ]
    lines = b"%d" % raw_message.count(b"\n", start, end)
    if part.attached is not None:
        attached = read_fields(raw_message, *part.attached.header, MAX_HEADER_FIELDS)
        items += [
            write_envelope(attached),
            _write_structure(raw_message, part.attached, attached, is_extended=is_extended),
            lines,
        ]
    elif kind == "TEXT":
        items.append(lines)
    if is_extended:
        items += [_field(fields, "content-md5"), *_disposition_and_more(fields)]
    return b"(" + b" ".join(items) + b")"


def _disposition_and_more(fields: Fields) -> Iterator[bytes]:
    """Yield disposition, language and location."""
    field = fields.get("content-disposition")
    value, parameters = ("", {}) if field is None else parse_value(field.as_text())
    if value:
        kind = write_string(value.upper().encode("ascii", "replace"))
        yield b"(%s %s)" % (kind, _parameters(parameters))
    else:
        yield b"NIL"
    field = fields.get("content-language")
    languages = [] if field is None else field.as_text().replace(",", " ").split()
    strings = [write_string(language.encode("ascii", "replace")) for language in languages]
    yield b"(" + b" ".join(strings) + b")" if strings else b"NIL"
    yield _field(fields, "content-location")


def _parameters(parameters: Mapping[str, str]) -> bytes:
    """Return parameters with their values decoded, or in the form of RFC 2231."""
    written = []
    for name, value in parameters.items():
        key = name.upper()
        if not value.isascii():
            key, value = f"{key}*", "utf-8''" + quote(value, safe="", errors="replace")
        written += [
            write_string(key.encode("ascii", "replace")),
            write_string(value.encode("ascii", "replace")),
        ]
    return b"(" + b" ".join(written) + b")" if written else b"NIL"
