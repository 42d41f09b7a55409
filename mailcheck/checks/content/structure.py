"""The MIME structure of a mail as a tree of byte ranges (RFC 2046 5.1), with limits.

The parser of the standard library has no limits. Each line costs it a comparison per open
multipart, a million parts cost 14 s and 350 MB, and nesting overflows its stack. Here every level
is one scan for its own delimiter, no body is copied, and the numbers of parts and levels are
limited before anything is built. An outer delimiter always ends its content (RFC 2046 5.1.2).
"""

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.checks.content.decoding import decode_header_bytes
from mailcheck.checks.content.header.fields import HeaderField, HeaderSection, split_header
from mailcheck.checks.content.header.parameters import parse_value
from mailcheck.checks.content.limits import (
    MAX_BOUNDARY,
    MAX_DEPTH,
    MAX_PART_FIELDS,
    MAX_PARTS,
)

MAIL_TYPES = frozenset(("message/rfc822", "message/global"))
"""Media types of attached mails (RFC 2046 5.2.1, RFC 6532 3.7)."""

_MEDIA_TYPE = re.compile(r"[\w!#$%&'*+.^`{|}~-]+/[\w!#$%&'*+.^`{|}~-]+", re.ASCII)  # RFC 2045 5.1
_DELIMITER_LINE = re.compile(rb"\n--([^\s]{1,70})[ \t]*+\r?\n(?=content-[a-z-]+:)", re.IGNORECASE)
_WELL_FORMED = re.compile(
    r"[^\s;,:/\\<>\"=]++(?>(?:/[^\s;,:/\\<>\"=]++)?)"
    r"(?>(?:\s*+;\s*+[^\s;,\"=]++\s*+=\s*+(?:\"(?>(?:[^\"\\]|\\.)*)\"|[^\s;,\"]++))*)\s*+;?\s*+",
    re.DOTALL,
)
_DEFAULT_TYPE = "text/plain"
_NOT_ENCODED = ("", "7bit", "8bit", "binary")
_UUENCODED = re.compile(
    rb"\nbegin [0-7]{3,4} ([^\r\n]{1,255})\r?\n(?>(?:[ -`]{1,90}\r?\n)+)"
    rb"(?:\r?\n){0,2}end[ \t]*+(?:\r?\n|\Z)"
)


class Entity(Struct, frozen=True):
    """The mail itself or a part of it: the values of its header and the range of its body.

    ``start`` is the offset of its header in the raw mail. ``body`` has the offsets of the start and
    end of its body. ``parts`` is empty for a leaf.
    """

    content_type: str
    body: tuple[int, int]
    start: int = 0
    parameters: Mapping[str, str] = {}
    disposition: str = ""
    filename: str = ""
    encoding: str = ""
    content_id: str | None = None
    parts: "tuple[Entity, ...]" = ()

    def leaves(self) -> "Iterator[Entity]":
        """Yield the parts that have no parts, in order. Attached mails are leaves."""
        if not self.parts:
            yield self
        for part in self.parts:
            yield from part.leaves()


_NO_BOUNDARY = "the boundary of a {} part does not occur in it"


def _compile_delimiter(delimiter: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"\n--" + re.escape(delimiter) + rb"(--)?[ \t\r]*+(?:\n|\Z)")


class Structure(Struct, frozen=True):
    """A whole mail: the fields of its header, its tree of entities, and the problems."""

    fields: tuple[HeaderField, ...]
    root: Entity
    problems: tuple[str, ...]


def scan_structure(raw_message: bytes) -> Structure:
    """Find header, parts and bodies of a mail in linear time. Never raises."""
    section = split_header(raw_message, 0, len(raw_message))
    scan = _Scan(raw_message, list(section.problems))
    root = scan.read_entity(section, (0, len(raw_message)), _DEFAULT_TYPE, 0)
    return Structure(section.fields, root, tuple(dict.fromkeys(scan.problems)))


class _Scan(Struct):
    raw_message: bytes
    problems: list[str]
    part_count: int = 0

    def read_entity(
        self, section: HeaderSection, bounds: tuple[int, int], default_type: str, depth: int
    ) -> Entity:
        start, end = bounds
        content_type, parameters = self._parse_field(section, "Content-Type")
        if _MEDIA_TYPE.fullmatch(content_type) is None:
            content_type = "multipart/mixed" if parameters.get("boundary") else default_type
        disposition, names = self._parse_field(section, "Content-Disposition")
        encoding, _ = self._parse_field(section, "Content-Transfer-Encoding")
        content_id = section.find("content-id")
        body = (min(section.body_start, end), end)
        parts: tuple[Entity, ...] = ()
        if content_type.startswith("multipart/") and depth == MAX_DEPTH:
            self.problems.append(f"parts are nested deeper than {MAX_DEPTH}: not looked into")
        elif content_type.startswith("multipart/"):
            found = self._read_parts(content_type, parameters.get("boundary", ""), body, depth)
            parts = found or ()
            if found is None:
                content_type = _DEFAULT_TYPE
        entity = Entity(
            content_type=content_type,
            parameters=parameters,
            disposition=disposition,
            # Some programs use the parameter name of the other field.
            filename=names.get("filename")
            or parameters.get("name")
            or names.get("name")
            or parameters.get("filename", ""),
            encoding=encoding,
            content_id=content_id.decode().strip("<> ") or None if content_id else None,
            body=body,
            parts=parts,
            start=start,
        )
        is_plain = content_type == "text/plain" and disposition != "attachment"
        if is_plain and encoding in _NOT_ENCODED and not entity.filename:
            return self._divide_text(entity)
        return entity

    def _divide_text(self, text: Entity) -> Entity:
        """Return a text with uuencoded files in it as a multipart of text and attachments."""
        start, end = text.body
        if self.raw_message.find(b"\nbegin ", max(0, start - 1), end) < 0:
            return text
        parts: list[Entity] = []
        position = start
        for match in _UUENCODED.finditer(self.raw_message, max(0, start - 1), end):
            if self.part_count >= MAX_PARTS - 1:
                break
            self.part_count += 2
            file = slice(match.start() + 1, match.end())
            parts.append(replace(text, body=(position, file.start)))
            part = Entity(
                "application/octet-stream",
                (file.start, file.stop),
                file.start,
                disposition="attachment",
                filename=decode_header_bytes(match[1].strip(), text.parameters.get("charset", "")),
                encoding="x-uuencode",
            )
            parts.append(part)
            position = file.stop
        if not parts:
            return text
        parts.append(replace(text, body=(position, end)))
        kept = [part for part in parts if self.raw_message[slice(*part.body)].strip()]
        return replace(text, content_type="multipart/mixed", parts=tuple(kept))

    def _parse_field(self, section: HeaderSection, name: str) -> tuple[str, Mapping[str, str]]:
        found = section.find(name.lower())
        if found is None:
            return "", {}
        # Undecoded: encoded words are undone per parameter.
        text = found.as_text()
        if _WELL_FORMED.fullmatch(text) is None and "(" not in text:
            self.problems.append(f"a {name} field is not in the form of RFC 2045")
        return parse_value(text)

    def _read_parts(
        self, content_type: str, boundary: str, body: tuple[int, int], depth: int
    ) -> tuple[Entity, ...] | None:
        """Return the parts of a multipart, or `None` if its body has no boundary."""
        delimiter = boundary.rstrip().encode("utf-8", "replace")
        if not delimiter or len(delimiter) > MAX_BOUNDARY:
            self.problems.append(f"a {content_type} part has no usable boundary")
            delimiter = self._guess_delimiter(body)
            if not delimiter:
                return None
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
            guessed = self._guess_delimiter(body).decode("utf-8", "replace")
            if guessed and guessed != boundary:
                self.problems.append(_NO_BOUNDARY.format(content_type))
                return self._read_parts(content_type, guessed, body, depth)
            if self._is_closed(delimiter, body):
                self.problems.append(f"a {content_type} part has no parts")
                # A multipart must have a part (RFC 2046 5.1).
                return (Entity(_DEFAULT_TYPE, (body[1], body[1]), body[1]),)
            self.problems.append(_NO_BOUNDARY.format(content_type))
            return None
        return tuple(parts)

    def _is_closed(self, delimiter: bytes, body: tuple[int, int]) -> bool:
        """Return whether a multipart without parts is empty or has its closing boundary."""
        start, end = max(0, body[0] - 1), body[1]
        closing = _compile_delimiter(delimiter).search(self.raw_message, start, end)
        return closing is not None or not self.raw_message[slice(*body)].strip()

    def _guess_delimiter(self, body: tuple[int, int]) -> bytes:
        """Return the boundary of the first delimiter line with a part's header after it."""
        line = _DELIMITER_LINE.search(self.raw_message, max(0, body[0] - 1), body[1])
        return line[1] if line else b""

    def _split(self, delimiter: bytes, body: tuple[int, int]) -> Iterator[tuple[int, int]]:
        """Yield the range of each part; text before the first and after the last is not one."""
        # The line break belongs to the delimiter (RFC 2046 5.1.1), so the
        # search begins at the one that ends the header section.
        line = _compile_delimiter(delimiter)
        position, end = max(0, body[0] - 1), body[1]
        start: int | None = None
        while match := line.search(self.raw_message, position, end):
            if start is not None:
                before = match.start()
                yield start, max(start, before - (self.raw_message[before - 1 : before] == b"\r"))
            if match[1]:
                return
            start = match.end()
            # The line break after one delimiter may be the one before the next.
            position = start - 1
        if start is None:
            return
        self.problems.append("a multipart has no closing boundary: the mail may be cut off")
        yield start, end
