"""Images that a mail brings along for its own HTML (RFC 2392 ``cid:``), as ``data:`` URLs."""

import base64
from collections.abc import Collection, Iterator

from mailcheck.checks.content.attachments import decode_entity
from mailcheck.checks.content.bodies import list_attachments
from mailcheck.checks.content.structure import scan_structure

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
    for entity in list_attachments(scan_structure(raw_message).root):
        if entity.content_id is not None and entity.content_id in content_ids:
            yield entity.content_id, decode_entity(raw_message, entity)
