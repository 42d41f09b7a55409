"""The parts of a mail as they were sent, for clients that decode them."""

from msgspec import Struct

from mailcheck.checks.content.decoding import end_lines
from mailcheck.checks.content.header import split_header
from mailcheck.checks.content.structure import Entity, scan_structure


class RawPart(Struct, frozen=True):
    """The header fields, unfolded but not decoded, and the encoded body of a part.

    ``parts`` is empty for a leaf.
    """

    fields: tuple[tuple[str, str], ...]
    body: str
    parts: "tuple[RawPart, ...]"


def read_raw_parts(raw_message: bytes) -> RawPart:
    """Return a mail with all its parts. Never raises."""
    raw_message = end_lines(raw_message)
    return _read(raw_message, scan_structure(raw_message).root)


def _read(raw_message: bytes, entity: Entity) -> RawPart:
    start, end = entity.body
    fields = split_header(raw_message, entity.start, start).fields
    return RawPart(
        tuple((one.name, one.as_text()) for one in fields),
        raw_message[start:end].decode("utf-8", "replace"),
        tuple(_read(raw_message, one) for one in entity.parts),
    )
