"""The MIME structure of a mail as a tree of byte ranges (RFC 2046 5.1), within the caps.

The standard library's parser gives no bound: each line costs it a comparison
per open multipart, a million parts cost it 14 s and 350 MB, and nesting
overflows its stack. Here every level is one scan for its own delimiter, no
body is copied, and both counts are capped before anything is built. An outer
delimiter always ends what is inside it, as RFC 2046 5.1.2 asks.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from msgspec import Struct

from mailcheck.checks.content.decoding import decode_header_bytes
from mailcheck.checks.content.header import HeaderField, HeaderSection, parse_value, split_header
from mailcheck.checks.content.limits import (
    MAX_BOUNDARY,
    MAX_DEPTH,
    MAX_PART_FIELDS,
    MAX_PARTS,
)

_MEDIA_TYPE = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+", re.ASCII)
_DEFAULT_TYPE = "text/plain"


class Entity(Struct, frozen=True):
    """The mail itself or a part of it: what its header says, and where its body lies.

    ``start`` and ``body`` are offsets into the raw mail: of its header, and of both ends of
    its body. ``parts`` is empty for a leaf.
    """

    content_type: str
    parameters: Mapping[str, str]
    disposition: str
    filename: str
    encoding: str
    content_id: str | None
    body: tuple[int, int]
    parts: "tuple[Entity, ...]"
    start: int = 0


class Structure(Struct, frozen=True):
    """A whole mail: the fields of its header, its tree of entities, what was wrong."""

    fields: tuple[HeaderField, ...]
    root: Entity
    problems: tuple[str, ...]


def scan_structure(raw_message: bytes) -> Structure:
    """Find header, parts and bodies of a mail. Never raises; takes time linear in its size."""
    section = split_header(raw_message, 0, len(raw_message))
    scan = _Scan(raw_message, list(section.problems))
    root = scan.read_entity(section, (0, len(raw_message)), _DEFAULT_TYPE, 0)
    return Structure(section.fields, root, tuple(dict.fromkeys(scan.problems)))


@dataclass(slots=True)
class _Scan:
    raw_message: bytes
    problems: list[str]
    part_count: int = field(default=0)

    def read_entity(
        self, section: HeaderSection, bounds: tuple[int, int], default_type: str, depth: int
    ) -> Entity:
        start, end = bounds
        content_type, parameters = _parse_field(section, "content-type")
        if _MEDIA_TYPE.fullmatch(content_type) is None:
            content_type = default_type
        disposition, names = _parse_field(section, "content-disposition")
        encoding, _ = _parse_field(section, "content-transfer-encoding")
        content_id = section.find("content-id")
        body = (min(section.body_start, end), end)
        parts: tuple[Entity, ...] = ()
        if content_type.startswith("multipart/"):
            parts = self._read_parts(content_type, parameters.get("boundary", ""), body, depth)
            if not parts and depth < MAX_DEPTH:
                content_type = _DEFAULT_TYPE
        return Entity(
            content_type=content_type,
            parameters=parameters,
            disposition=disposition,
            filename=names.get("filename") or parameters.get("name", ""),
            encoding=encoding,
            content_id=content_id.decode().strip("<> ") or None if content_id else None,
            body=body,
            parts=parts,
            start=start,
        )

    def _read_parts(
        self, content_type: str, boundary: str, body: tuple[int, int], depth: int
    ) -> tuple[Entity, ...]:
        if depth == MAX_DEPTH:
            self.problems.append(f"parts are nested deeper than {MAX_DEPTH}: not looked into")
            return ()
        delimiter = boundary.rstrip().encode("utf-8", "replace")
        if not delimiter or len(delimiter) > MAX_BOUNDARY:
            self.problems.append(f"a {content_type} part has no usable boundary")
            return ()
        default_type = "message/rfc822" if content_type == "multipart/digest" else _DEFAULT_TYPE
        parts = []
        for start, end in self._split(delimiter, body):
            if self.part_count == MAX_PARTS:
                self.problems.append(f"the mail has more than {MAX_PARTS} parts: not looked into")
                break
            self.part_count += 1
            section = split_header(self.raw_message, start, end, MAX_PART_FIELDS)
            self.problems.extend(section.problems)
            parts.append(self.read_entity(section, (start, end), default_type, depth + 1))
        if not parts:
            self.problems.append(f"the boundary of a {content_type} part does not occur in it")
        return tuple(parts)

    def _split(self, delimiter: bytes, body: tuple[int, int]) -> Iterator[tuple[int, int]]:
        """Yield the range of each part; text before the first and after the last is none."""
        # The line break belongs to the delimiter (RFC 2046 5.1.1), so the
        # search begins at the one that ends the header section.
        line = re.compile(rb"\n--" + re.escape(delimiter) + rb"(--)?[ \t]*+(?:\r?\n|\Z)")
        position, end = max(0, body[0] - 1), body[1]
        start: int | None = None
        while match := line.search(self.raw_message, position, end):
            if start is not None:
                yield start, max(start, self._before_line_break(match.start()))
            if match[1]:
                return
            start = match.end()
            # The line break after one delimiter may be the one before the next.
            position = start - 1
        if start is None:
            return
        self.problems.append("a multipart has no closing boundary: the mail may be cut off")
        yield start, end

    def _before_line_break(self, position: int) -> int:
        return position - (self.raw_message[position - 1 : position] == b"\r")


def _parse_field(section: HeaderSection, name: str) -> tuple[str, Mapping[str, str]]:
    found = section.find(name)
    # Undecoded: encoded words are undone per parameter.
    return parse_value(decode_header_bytes(found.body)) if found else ("", {})
