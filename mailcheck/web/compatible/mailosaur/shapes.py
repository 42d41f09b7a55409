"""The JSON of Mailosaur's messages."""

from typing import Any

from mailcheck.api.shapes import Shape
from mailcheck.checks.content.outline import Outline
from mailcheck.core.content import Person
from mailcheck.core.instants import format_instant
from mailcheck.core.messages import ListedMessage, MessageSummary, StoredMessage
from mailcheck.web.compatible.reading import join_file_id

ID_LENGTH = 8
"""Number of characters of the id of a server, which Mailosaur's clients check."""


class Address(Shape):
    """A person, with ``phone`` for the messages that mailcheck never has."""

    name: str
    email: str
    phone: None = None


class Link(Shape):
    """A link; ``text`` is `None` if it contains only pictures."""

    href: str
    text: str | None


class Code(Shape):
    """A one-time code."""

    value: str


class Image(Shape):
    """A picture of the HTML."""

    src: str
    alt: str


class Content(Shape):
    """The HTML or the text of a message."""

    body: str
    links: tuple[Link, ...]
    codes: tuple[Code, ...]
    images: tuple[Image, ...] = ()


class File(Shape):
    """An attachment; ``length`` is in bytes."""

    id: str
    content_type: str
    file_name: str
    content_id: str | None
    length: int
    url: str


class HeaderField(Shape):
    """A field of the header."""

    field: str
    value: str


class Metadata(Shape):
    """The header and the envelope."""

    headers: tuple[HeaderField, ...]
    ehlo: str
    mail_from: str
    rcpt_to: tuple[Address, ...]


class Message(Shape):
    """A whole message."""

    id: str
    type: str
    from_: tuple[Address, ...]
    to: tuple[Address, ...]
    cc: tuple[Address, ...]
    bcc: tuple[Address, ...]
    received: str
    subject: str
    html: Content
    text: Content
    attachments: tuple[File, ...]
    metadata: Metadata
    server: str


class Summary(Shape):
    """A message in a list; ``attachments`` is their number."""

    id: str
    type: str
    server: str
    from_: tuple[Address, ...]
    to: tuple[Address, ...]
    cc: tuple[Address, ...]
    bcc: tuple[Address, ...]
    received: str
    subject: str
    summary: str
    attachments: int


class Messages(Shape):
    """A list of messages, newest first."""

    items: tuple[Summary, ...]


def server_of(tag: str) -> str:
    """Return the id of the server that mail with a tag belongs to."""
    return tag[:ID_LENGTH]


def render_list(found: list[ListedMessage]) -> Messages:
    """Render messages of a list. The only recipient known there is that of the envelope."""
    return Messages(tuple(_summarise(one) for one in found))


def _summarise(found: ListedMessage) -> Summary:
    return Summary(
        **_common(found.summary),
        to=(Address("", found.summary.recipient),),
        cc=(),
        bcc=(),
        summary=found.extracted.snippet,
        attachments=found.extracted.attachment_count,
    )


def render_message(message: StoredMessage, outline: Outline, base: str) -> Message:
    """Render a whole message.

    :param base: the URL of the facade, without a slash at the end.
    """
    summary, content = message.summary, message.content
    return Message(
        **_common(summary),
        to=_people(content.people_in("to")),
        cc=_people(content.people_in("cc")),
        bcc=_people(content.people_in("bcc")),
        html=Content(
            content.html,
            tuple(Link(one.href, one.text if one.has_text else None) for one in outline.anchors),
            _codes(content.codes, content.html),
            tuple(Image(one.source, one.alternative) for one in outline.pictures),
        ),
        text=Content(
            content.text,
            tuple(Link(url, url) for url in outline.urls),
            _codes(content.codes, content.text),
        ),
        attachments=tuple(
            File(
                join_file_id(summary.id, one.id),
                one.content_type,
                one.filename,
                one.content_id,
                one.size,
                f"{base}/api/files/attachments/{join_file_id(summary.id, one.id)}",
            )
            for one in content.attachments
        ),
        metadata=Metadata(
            tuple(HeaderField(name, value) for name, value in content.header_list),
            message.session.helo_name,
            message.envelope_sender,
            (Address("", summary.recipient),),
        ),
    )


def _common(summary: MessageSummary) -> dict[str, Any]:
    header = summary.header
    return {
        "id": summary.id,
        "type": "Email",
        "server": server_of(summary.tag),
        "from_": (Address(header.author_name, header.author_address),),
        "received": format_instant(summary.received_at),
        "subject": header.subject,
    }


def _people(people: list[Person]) -> tuple[Address, ...]:
    return tuple(Address(one.name, one.address) for one in people)


def _codes(codes: tuple[str, ...], body: str) -> tuple[Code, ...]:
    """Return the codes of a body, or all if its markup separates their digits."""
    found = [code for code in codes if code in body]
    return tuple(map(Code, found or (codes if body else ())))
