"""A message prepared for the templates: body, attachments and authentication."""

from collections.abc import Sequence
from html import escape
from typing import Any
from urllib.parse import urlencode

from msgspec import Struct

from mailcheck.api.requests.fields import FLAG
from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.content.bodies import Attachment, is_readable
from mailcheck.checks.content.bounces import Bounce, find_parts, read_bounce
from mailcheck.checks.content.calendar import CALENDAR_TYPES, Invitation, read_invitation
from mailcheck.checks.content.decoding import decode_text
from mailcheck.checks.content.links import TextPiece, cut_at_links
from mailcheck.checks.content.safe_html import SafeHtml
from mailcheck.checks.deliverability.authentication import Authentication
from mailcheck.core.content import AttachmentFacts
from mailcheck.core.errors import AttachmentNotFound
from mailcheck.core.messages import PROVIDER_TITLES, StoredMessage
from mailcheck.operations.inbox.show_message import ShowMessage
from mailcheck.web.dashboard.inbox.view import ListRequest
from mailcheck.web.dashboard.visits import Visit
from mailcheck.web.site.mail_frame import SANDBOX
from mailcheck.web.site.replies import Reply
from mailcheck.web.site.requests import header_values

MAX_PICTURE = 5_000_000
"""Maximum number of bytes of an image in a preview. Larger ones can be downloaded."""

MAX_TEXT = 1_000_000
"""Maximum number of bytes of a text attachment with a preview."""

MAX_PREVIEW_TEXT = 65_536
"""Maximum number of characters of a text attachment in its preview."""

PICTURES = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
}
"""Types of images, and how their bytes begin. SVG is excluded: it is a document."""

RIFF, WEBP = b"RIFF", b"WEBP"
"""Bytes 0 and 8 of a WebP picture."""

_NO_PICTURE = (
    b'<svg xmlns="http://www.w3.org/2000/svg" width="140" height="48" fill="#888">'
    b'<text x="14" y="29" font-family="sans-serif" font-size="15">not an image</text></svg>'
)
"""Replaces an attachment that is not an image. An HTTP error would only appear in the console."""

_PREVIEW_POLICY = (
    "sandbox; default-src 'none'; {more}form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
)

_STYLE = (
    ":root{color-scheme:light dark}body{margin:0;padding:12px;"
    "font:13px/1.5 ui-monospace,Menlo,Consolas,monospace}"
    "pre{margin:0;font:inherit;white-space:pre-wrap;overflow-wrap:anywhere;unicode-bidi:plaintext}"
)


def preview_of(facts: AttachmentFacts) -> str:
    """Return how an attachment can be previewed: ``picture``, ``text`` or ``""``."""
    is_picture = facts.content_type in PICTURES or facts.content_type in ("image/webp", "image/jpg")
    if is_picture and facts.size <= MAX_PICTURE:
        return "picture"
    return "text" if is_readable(facts.content_type) and facts.size <= MAX_TEXT else ""


def preview_reply(attachment: Attachment) -> Reply:
    """Return the preview of an attachment.

    :raises AttachmentNotFound: the attachment has no preview.
    """
    facts = AttachmentFacts("", "", attachment.content_type, len(attachment.data), None)
    kind = preview_of(facts)
    if kind == "picture":
        data = attachment.data
        if data[:4] == RIFF and data[8:12] == WEBP:
            return _reply(data, "image/webp", "")
        for content_type, beginnings in PICTURES.items():
            if data.startswith(beginnings):
                return _reply(data, content_type, "")
        return _reply(_NO_PICTURE, "image/svg+xml", "")
    if kind == "text":
        text = attachment.opened or decode_text(attachment.data, attachment.charset)[0]
        rest = "" if len(text) <= MAX_PREVIEW_TEXT else "\n\n[Truncated: download the file.]"
        body = (
            '<!doctype html>\n<html><head><meta charset="utf-8">'
            f"<title>{escape(attachment.filename)}</title><style>{_STYLE}</style></head>"
            f"<body><pre>{escape(text[:MAX_PREVIEW_TEXT])}{rest}</pre></body></html>\n"
        ).encode("utf-8", "replace")
        return _reply(body, "text/html; charset=utf-8", "style-src 'unsafe-inline'; ")
    raise AttachmentNotFound("this attachment has no preview: download it")


def _reply(body: bytes, content_type: str, more: str) -> Reply:
    return Reply(
        200,
        body,
        content_type,
        {
            "Content-Disposition": "inline",
            "Content-Security-Policy": _PREVIEW_POLICY.format(more=more),
            "X-Robots-Tag": "noindex, nofollow",
            "Cross-Origin-Resource-Policy": "same-origin",
        },
    )


_LEVELS = {
    AuthResult.PASS: "good",
    AuthResult.NONE: "unknown",
    AuthResult.NEUTRAL: "warn",
    AuthResult.SOFTFAIL: "warn",
    AuthResult.TEMPERROR: "unknown",
}
"""Result -> level. All other results are bad."""


class ResultRow(Struct, frozen=True):
    """One authentication result. ``subject`` is the domain that it applies to."""

    method: str
    subject: str
    level: str
    word: str
    explanation: str


def list_results(found: Authentication) -> Sequence[ResultRow]:
    """Return the rows for SPF, for each DKIM signature (one row if there is none) and for DMARC.

    For a sender that receivers on the internet would not see, one row says so instead.
    """
    spf, dmarc = found.spf.mail_from, found.dmarc
    signatures = [
        _row("DKIM", signature.header.signing_domain, signature.result, signature.explanation)
        for signature in found.dkim.signatures
    ]
    if found.origin.problem:
        address = found.origin.client_ip or "an unknown address"
        return (
            ResultRow(
                "",
                "",
                "unknown",
                "not checked",
                f"The mail came from a private address ({address}). SPF and DMARC depend on the "
                "public address of the sending server.",
            ),
            *signatures,
        )
    unsigned = _row("DKIM", "", AuthResult.NONE, "The mail is not signed.")
    return (
        _row("SPF", spf.domain, spf.result, spf.explanation),
        *(signatures or [unsigned]),
        _row("DMARC", dmarc.author_domain or "", dmarc.result, dmarc.explanation),
    )


def _row(method: str, subject: str, result: AuthResult, explanation: str) -> ResultRow:
    level = _LEVELS.get(result, "bad")
    return ResultRow(method, subject, level, result.value, explanation)


VIEWS = {
    "html": "HTML",
    "text": "Text",
    "markup": "HTML source",
    "headers": "Headers",
    "source": "Full source",
}
"""The views of a message, in order."""

MAX_TEXT_SHOWN = 512 * 1024
"""Maximum number of characters of text or source on a page. The download is complete."""

MAX_LINKS_SHOWN = 50
"""Maximum number of links in the list of a message."""

FEW_PEOPLE = 5
"""Number of addresses of a header field shown at first. The others can be unfolded."""

MAX_FILES_SHOWN = 100
"""Maximum number of attachments in the list of a message."""


class MessageView(Struct, frozen=True):
    """One view of a message. Values that this view does not show are empty."""

    message: StoredMessage
    name: str
    choices: tuple[tuple[str, str], ...]
    is_remote: bool
    safe: SafeHtml | None
    text: tuple[TextPiece, ...]
    source: str
    is_cut: bool
    beside: ListRequest | None
    invitation: Invitation | None = None
    bounce: Bounce | None = None

    @property
    def provider(self) -> str:
        """The provider whose API was called, or an empty text for mail over SMTP."""
        return PROVIDER_TITLES.get(self.message.summary.via, "")

    @property
    def percent(self) -> int:
        """The shown part of the HTML in percent, below 100 if only the beginning is shown."""
        if self.safe is None or self.safe.end is None:
            return 100
        return max(1, 100 * self.safe.end // len(self.message.content.html))

    @property
    def people(self) -> list[tuple[str, list[str]]]:
        """The addresses in the header by their title, unless they repeat the recipient."""
        titles = {"to": "To", "cc": "Cc", "bcc": "Bcc", "reply-to": "Reply-To"}
        found = {title: self.message.content.people_in(name) for name, title in titles.items()}
        recipient = self.message.summary.recipient.casefold()
        return [
            (
                title,
                [
                    f"{person.name} <{person.address}>" if person.name else person.address
                    for person in some
                ],
            )
            for title, some in found.items()
            if some and [person.address.casefold() for person in some] != [recipient]
        ]

    def view_query(self, name: str, **more: str) -> str:
        """Return the query string of another view, with the same list beside it."""
        asked = {"view": name, **more}
        return f"?{urlencode(asked)}" if self.beside is None else self.beside.here(**asked)

    def values(self) -> dict[str, Any]:
        """Return the template values."""
        return {
            "message": self.message,
            "summary": self.message.summary,
            "content": self.message.content,
            "view": self,
            "sandbox": SANDBOX,
            "max_links": MAX_LINKS_SHOWN,
            "max_files": MAX_FILES_SHOWN,
            "few_people": FEW_PEOPLE,
            "preview_of": preview_of,
            "view_query": self.view_query,
        }


async def view_message(
    show: ShowMessage, message: StoredMessage, visit: Visit, beside: ListRequest | None = None
) -> MessageView:
    """Return the view of a message that the query parameters ``view`` and ``remote`` select.

    :param beside: the owner's list. Without it the visitor is not the owner and gets no source.

    :raises MessageNotFound: the message has been deleted in the meantime.
    """
    content = message.content
    invitation = await _find_invitation(show, message)
    bounce = await _find_bounce(show, message)
    has_html = bool(content.html)
    has = dict.fromkeys(VIEWS, True) | {
        "html": has_html,
        "markup": has_html,
        "source": beside is not None,
    }
    choices = tuple((name, title) for name, title in VIEWS.items() if has[name])
    wanted = visit.query.text("view") or ""
    name = wanted if has.get(wanted) else choices[0][0]
    is_remote = allows_remote_content(visit)
    safe = None
    if name == "html":
        safe = await show.html(message, allows_remote=is_remote)
    raw = await show.raw_message(message) if name == "source" else b""
    shown: str | bytes = {"text": content.text, "markup": content.html}.get(name, raw)
    return MessageView(
        message=message,
        name=name,
        choices=choices,
        is_remote=is_remote,
        safe=safe,
        text=cut_at_links(content.text[:MAX_TEXT_SHOWN]) if name == "text" else (),
        source=(
            content.html[:MAX_TEXT_SHOWN]
            if name == "markup"
            else raw[:MAX_TEXT_SHOWN].decode("utf-8", "replace")
        ),
        is_cut=safe is None and len(shown) > MAX_TEXT_SHOWN,
        beside=beside,
        invitation=invitation,
        bounce=bounce,
    )


async def _find_invitation(show: ShowMessage, message: StoredMessage) -> Invitation | None:
    """Return the event of the first calendar part, if there is one."""
    for facts in message.content.attachments:
        if facts.content_type in CALENDAR_TYPES:
            attachment = await show.attachment(message, facts.id)
            return read_invitation(attachment.data, attachment.charset, attachment.method)
    return None


async def _find_bounce(show: ShowMessage, message: StoredMessage) -> Bounce | None:
    """Return what a delivery status notification says, or `None` for any other mail."""
    attachments = message.content.attachments
    found = find_parts([attachment.content_type for attachment in attachments])
    if found is None:
        return None
    status, returned = found
    report = await show.attachment(message, attachments[status].id)
    if returned is None:
        return read_bounce(report.data)
    mail = await show.attachment(message, attachments[returned].id)
    return read_bounce(report.data, mail.data)


def allows_remote_content(visit: Visit) -> bool:
    """Return whether the visitor requested remote content, on a page of this site."""
    sites = header_values(visit.request, b"Sec-Fetch-Site")
    return visit.query.value("remote", FLAG, False) and all(site == "same-origin" for site in sites)
