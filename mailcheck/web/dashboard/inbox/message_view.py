"""What is shown of a message, on its own page and on the page of its share link."""

from dataclasses import dataclass
from typing import Any

from mailcheck.checks.content.safe_html import SafeHtml
from mailcheck.checks.content.urls import TextPiece, cut_at_links
from mailcheck.core.messages import StoredMessage
from mailcheck.operations.inbox.show_message import ShowMessage
from mailcheck.web.dashboard.inbox.message_frame import SANDBOX
from mailcheck.web.dashboard.visits import Visit
from mailcheck.web.site.request_headers import header_values

VIEWS = {"html": "HTML", "text": "Text", "headers": "Headers", "source": "Source"}
"""The ways to look at a message, in order; each is a page of its own."""

MAX_TEXT_SHOWN = 512 * 1024
"""Characters of text or source on a page; the download has all of it."""

MAX_LINKS_SHOWN = 50
"""Links listed beside a mail."""


@dataclass(frozen=True, slots=True)
class MessageView:
    """One way to look at one message; what this way does not show is empty."""

    message: StoredMessage
    name: str
    choices: tuple[tuple[str, str], ...]
    is_remote: bool
    safe: SafeHtml | None
    text: tuple[TextPiece, ...]
    source: str
    is_cut: bool

    def values(self) -> dict[str, Any]:
        """Give what the templates name."""
        return {
            "message": self.message,
            "summary": self.message.summary,
            "content": self.message.content,
            "view": self,
            "sandbox": SANDBOX,
            "max_links": MAX_LINKS_SHOWN,
        }


async def view_message(
    show: ShowMessage, message: StoredMessage, visit: Visit, *, has_source: bool
) -> MessageView:
    """Look at a message as the query says: ``view`` and ``remote``.

    :raises MessageNotFound: it has been deleted meanwhile.
    """
    content = message.content
    has = {"html": bool(content.html), "text": True, "headers": True, "source": has_source}
    choices = tuple((name, title) for name, title in VIEWS.items() if has[name])
    wanted = visit.query.text("view") or ""
    name = wanted if has.get(wanted) else choices[0][0]
    is_remote = asks_for_remote(visit)
    safe = None
    if name == "html":
        safe = await show.html(message, allows_remote=is_remote)
    raw = await show.raw_message(message) if name == "source" else b""
    shown = content.text if name == "text" else raw
    return MessageView(
        message=message,
        name=name,
        choices=choices,
        is_remote=is_remote,
        safe=safe,
        text=cut_at_links(content.text[:MAX_TEXT_SHOWN]) if name == "text" else (),
        source=raw[:MAX_TEXT_SHOWN].decode("utf-8", "replace"),
        is_cut=safe.is_cut if safe else len(shown) > MAX_TEXT_SHOWN,
    )


def asks_for_remote(visit: Visit) -> bool:
    """Tell whether remote content was asked for on our own page: no link from elsewhere asks."""
    sites = header_values(visit.request, b"Sec-Fetch-Site")
    return visit.query.flag("remote") and all(site == "same-origin" for site in sites)
