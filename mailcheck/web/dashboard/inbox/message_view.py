"""What is shown of a message, on its own page and on the page of its share link."""

from typing import Any
from urllib.parse import urlencode

from msgspec import Struct

from mailcheck.checks.content.safe_html import SafeHtml
from mailcheck.checks.content.urls import TextPiece, cut_at_links
from mailcheck.core.messages import StoredMessage
from mailcheck.operations.inbox.show_message import ShowMessage
from mailcheck.web.dashboard.inbox.attachment_preview import preview_of
from mailcheck.web.dashboard.inbox.message_frame import SANDBOX
from mailcheck.web.dashboard.inbox.view import ListRequest
from mailcheck.web.dashboard.visits import Visit
from mailcheck.web.site.requests import header_values

VIEWS = {
    "html": "HTML",
    "text": "Text",
    "markup": "HTML source",
    "headers": "Headers",
    "source": "Source",
}
"""The ways to look at a message, in order; each is a page of its own."""

MAX_TEXT_SHOWN = 512 * 1024
"""Characters of text or source on a page; the download has all of it."""

MAX_LINKS_SHOWN = 50
"""Links listed beside a mail."""

FEW_PEOPLE = 5
"""Addresses of a field that are shown at once; the others are unfolded."""

MAX_FILES_SHOWN = 100
"""Attachments listed below a mail."""


class MessageView(Struct, frozen=True):
    """One way to look at one message; what this way does not show is empty."""

    message: StoredMessage
    name: str
    choices: tuple[tuple[str, str], ...]
    is_remote: bool
    safe: SafeHtml | None
    text: tuple[TextPiece, ...]
    source: str
    is_cut: bool
    beside: ListRequest | None

    @property
    def people(self) -> list[tuple[str, list[str]]]:
        """List the addresses of the header that are not the recipient's alone, by their title."""
        titles = {"to": "Named in To", "cc": "Cc", "bcc": "Bcc", "reply-to": "Reply-To"}
        found = {title: self.message.content.people_in(name) for name, title in titles.items()}
        recipient = self.message.summary.recipient.casefold()
        return [
            (title, [f"{one.name} <{one.address}>" if one.name else one.address for one in some])
            for title, some in found.items()
            if some and [one.address.casefold() for one in some] != [recipient]
        ]

    def look(self, name: str, **more: str) -> str:
        """Write the query string of another way to look at it; the list beside it stays."""
        asked = {"view": name, **more}
        return f"?{urlencode(asked)}" if self.beside is None else self.beside.here(**asked)

    def values(self) -> dict[str, Any]:
        """Give what the templates name."""
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
            "look": self.look,
        }


async def view_message(
    show: ShowMessage, message: StoredMessage, visit: Visit, beside: ListRequest | None = None
) -> MessageView:
    """Look at a message as the query says: ``view`` and ``remote``.

    :param beside: its owner's list; whoever else looks at it may not have its source.

    :raises MessageNotFound: it has been deleted meanwhile.
    """
    content = message.content
    has_html = bool(content.html)
    has = dict.fromkeys(VIEWS, True) | {
        "html": has_html,
        "markup": has_html,
        "source": beside is not None,
    }
    choices = tuple((name, title) for name, title in VIEWS.items() if has[name])
    wanted = visit.query.text("view") or ""
    name = wanted if has.get(wanted) else choices[0][0]
    is_remote = asks_for_remote(visit)
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
        is_cut=safe.is_cut if safe else len(shown) > MAX_TEXT_SHOWN,
        beside=beside,
    )


def asks_for_remote(visit: Visit) -> bool:
    """Tell whether remote content was asked for on our own page: no link from elsewhere asks."""
    sites = header_values(visit.request, b"Sec-Fetch-Site")
    return visit.query.flag("remote") and all(site == "same-origin" for site in sites)
