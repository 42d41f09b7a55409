"""The parts of a mail as they were sent, for clients that decode them."""

from collections.abc import Sequence

from msgspec import Struct

from mailcheck.checks.content.bodies import (
    Digests,
    choose_bodies,
    digest_attachments,
    list_attachments,
)
from mailcheck.checks.content.decoding import decode_transfer, end_lines
from mailcheck.checks.content.header.fields import split_header
from mailcheck.checks.content.structure import Entity, scan_structure

Fields = tuple[tuple[str, str], ...]
"""Names and values of header fields, unfolded but not decoded."""

LINE_END = b"\r\n"


class RawPart(Struct, frozen=True):
    """The header fields and the encoded body of a part, without line ends at its end.

    ``size`` is the number of octets of the header and the body. ``parts`` is empty for a leaf.
    """

    fields: Fields
    body: str
    size: int
    parts: "tuple[RawPart, ...]"


def read_raw_parts(raw_message: bytes) -> RawPart:
    """Return a mail with all its parts. Never raises.

    The line end before the final dot of SMTP is not part of the body.
    """
    raw_message = end_lines(raw_message).removesuffix(LINE_END)
    return _read(raw_message, scan_structure(raw_message).root, len(raw_message))


def _read(raw_message: bytes, entity: Entity, end: int) -> RawPart:
    start = entity.body[0]
    fields = _fields_of(raw_message[entity.start : start])
    kinds = [value for name, value in fields if name.lower() == "content-type"]
    is_multipart = any(kind.lower().startswith("multipart/") for kind in kinds)
    return RawPart(
        fields,
        raw_message[start:end].decode("utf-8", "replace"),
        end - entity.start,
        tuple(_read(raw_message, part, _trimmed(raw_message, part)) for part in entity.parts)
        if is_multipart
        else (),
    )


def _trimmed(raw_message: bytes, entity: Entity) -> int:
    """Return the end of a part without its last line ends."""
    start, end = entity.body
    return start + len(raw_message[start:end].rstrip(LINE_END))


def _fields_of(header: bytes) -> Fields:
    found = split_header(header, 0, len(header)).fields
    return tuple((field.name, field.as_text()) for field in found)


def read_raw_fields(raw_message: bytes) -> Fields:
    """Return the header fields of a mail. Never raises."""
    return _fields_of(end_lines(raw_message))


class Details(Struct, frozen=True):
    """What only the bytes of a mail tell: the line ends of its bodies, and facts of its files.

    ``inline`` are the ids of the files that are neither attachments by their field
    Content-Disposition nor of an unknown type.
    """

    text_line_end: str
    html_line_end: str
    digests: dict[str, Digests]
    inline: frozenset[str]


def read_details(raw_message: bytes) -> Details:
    """Return the details of a mail. Never raises."""
    raw_message = end_lines(raw_message)
    root = scan_structure(raw_message).root
    chosen = choose_bodies(root)
    return Details(
        _line_end_of(raw_message, chosen.plain),
        _line_end_of(raw_message, chosen.rich),
        digest_attachments(raw_message),
        frozenset(
            str(number)
            for number, entity in enumerate(list_attachments(root), 1)
            if entity.disposition != "attachment"
            and entity.content_type != "application/octet-stream"
        ),
    )


def _line_end_of(raw_message: bytes, bodies: Sequence[Entity]) -> str:
    """Return the line end of decoded texts: CRLF, unless all lines end with LF alone."""
    data = b"".join(
        decode_transfer(raw_message[slice(*body.body)], body.encoding)[0] for body in bodies
    )
    return "\n" if b"\n" in data and LINE_END not in data else "\r\n"
