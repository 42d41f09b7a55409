"""Selection and decoding of the text, HTML, attachments and pictures of a mail."""

import base64
import hashlib
import re
from collections.abc import Collection, Iterator, Sequence, Set
from functools import cached_property
from html import escape
from itertools import chain
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
from mailcheck.checks.content.html_tree import HtmlTree, read_tree
from mailcheck.checks.content.limits import MAX_FILENAME, MAX_HTML
from mailcheck.checks.content.structure import MAIL_TYPES, Entity, scan_structure
from mailcheck.checks.content.visible_text import VisibleText, render_visible_text
from mailcheck.core.content import AttachmentFacts, content_id_key

_SHOWN = ("", "inline")
_OTHER_FORMS = frozenset(
    ("text/x-amp-html", "text/watch-html", "text/enriched", "text/richtext", "text/markdown")
)


class Chosen(Struct, frozen=True):
    """The parts that are shown as text, and the parts that are shown as HTML, in document order.

    A text part and an HTML part that are no alternatives of each other are in both.
    """

    plain: tuple[Entity, ...]
    rich: tuple[Entity, ...]


class BodyPart(Struct, frozen=True):
    """A decoded text or HTML part with line feeds as line breaks.

    ``unflowed`` is the text with the lines joined that format=flowed wrapped.
    """

    text: str
    unflowed: str
    is_html: bool


class Bodies:
    """The decoded parts of a mail that are shown, and their text."""

    def __init__(self, plain: Sequence[BodyPart], rich: Sequence[BodyPart]) -> None:
        """Take the parts of a `Chosen`; a part that is in both is one object."""
        self._plain = plain
        known = set(map(id, plain))
        self._rich_only = [part for part in rich if id(part) not in known]
        self._rich = rich
        every = [*plain, *self._rich_only]
        self.has_text = any(not part.is_html for part in every)
        self.htmls = [part for part in every if part.is_html]
        self.prose = "\n".join(part.unflowed for part in every if not part.is_html)
        """The text parts alone, with joined lines."""
        self.markup = "\n".join(part.text for part in self.htmls)
        """The HTML parts alone."""

    @cached_property
    def tree(self) -> HtmlTree:
        """The elements of the HTML parts."""
        return read_tree(self.markup)

    @cached_property
    def page(self) -> VisibleText:
        """The visible text of the HTML parts."""
        return render_visible_text(self.tree)

    @property
    def text(self) -> str:
        """The text of the mail as it was sent, with the words of HTML parts in their place.

        It is blank if the mail has no text part, or only blank ones.
        """
        has_words = any(part.text.strip() for part in self._plain if not part.is_html)
        texts = (
            self._words_of(part) if part.is_html else part.text
            for part in self._plain
            if has_words or not part.is_html
        )
        return "\n".join(filter(None, texts))

    @property
    def html(self) -> str:
        """The HTML of the mail as it was sent, with text parts as paragraphs in their place.

        It is blank if the mail has no HTML part, or only blank ones. Text beyond `MAX_HTML`
        characters is left out, since markup can make it five times as long.
        """
        has_html = any(part.text.strip() for part in self._rich if part.is_html)
        pieces: list[str] = []
        room = MAX_HTML if has_html else 0
        for part in self._rich:
            if part.is_html:
                pieces.append(part.text)
            elif room and part.text.strip():
                pieces.append(_write_paragraph(part.unflowed[:room]))
                room = max(0, room - len(part.unflowed))
        return "\n".join(pieces)

    @property
    def words(self) -> str:
        """The text of the mail with joined lines, or the visible words if it is blank."""
        words = "\n".join(filter(None, map(self._words_of, self._plain)))
        return words if words.strip() else self.page.text

    @property
    def other_words(self) -> str:
        """The words of the HTML of a mail that has a text as well."""
        return "\n".join(map(self._words_of, self._rich_only))

    @cached_property
    def _words_by_part(self) -> dict[int, str]:
        if len(self.htmls) == 1:
            return {id(self.htmls[0]): self.page.text}
        words: dict[int, str] = {}
        room = MAX_HTML
        for part in self.htmls:
            words[id(part)] = render_visible_text(read_tree(part.text, room)).text
            room = max(0, room - len(part.text))
        return words

    def _words_of(self, part: BodyPart) -> str:
        return self._words_by_part[id(part)] if part.is_html else part.unflowed


def _write_paragraph(text: str) -> str:
    """Return text as HTML, in elements that all mail programs show."""
    return f"<p>{escape(text.strip(), quote=False)}</p>".replace("\n", "<br>\n")


class _Leaf(Struct, frozen=True):
    """A part without parts, or a multipart that is attached as a whole."""

    entity: Entity
    is_alternative: bool
    is_whole: bool

    @property
    def is_text(self) -> bool:
        """Whether it is text and not declared an attachment; it may still have a file name.

        An unknown disposition is that of an attachment (RFC 2183 2.8).
        """
        one = self.entity
        return one.content_type in ("text/plain", "text/html") and one.disposition in _SHOWN

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


def choose_bodies(root: Entity) -> Chosen:
    """Return the parts that are shown. All readers of a mail use this choice.

    The parts of a multipart are shown one after another, text and HTML alike (RFC 2046 5.1.3). The
    last alternative with text alone is shown as text, and the last one with HTML as HTML (RFC 2046
    5.1.4). If all parts have a file name, the texts among them are used: the inline ones (RFC 2183
    2.1), or else all that are not declared attachments.
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
        bodies = inline or named
    return frozenset(id(leaf.entity) for leaf in bodies)


def _choose(entity: Entity, bodies: Set[int]) -> Chosen:
    if id(entity) in bodies:
        return Chosen((entity,), (entity,))
    found = [_choose(part, bodies) for part in entity.parts]
    if entity.content_type != "multipart/alternative":
        return Chosen(
            tuple(chain.from_iterable(chosen.plain for chosen in found)),
            tuple(chain.from_iterable(chosen.rich for chosen in found)),
        )
    # The last of the best: sorting keeps the order of equal ones.
    plain = sorted((chosen.plain for chosen in found), key=_judge_plain)
    rich = sorted((chosen.rich for chosen in found), key=_judge_rich)
    return Chosen(plain[-1] if plain else (), rich[-1] if rich else ())


def _judge_plain(parts: Sequence[Entity]) -> int:
    """Return how well parts are shown as text: 3 if all are text, 2 if some are."""
    of_text = [part.content_type != "text/html" for part in parts]
    return bool(parts) + any(of_text) + all(of_text)


def _judge_rich(parts: Sequence[Entity]) -> int:
    return bool(parts) + any(part.content_type == "text/html" for part in parts)


def _leaves(
    entity: Entity, *, is_alternative: bool = True, is_whole: bool = True
) -> Iterator[_Leaf]:
    if not entity.parts or (entity.disposition == "attachment" and not is_whole):
        yield _Leaf(entity, is_alternative, is_whole)
        return
    for part in entity.parts:
        is_alternative = entity.content_type == "multipart/alternative"
        yield from _leaves(part, is_alternative=is_alternative, is_whole=False)


def read_bodies(raw_message: bytes, chosen: Chosen, problems: list[str]) -> Bodies:
    """Decode the parts that are shown, and add a sentence about each error to ``problems``."""
    every = {id(entity): entity for entity in (*chosen.plain, *chosen.rich)}
    parts = {key: _read_part(raw_message, entity, problems) for key, entity in every.items()}
    return Bodies(
        [parts[id(part)] for part in chosen.plain], [parts[id(part)] for part in chosen.rich]
    )


def _read_part(raw_message: bytes, entity: Entity, problems: list[str]) -> BodyPart:
    data, transfer_problem = decode_transfer(raw_message[slice(*entity.body)], entity.encoding)
    label, declared = entity.parameters.get("charset", ""), ""
    is_html = entity.content_type == "text/html"
    if (is_ascii_label(label) or not find_codec(label)) and not is_utf_8(data):
        declared = find_declared_in_html(data) if is_html else ""
        declared = declared or find_declared_charset(raw_message)
    text, charset_problem = decode_text(data, label, declared)
    problems += filter(None, (transfer_problem, charset_problem))
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    is_flowed = entity.parameters.get("format", "").lower() == "flowed" and not is_html
    deletes_space = entity.parameters.get("delsp", "").lower() == "yes"
    unflowed = _unflow(text, deletes_space=deletes_space) if is_flowed else text
    return BodyPart(text, unflowed, is_html)


def _unflow(text: str, *, deletes_space: bool) -> str:
    """Join the lines that format=flowed wrapped (RFC 3676 4.2), including quoted lines."""
    joined: list[str] = []
    is_open = False
    for line in text.split("\n"):
        content = line.lstrip(">")
        depth = len(line) - len(content)
        content = content.removeprefix(" ")
        if is_open and content != "-- ":
            joined.append(content)
        else:
            joined.append(("\n" if joined else "") + ">" * depth + content)
        is_open = content.endswith(" ") and content != "-- "
        if is_open and deletes_space:
            joined[-1] = joined[-1][:-1]
    return "".join(joined)


_NOT_IN_FILENAMES = dict.fromkeys(
    # Path separators, and marks that change the reading direction to hide an extension.
    (*b"/\\", *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C),
    "_",
)


class Attachment(Struct, frozen=True):
    """One attachment with its decoded bytes; ``filename`` is safe to show and to download.

    ``opened`` is the text of an attached mail, and empty for any other part. ``charset`` and
    ``method`` are the parameters of the media type, which may be missing or wrong.
    """

    filename: str
    content_type: str
    data: bytes
    opened: str = ""
    charset: str = ""
    method: str = ""


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
            charset, method = (
                entity.parameters.get(parameter, "") for parameter in ("charset", "method")
            )
            name = name_attachment(entity)
            return Attachment(name, entity.content_type, data, opened, charset, method=method)
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
        str(number): _digest(decode_entity(raw_message, entity))
        for number, entity in enumerate(list_attachments(root), 1)
    }


def _digest(data: bytes) -> Digests:
    made = (hashlib.new(name, data, usedforsecurity=False) for name in Digests._fields)
    return Digests(*(body.hexdigest() for body in made))


OPENED_FIELDS = ("from", "to", "cc", "date", "subject")

MAX_OPENED = 128 * 1024
"""Maximum number of characters of the text of an attached mail that are shown."""


def open_mail(raw_message: bytes) -> str:
    """Return an attached mail as text: its fields, its text and the names of its attachments."""
    raw_message = end_lines(raw_message)
    structure = scan_structure(raw_message)
    lines = [
        f"{field.name}: {field.decode()}"
        for field in structure.fields
        if field.name.lower() in OPENED_FIELDS
    ]
    text = read_bodies(raw_message, choose_bodies(structure.root), []).words
    names = [
        f"[{name_attachment(entity) or entity.content_type}]"
        for entity in list_attachments(structure.root)
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
    "message/feedback-report": "feedback-report.txt",
    "message/global-delivery-status": "delivery-status.txt",
    "message/global-disposition-notification": "disposition-notification.txt",
    "message/global-headers": "mail-headers.txt",
    "message/rfc822-headers": "mail-headers.txt",
    "application/ics": "invite.ics",
    "text/calendar": "invite.ics",
    "text/rfc822-headers": "mail-headers.txt",
    "text/vcalendar": "invite.vcs",
    "text/vcard": "contact.vcf",
    "text/x-vcalendar": "invite.vcs",
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
