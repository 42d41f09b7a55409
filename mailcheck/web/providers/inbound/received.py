"""A received mail as the formats of providers need it, read from its bytes once."""

from collections.abc import Sequence
from functools import cached_property

from msgspec import Struct

from mailcheck.checks.content.bodies import (
    Bodies,
    choose_bodies,
    decode_entity,
    list_attachments,
    name_attachment,
    read_bodies,
)
from mailcheck.checks.content.charsets import find_codec
from mailcheck.checks.content.decoding import decode_transfer, end_lines
from mailcheck.checks.content.header.fields import HeaderField
from mailcheck.checks.content.header.mailboxes import parse_mailboxes
from mailcheck.checks.content.limits import MAX_HEADER_BYTES
from mailcheck.checks.content.structure import Entity, scan_structure
from mailcheck.web.providers.inbound.quotes import Reply, read_reply

UTF_8 = "UTF-8"


class Address(Struct, frozen=True):
    """A mailbox of a header field. ``name`` may be empty."""

    name: str
    address: str

    @property
    def shown(self) -> str:
        """The name with the address in angle brackets, or the address alone."""
        return f"{self.name} <{self.address}>" if self.name else self.address


class Text(Struct, frozen=True):
    """A body: its text with LF as line breaks, and its decoded bytes in their charset."""

    text: str
    data: bytes
    charset: str


class ReceivedFile(Struct, frozen=True):
    """A file of the mail.

    ``number`` counts from 1. ``filename`` is safe, and empty if the mail has none. ``name`` is the
    file name as the mail has it. ``content_id`` is without angle brackets, and empty if there is
    none.
    """

    number: int
    filename: str
    name: str
    content_type: str
    charset: str
    disposition: str
    content_id: str
    data: bytes

    @property
    def full_type(self) -> str:
        """The content type with the charset, if the mail names one."""
        return self.content_type + (f"; charset={self.charset}" if self.charset else "")


class ReceivedMail:
    """The fields, the bodies and the files of a mail. Nothing is parsed before it is used."""

    def __init__(self, raw_message: bytes) -> None:
        """``raw_message`` are the bytes of the mail. Each line ends with CRLF from now on."""
        self.raw_message = end_lines(raw_message)
        self._structure = scan_structure(self.raw_message)
        self._chosen = choose_bodies(self._structure.root)

    @property
    def fields(self) -> Sequence[HeaderField]:
        """The fields of the header in their order."""
        return self._structure.fields

    def find(self, name: str) -> str:
        """Return the decoded value of the first field of a name, or an empty text."""
        found = self._all(name)
        return found[0].decode().strip() if found else ""

    def shown(self, name: str) -> str:
        """Return the decoded values of all fields of a name, separated by commas."""
        return ", ".join(field.decode().strip() for field in self._all(name))

    def people(self, name: str) -> list[Address]:
        """Return the mailboxes of all fields of a name."""
        return [
            Address(display_name, address)
            for field in self._all(name)
            for address, display_name in parse_mailboxes(field.as_text(), MAX_HEADER_BYTES)
        ]

    @property
    def author(self) -> Address:
        """The first author, or an empty address."""
        return next(iter(self.people("from")), Address("", ""))

    @property
    def message_id(self) -> str:
        """The Message-ID with its angle brackets, or an empty text."""
        return self.find("message-id")

    @property
    def signing_domains(self) -> list[str]:
        """The domains of the DKIM signatures, or that of the author if there is none."""
        found = [
            value.strip()
            for field in self._all("dkim-signature")
            for tag in field.as_text().split(";")
            for key, _, value in [tag.partition("=")]
            if key.strip().lower() == "d"
        ]
        return list(dict.fromkeys(found)) or [self.author.address.rpartition("@")[2]]

    @cached_property
    def text(self) -> Text | None:
        """The plain text, or `None` if the mail has none."""
        parts = self._chosen.plain
        is_there = any(part.content_type != "text/html" for part in parts)
        return self._text_of(parts, self._bodies.text) if is_there else None

    @cached_property
    def html(self) -> Text | None:
        """The HTML, or `None` if the mail has none."""
        parts = self._chosen.rich
        is_there = any(part.content_type == "text/html" for part in parts)
        return self._text_of(parts, self._bodies.html) if is_there else None

    @cached_property
    def words(self) -> str:
        """The text, or the visible words of the HTML if the mail has no text."""
        return self.text.text if self.text is not None else self._bodies.words

    @cached_property
    def reply(self) -> Reply:
        """The part of the text that its author wrote, without the quoted mail."""
        return read_reply(self.words)

    @cached_property
    def files(self) -> Sequence[ReceivedFile]:
        """The files in the order of the mail, with inline pictures."""
        return [
            ReceivedFile(
                number=number,
                filename=name_attachment(entity),
                name=entity.filename,
                content_type=entity.content_type,
                charset=entity.parameters.get("charset", ""),
                disposition=entity.disposition,
                content_id=entity.content_id or "",
                data=decode_entity(self.raw_message, entity),
            )
            for number, entity in enumerate(list_attachments(self._structure.root), 1)
        ]

    def _all(self, name: str) -> list[HeaderField]:
        return [field for field in self.fields if field.name.lower() == name]

    @cached_property
    def _bodies(self) -> Bodies:
        return read_bodies(self.raw_message, self._chosen, [])

    def _text_of(self, parts: Sequence[Entity], text: str) -> Text:
        """Return a body. Several parts are one text in UTF-8, as are bytes without a charset."""
        charset = parts[0].parameters.get("charset", "")
        if len(parts) > 1 or find_codec(charset) is None:
            return Text(text, text.replace("\n", "\r\n").encode("utf-8", "replace"), UTF_8)
        start, end = parts[0].body
        data, _ = decode_transfer(self.raw_message[start:end], parts[0].encoding)
        return Text(text, data, UTF_8 if charset.lower() in ("utf-8", "us-ascii") else charset)
