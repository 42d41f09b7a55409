"""Selection and decoding of the text, HTML, attachments and pictures of a mail."""

import base64
import hashlib
import re
from collections.abc import Collection, Iterator, Sequence, Set
from typing import NamedTuple

from msgspec import Struct

from mailcheck.checks.content.charsets import (
    find_codec,
    find_declared_charset,
    find_declared_in_html,
    is_ascii_label,
)
from mailcheck.checks.content.decoding import (
    decode_text,
    decode_transfer,
    end_lines,
    flatten_controls,
    is_utf_8,
)
from mailcheck.checks.content.html_tree import read_tree
from mailcheck.checks.content.limits import MAX_FILENAME
from mailcheck.checks.content.structure import Entity, scan_structure
from mailcheck.checks.content.visible_text import render_visible_text
from mailcheck.core.content import AttachmentFacts, content_id_key


class BodyPart(Struct, frozen=True):
    """A decoded text part with line feeds as line breaks.

    ``is_flowed`` and ``deletes_space`` are the format and DelSp parameters of RFC 3676.
    """

    text: str
    is_flowed: bool
    deletes_space: bool


class _Leaf(Struct, frozen=True):
    """A part without parts, or a multipart that is attached as a whole."""

    entity: Entity
    is_alternative: bool
    is_whole: bool

    @property
    def is_text(self) -> bool:
        """Whether it is text and not declared an attachment; it may still have a file name."""
        one = self.entity
        return one.content_type in ("text/plain", "text/html") and one.disposition != "attachment"

    @property
    def is_body(self) -> bool:
        """Whether it is text to read.

        A file name makes it an attachment, since Apple Mail declares attachments as "inline". This
        does not apply if it is the whole mail or one of the alternatives.
        """
        return self.is_text and (self.is_alternative or not self.entity.filename)

    @property
    def is_other_form(self) -> bool:
        """Whether it is an alternative of the body that few programs show (RFC 2046 5.1.4)."""
        is_known = self.entity.content_type in _OTHER_FORMS
        return is_known and self.is_alternative and not self.is_whole and not self.entity.filename


_OTHER_FORMS = frozenset(
    ("text/x-amp-html", "text/watch-html", "text/enriched", "text/richtext", "text/markdown")
)


def choose_bodies(root: Entity) -> tuple[list[Entity], list[Entity]]:
    """Return the parts that are shown as text and as HTML, in document order.

    Of alternatives (RFC 2046 5.1.4), the first with text and the last with HTML count. The parts
    of any other multipart are shown one after another. If there are none, texts with a file name
    are used: the only one, or all that are declared inline (RFC 2183 2.1).
    """
    return _choose(root, _bodies_of(root))


def list_attachments(root: Entity) -> list[Entity]:
    """List all parts that are not text to read, in document order.

    An attached multipart is one attachment (RFC 2183 2.10).
    """
    bodies = _bodies_of(root)
    return [
        leaf.entity
        for leaf in _leaves(root)
        if id(leaf.entity) not in bodies and not leaf.is_other_form
    ]


def _bodies_of(root: Entity) -> frozenset[int]:
    """Return the ids of the parts that are text to read."""
    leaves = list(_leaves(root))
    bodies = [leaf for leaf in leaves if leaf.is_body]
    if not bodies:
        named = [leaf for leaf in leaves if leaf.is_text]
        inline = [leaf for leaf in named if leaf.entity.disposition == "inline"]
        bodies = named if len(named) == 1 else inline
    return frozenset(id(leaf.entity) for leaf in bodies)


def _choose(entity: Entity, bodies: Set[int]) -> tuple[list[Entity], list[Entity]]:
    texts: list[Entity] = []
    htmls: list[Entity] = []
    if id(entity) in bodies:
        (htmls if entity.content_type == "text/html" else texts).append(entity)
    for part in entity.parts:
        more_texts, more_htmls = _choose(part, bodies)
        if entity.content_type == "multipart/alternative":
            texts, htmls = texts or more_texts, more_htmls or htmls
        else:
            texts += more_texts
            htmls += more_htmls
    return texts, htmls


def _leaves(
    entity: Entity, *, is_alternative: bool = True, is_whole: bool = True
) -> Iterator[_Leaf]:
    if not entity.parts or (entity.disposition == "attachment" and not is_whole):
        yield _Leaf(entity, is_alternative, is_whole)
        return
    for part in entity.parts:
        is_alternative = entity.content_type == "multipart/alternative"
        yield from _leaves(part, is_alternative=is_alternative, is_whole=False)


def read_bodies(
    raw_message: bytes, entities: Sequence[Entity], problems: list[str]
) -> list[BodyPart]:
    """Decode text parts, and add a sentence about each error to ``problems``."""
    parts = []
    for entity in entities:
        data, transfer_problem = decode_transfer(raw_message[slice(*entity.body)], entity.encoding)
        label, declared = entity.parameters.get("charset", ""), ""
        if (is_ascii_label(label) or not find_codec(label)) and not is_utf_8(data):
            is_html = entity.content_type == "text/html"
            declared = find_declared_in_html(data) if is_html else ""
            declared = declared or find_declared_charset(raw_message)
        text, charset_problem = decode_text(data, label, declared)
        problems += filter(None, (transfer_problem, charset_problem))
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        is_flowed = entity.parameters.get("format", "").lower() == "flowed"
        deletes_space = entity.parameters.get("delsp", "").lower() == "yes"
        parts.append(BodyPart(text, is_flowed, deletes_space))
    return parts


def unflow(part: BodyPart) -> str:
    """Join the lines that format=flowed wrapped (RFC 3676 4.2), including quoted lines."""
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
    # Path separators, and marks that change the reading direction to hide an extension.
    (*b"/\\", *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C),
    "_",
)


class Attachment(Struct, frozen=True):
    """One attachment with its decoded bytes; ``filename`` is safe to show and to download.

    ``opened`` is the text of an attached mail, and empty for any other part. ``charset`` is the
    parameter of the media type, which may be missing or wrong.
    """

    filename: str
    content_type: str
    data: bytes
    opened: str = ""
    charset: str = ""


def describe_attachments(raw_message: bytes, root: Entity) -> tuple[AttachmentFacts, ...]:
    """List the attachments with ids from "1" in document order."""
    return tuple(
        AttachmentFacts(
            id=str(number),
            filename=name_attachment(entity),
            content_type=entity.content_type,
            size=len(decode_entity(raw_message, entity)),
            content_id=entity.content_id,
        )
        for number, entity in enumerate(list_attachments(root), 1)
    )


def find_attachment(raw_message: bytes, attachment_id: str) -> Attachment | None:
    """Return the attachment with an `AttachmentFacts` id, or `None`."""
    raw_message = end_lines(raw_message)
    root = scan_structure(raw_message).root
    for number, entity in enumerate(list_attachments(root), 1):
        if str(number) == attachment_id:
            data = decode_entity(raw_message, entity)
            opened = open_mail(data) if is_mail(entity) else ""
            charset = entity.parameters.get("charset", "")
            return Attachment(name_attachment(entity), entity.content_type, data, opened, charset)
    return None


class Digests(NamedTuple):
    """The digests of the decoded bytes of an attachment, in hexadecimal."""

    md5: str
    sha1: str
    sha256: str


def digest_attachments(raw_message: bytes) -> dict[str, Digests]:
    """Return the digests of all attachments by their `AttachmentFacts` ids."""
    raw_message = end_lines(raw_message)
    root = scan_structure(raw_message).root
    return {
        str(number): _digest(decode_entity(raw_message, one))
        for number, one in enumerate(list_attachments(root), 1)
    }


def _digest(data: bytes) -> Digests:
    made = (hashlib.new(name, data, usedforsecurity=False) for name in Digests._fields)
    return Digests(*(one.hexdigest() for one in made))


OPENED_FIELDS = ("from", "to", "cc", "date", "subject")

MAX_OPENED = 128 * 1024
"""Maximum number of characters of text, and of HTML, of an attached mail that are read."""


def open_mail(raw_message: bytes) -> str:
    """Return an attached mail as text: its fields, its text and the names of its attachments."""
    raw_message = end_lines(raw_message)
    structure = scan_structure(raw_message)
    lines = [
        f"{one.name}: {one.decode()}"
        for one in structure.fields
        if one.name.lower() in OPENED_FIELDS
    ]
    texts, htmls = (read_bodies(raw_message, some, []) for some in choose_bodies(structure.root))
    text = "\n".join(unflow(part) for part in texts)
    if not text.strip():
        markup = "\n".join(part.text for part in htmls)
        text = render_visible_text(read_tree(markup[:MAX_OPENED])).text
    names = [
        f"[{name_attachment(one) or one.content_type}]" for one in list_attachments(structure.root)
    ]
    return "\n".join([*lines, "", text[:MAX_OPENED], *names])


def clean_filename(name: str) -> str:
    """Return a safe file name without path, control characters, leading dots or excess length."""
    name = flatten_controls(name).translate(_NOT_IN_FILENAMES).strip(" .")
    if len(name) <= MAX_FILENAME:
        return name
    stem, dot, extension = name.rpartition(".")
    if dot and len(extension) <= 10:
        return stem[: MAX_FILENAME - len(extension) - 1] + dot + extension
    return name[:MAX_FILENAME]


_NAMES = {
    "message/delivery-status": "delivery-status.txt",
    "message/disposition-notification": "disposition-notification.txt",
    "text/calendar": "invite.ics",
    "text/rfc822-headers": "mail-headers.txt",
    "text/vcard": "contact.vcf",
    "text/x-vcard": "contact.vcf",
}
"""Names by type for attachments without a name; their extension determines the program."""

_MAIL_EXTENSIONS = (".eml", ".mht", ".mhtml", ".msg", ".txt")
_EXTENSION = re.compile(r"\.\w{1,8}\Z")


def name_attachment(entity: Entity) -> str:
    """Return a file name with extension for a download, or empty if name and type are unknown."""
    name = clean_filename(entity.filename)
    if is_mail(entity):
        if not name:
            return "message.eml"
        return name if name.lower().endswith(_MAIL_EXTENSIONS) else clean_filename(f"{name}.eml")
    usual = _NAMES.get(entity.content_type, "")
    if name and not _EXTENSION.search(name):
        return clean_filename(name + usual[usual.rfind(".") :]) if usual else name
    return name or usual


def is_mail(entity: Entity) -> bool:
    """Return whether an attached part is a forwarded mail or a whole multipart."""
    return bool(entity.parts) or entity.content_type in MAIL_TYPES


MAIL_TYPES = frozenset(("message/rfc822", "message/global"))

_TEXT_TYPES = frozenset(
    ("application/json", "application/xml", "application/x-yaml", "text/rfc822-headers")
)


def is_readable(content_type: str) -> bool:
    """Return whether an attachment of this media type can be shown as text."""
    is_text = content_type.startswith(("text/", "multipart/"))
    return is_text or content_type in _TEXT_TYPES or content_type in MAIL_TYPES


def decode_entity(raw_message: bytes, entity: Entity) -> bytes:
    """Return the decoded bytes of a part; for a multipart, its raw bytes with its header."""
    if entity.parts:
        return raw_message[entity.start : entity.body[1]]
    return decode_transfer(raw_message[slice(*entity.body)], entity.encoding)[0]


MAX_IMAGES_SIZE = 8 * 1024 * 1024
"""Maximum number of bytes of all images shown in one mail; others can still be downloaded."""

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
)
"""First bytes of image formats without scripts. The declared type of the mail is ignored."""


def find_inline_images(raw_message: bytes, content_ids: Collection[str]) -> dict[str, str]:
    """Return the images with these Content-ID keys; data that is not an image is left out."""
    images: dict[str, str] = {}
    room = MAX_IMAGES_SIZE
    wanted = frozenset(content_ids)
    raw_message = end_lines(raw_message)
    for entity in list_attachments(scan_structure(raw_message).root):
        key = content_id_key(entity.content_id or "")
        if key not in wanted or key in images:
            continue
        data = decode_entity(raw_message, entity)
        media_type = image_type(data)
        if media_type is not None and len(data) <= room:
            room -= len(data)
            images[key] = f"data:{media_type};base64,{base64.b64encode(data).decode()}"
    return images


def image_type(data: bytes) -> str | None:
    """Return the type of an image by its first bytes, or `None`."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((name for start, name in _SIGNATURES if data.startswith(start)), None)
