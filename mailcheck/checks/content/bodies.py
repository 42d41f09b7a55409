"""Which parts of a mail are its text, its HTML, its attachments and its pictures."""

import base64
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from mailcheck.checks.content.charsets import (
    find_codec,
    find_declared_in_html,
    is_ascii_label,
)
from mailcheck.checks.content.decoding import (
    decode_text,
    decode_transfer,
    end_lines,
    flatten_controls,
)
from mailcheck.checks.content.limits import MAX_FILENAME
from mailcheck.checks.content.structure import Entity, scan_structure
from mailcheck.core.content import AttachmentFacts


class BodyPart(Struct, frozen=True):
    """A text part, decoded, with bare line feeds as line breaks.

    ``is_flowed`` and ``deletes_space`` are RFC 3676's format and DelSp.
    """

    text: str
    is_flowed: bool
    deletes_space: bool


@dataclass(slots=True)
class _Choice:
    texts: list[Entity] = field(default_factory=list)
    htmls: list[Entity] = field(default_factory=list)


def choose_bodies(root: Entity) -> tuple[list[Entity], list[Entity]]:
    """Choose the parts that are shown as text and as HTML, in document order.

    Of alternatives (RFC 2046 5.1.4) the first that has text and the last that
    has HTML count; the parts of any other multipart are shown one after another.
    Where there are none, the only named text is what there is to read.
    """
    choice = _choose(root, is_alternative=True)
    if not choice.texts and not choice.htmls:
        lone = _find_lone_text(root)
        if lone is not None:
            choice = _choose(lone, is_alternative=True)
    return choice.texts, choice.htmls


def list_attachments(root: Entity) -> list[Entity]:
    """List all parts that are not a text to read, in document order."""
    leaves = list(_walk(root, is_alternative=True))
    attached = [leaf for leaf, is_alternative in leaves if not _is_body(leaf, is_alternative)]
    lone = _find_lone_text(root) if len(attached) == len(leaves) else None
    return [leaf for leaf in attached if leaf is not lone]


def _find_lone_text(root: Entity) -> Entity | None:
    """Find the text part of a mail that has one, whatever it is called."""
    texts = [leaf for leaf, _ in _walk(root, is_alternative=True) if _is_body(leaf, True)]
    return texts[0] if len(texts) == 1 else None


def _choose(entity: Entity, *, is_alternative: bool) -> _Choice:
    choice = _Choice()
    if not entity.parts:
        if _is_body(entity, is_alternative):
            chosen = choice.htmls if entity.content_type == "text/html" else choice.texts
            chosen.append(entity)
        return choice
    alternatives = entity.content_type == "multipart/alternative"
    for part in entity.parts:
        found = _choose(part, is_alternative=alternatives)
        if alternatives:
            choice.texts = choice.texts or found.texts
            choice.htmls = found.htmls or choice.htmls
        else:
            choice.texts += found.texts
            choice.htmls += found.htmls
    return choice


def _walk(entity: Entity, *, is_alternative: bool) -> Iterator[tuple[Entity, bool]]:
    if not entity.parts:
        yield entity, is_alternative
    for part in entity.parts:
        yield from _walk(part, is_alternative=entity.content_type == "multipart/alternative")


def _is_body(leaf: Entity, is_alternative: bool) -> bool:
    """Tell whether a leaf is text to read.

    A file name makes it an attachment (Apple Mail sends those "inline"), but
    not where it is the whole mail or one of the alternatives.
    """
    if leaf.content_type not in ("text/plain", "text/html") or leaf.disposition == "attachment":
        return False
    return is_alternative or not leaf.filename


def read_bodies(
    raw_message: bytes, entities: Sequence[Entity], problems: list[str]
) -> list[BodyPart]:
    """Decode text parts; sentences about what was wrong with them are added to ``problems``."""
    parts = []
    for entity in entities:
        part, found = _read_body(raw_message, entity)
        parts.append(part)
        problems += found
    return parts


def _read_body(raw_message: bytes, entity: Entity) -> tuple[BodyPart, list[str]]:
    data, transfer_problem = decode_transfer(raw_message[slice(*entity.body)], entity.encoding)
    label, declared = entity.parameters.get("charset", ""), ""
    if entity.content_type == "text/html" and (is_ascii_label(label) or not find_codec(label)):
        declared = find_declared_in_html(data)
    text, charset_problem = decode_text(data, label, declared)
    part = BodyPart(
        text=text.replace("\r\n", "\n").replace("\r", "\n"),
        is_flowed=entity.parameters.get("format", "").lower() == "flowed",
        deletes_space=entity.parameters.get("delsp", "").lower() == "yes",
    )
    return part, [problem for problem in (transfer_problem, charset_problem) if problem]


def unflow(part: BodyPart) -> str:
    """Join the lines that format=flowed broke (RFC 3676 4.2), quoted ones included."""
    if not part.is_flowed:
        return part.text
    joined: list[str] = []
    is_open = False
    for line in part.text.split("\n"):
        content = line.lstrip(">")
        depth = len(line) - len(content)
        content = content.removeprefix(" ")
        if is_open and content != "-- ":
            joined.append(content)
        else:
            joined.append(("\n" if joined else "") + ">" * depth + content)
        is_open = content.endswith(" ") and content != "-- "
        if is_open and part.deletes_space:
            joined[-1] = joined[-1][:-1]
    return "".join(joined)


_NOT_IN_FILENAMES = dict.fromkeys(
    # Path separators, and the marks that turn the reading direction to hide an extension.
    (*b"/\\", *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C),
    "_",
)


class Attachment(Struct, frozen=True):
    """One attached part with its decoded bytes; ``filename`` is safe to show and to offer."""

    filename: str
    content_type: str
    data: bytes


def describe_attachments(raw_message: bytes, root: Entity) -> tuple[AttachmentFacts, ...]:
    """List the attachments; ids count them from "1" in document order."""
    return tuple(
        AttachmentFacts(
            id=str(number),
            filename=clean_filename(entity.filename),
            content_type=entity.content_type,
            size=len(decode_entity(raw_message, entity)),
            content_id=entity.content_id,
        )
        for number, entity in enumerate(list_attachments(root), 1)
    )


def find_attachment(raw_message: bytes, attachment_id: str) -> Attachment | None:
    """Find an attachment by its `AttachmentFacts` id; nothing when there is none."""
    raw_message = end_lines(raw_message)
    root = scan_structure(raw_message).root
    for number, entity in enumerate(list_attachments(root), 1):
        if str(number) == attachment_id:
            data = decode_entity(raw_message, entity)
            return Attachment(clean_filename(entity.filename), entity.content_type, data)
    return None


def clean_filename(name: str) -> str:
    """Make a file name that is one: no path, no control characters, no leading dots, bounded."""
    name = flatten_controls(name).translate(_NOT_IN_FILENAMES).strip(" .")
    if len(name) <= MAX_FILENAME:
        return name
    stem, dot, extension = name.rpartition(".")
    if dot and len(extension) <= 10:
        return stem[: MAX_FILENAME - len(extension) - 1] + dot + extension
    return name[:MAX_FILENAME]


def decode_entity(raw_message: bytes, entity: Entity) -> bytes:
    """Give the bytes of a part, its transfer encoding undone."""
    return decode_transfer(raw_message[slice(*entity.body)], entity.encoding)[0]


MAX_IMAGES_SIZE = 8 * 1024 * 1024
"""Bytes of all images shown in one mail; the others can still be downloaded."""

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
)
"""How files begin that hold pixels and nothing else; what a mail says of them is not asked."""


def find_inline_images(raw_message: bytes, content_ids: Collection[str]) -> dict[str, str]:
    """Give the images with these content ids; one that is no picture by its bytes is left out."""
    images: dict[str, str] = {}
    room = MAX_IMAGES_SIZE
    for content_id, data in _named_parts(raw_message, frozenset(content_ids)):
        media_type = image_type(data)
        if media_type is not None and len(data) <= room and content_id not in images:
            room -= len(data)
            images[content_id] = f"data:{media_type};base64,{base64.b64encode(data).decode()}"
    return images


def image_type(data: bytes) -> str | None:
    """Tell the type of a picture by its first bytes."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((name for start, name in _SIGNATURES if data.startswith(start)), None)


def _named_parts(raw_message: bytes, content_ids: frozenset[str]) -> Iterator[tuple[str, bytes]]:
    raw_message = end_lines(raw_message)
    for entity in list_attachments(scan_structure(raw_message).root):
        if entity.content_id is not None and entity.content_id in content_ids:
            yield entity.content_id, decode_entity(raw_message, entity)
