"""The JSON of Mailosaur's messages."""

from collections.abc import Sequence
from typing import Any

from mailcheck.checks.content.outline import Outline
from mailcheck.core.content import AttachmentFacts, Person
from mailcheck.core.instants import format_instant
from mailcheck.core.messages import ListedMessage, MessageSummary, StoredMessage
from mailcheck.web.compatible.reading import join_file_id

Json = dict[str, Any]

ID_LENGTH = 8
"""Number of characters of the id of a server, which Mailosaur's clients check."""


def server_of(tag: str) -> str:
    """Return the id of the server that mail with a tag belongs to."""
    return tag[:ID_LENGTH]


def render_list(found: Sequence[ListedMessage]) -> Json:
    """Render messages of a list. The only recipient known there is that of the envelope."""
    return {
        "items": [
            {
                **_head(message.summary),
                "to": [_address("", message.summary.recipient)],
                "cc": [],
                "bcc": [],
                "summary": message.extracted.snippet,
                "attachments": message.extracted.attachment_count,
            }
            for message in found
        ]
    }


def render_message(message: StoredMessage, outline: Outline, base: str) -> Json:
    """Render a whole message. The text of a link is `None` if it contains only pictures.

    :param base: the URL of the facade, without a slash at the end.
    """
    summary, content = message.summary, message.content
    return {
        **_head(summary),
        **{name: _people(content.people_in(name)) for name in ("to", "cc", "bcc")},
        "html": {
            "body": content.html,
            "links": [
                {"href": anchor.url, "text": anchor.text if anchor.has_text else None}
                for anchor in outline.anchors
            ],
            "codes": _codes(content.codes, content.html),
            "images": [
                {"src": picture.source, "alt": picture.alternative} for picture in outline.pictures
            ],
        },
        "text": {
            "body": content.text,
            "links": [{"href": url, "text": url} for url in outline.urls],
            "codes": _codes(content.codes, content.text),
            "images": [],
        },
        "attachments": [
            _file(join_file_id(summary.id, attachment.id), attachment, base)
            for attachment in content.attachments
        ],
        "metadata": {
            "headers": [{"field": name, "value": value} for name, value in content.header_list],
            "ehlo": message.session.helo_name,
            "mailFrom": message.envelope_sender,
            "rcptTo": [_address("", summary.recipient)],
        },
    }


def _head(summary: MessageSummary) -> Json:
    """Return what lists and whole messages have in common."""
    header = summary.header
    return {
        "id": summary.id,
        "type": "Email",
        "server": server_of(summary.tag),
        "from": [_address(header.author_name, header.author_address)],
        "received": format_instant(summary.received_at),
        "subject": header.subject,
    }


def _address(name: str, email: str) -> Json:
    return {"name": name, "email": email, "phone": None}


def _people(people: Sequence[Person]) -> list[Json]:
    return [_address(person.name, person.address) for person in people]


def _file(file_id: str, one: AttachmentFacts, base: str) -> Json:
    return {
        "id": file_id,
        "contentType": one.content_type,
        "fileName": one.filename,
        "contentId": one.content_id,
        "length": one.size,
        "url": f"{base}/api/files/attachments/{file_id}",
    }


def _codes(codes: Sequence[str], body: str) -> list[Json]:
    """Return the codes of a body, or all if its markup separates their digits."""
    found = [code for code in codes if code in body]
    return [{"value": code} for code in found or (codes if body else ())]
