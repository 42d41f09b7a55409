"""Attachments of a mail: their facts for lists, their bytes for a download."""

from dataclasses import dataclass, field

from mailcheck.checks.content.bodies import list_attachments
from mailcheck.checks.content.charsets import flatten_controls
from mailcheck.checks.content.limits import MAX_FILENAME
from mailcheck.checks.content.structure import Entity, scan_structure
from mailcheck.checks.content.transfer import decode_transfer
from mailcheck.core.content import AttachmentFacts

_NOT_IN_FILENAMES = dict.fromkeys(
    # Path separators, and the marks that turn the reading direction to hide an extension.
    (*b"/\\", *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C),
    "_",
)


@dataclass(frozen=True, slots=True)
class Attachment:
    """One attached part with its decoded bytes; ``filename`` is safe to show and to offer."""

    filename: str
    content_type: str
    data: bytes = field(repr=False)


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
