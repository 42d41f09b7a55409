"""Attachments shown beside their mail: pictures and text, and nothing that could do anything.

What a browser gets is named by what the bytes are, not by what the mail says of them: a page that
is called a picture is none. Text comes as a document of ours with the text in it, in a sandbox
with no right at all.
"""

from html import escape

from mailcheck.checks.content.bodies import MAIL_TYPES, Attachment
from mailcheck.checks.content.decoding import decode_text
from mailcheck.core.content import AttachmentFacts
from mailcheck.core.errors import AttachmentNotFound
from mailcheck.web.site.replies import Reply

MAX_PICTURE = 5_000_000
"""Bytes of a picture that is shown; a larger one is for download."""

MAX_TEXT = 1_000_000
"""Bytes of a text of which the beginning is shown."""

MAX_TEXT_SHOWN = 65_536
"""Characters of it."""

PICTURES = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
}
"""Kinds of pictures, and how their bytes begin; no SVG, which is a document."""

RIFF, WEBP = b"RIFF", b"WEBP"
"""Bytes 0 and 8 of a WebP picture."""

_TEXTS = {"application/json", "application/xml", "application/x-yaml", *MAIL_TYPES}
"""Kinds that are text, beside all ``text/``."""

_NO_PICTURE = (
    b'<svg xmlns="http://www.w3.org/2000/svg" width="140" height="48" fill="#888">'
    b'<text x="14" y="29" font-family="sans-serif" font-size="15">not a picture</text></svg>'
)
"""In place of what is called a picture and is none; an error would only be in the console."""

_POLICY = (
    "sandbox; default-src 'none'; {more}form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
)

_STYLE = (
    ":root{color-scheme:light dark}body{margin:0;padding:12px;"
    "font:13px/1.5 ui-monospace,Menlo,Consolas,monospace}"
    "pre{margin:0;font:inherit;white-space:pre-wrap;overflow-wrap:anywhere;unicode-bidi:plaintext}"
)


def preview_of(facts: AttachmentFacts) -> str:
    """Say how an attachment may be shown: ``picture``, ``text``, or not at all."""
    is_picture = facts.content_type in PICTURES or facts.content_type in ("image/webp", "image/jpg")
    if is_picture and facts.size <= MAX_PICTURE:
        return "picture"
    is_text = facts.content_type.startswith(("text/", "multipart/"))
    is_text = is_text or facts.content_type in _TEXTS
    return "text" if is_text and facts.size <= MAX_TEXT else ""


def preview_reply(attachment: Attachment) -> Reply:
    """Show an attachment.

    :raises AttachmentNotFound: it is nothing that can be shown.
    """
    facts = AttachmentFacts("", "", attachment.content_type, len(attachment.data), None)
    kind = preview_of(facts)
    if kind == "picture":
        content_type = _picture_type(attachment.data)
        if content_type is None:
            return _reply(_NO_PICTURE, "image/svg+xml", "")
        return _reply(attachment.data, content_type, "")
    if kind == "text":
        return _reply(
            _document(attachment), "text/html; charset=utf-8", "style-src 'unsafe-inline'; "
        )
    raise AttachmentNotFound("this attachment can't be shown here: download it")


def _picture_type(data: bytes) -> str | None:
    if data[:4] == RIFF and data[8:12] == WEBP:
        return "image/webp"
    return next(
        (kind for kind, beginnings in PICTURES.items() if data.startswith(beginnings)), None
    )


def _document(attachment: Attachment) -> bytes:
    text = attachment.opened or decode_text(attachment.data, "")[0]
    rest = "" if len(text) <= MAX_TEXT_SHOWN else "\n\n[It goes on: download it.]"
    return (
        '<!doctype html>\n<html><head><meta charset="utf-8">'
        f"<title>{escape(attachment.filename)}</title><style>{_STYLE}</style></head>"
        f"<body><pre>{escape(text[:MAX_TEXT_SHOWN])}{rest}</pre></body></html>\n"
    ).encode("utf-8", "replace")


def _reply(body: bytes, content_type: str, more: str) -> Reply:
    return Reply(
        200,
        body,
        content_type,
        {
            "Content-Disposition": "inline",
            "Content-Security-Policy": _POLICY.format(more=more),
            "X-Robots-Tag": "noindex, nofollow",
            "Cross-Origin-Resource-Policy": "same-origin",
        },
    )
