"""Showing a message to a person: its HTML made safe, its attachments, its bytes.

For whoever was given the message: its owner, or somebody with its share link.
"""

from functools import partial

from mailcheck.checks.content.bodies import Attachment, find_inline_images
from mailcheck.checks.content.limits import MAX_HTML
from mailcheck.checks.content.safe_html import SafeHtml, sanitise_html
from mailcheck.core.identifiers import DeliveryId
from mailcheck.core.messages import StoredMessage
from mailcheck.core.recent import RecentlyUsed
from mailcheck.operations.concurrency import SharedCalls
from mailcheck.operations.inbox.mail_bytes import MailBytes
from mailcheck.ports.workers import Worker

RECENT_PAGES = 32
"""Safe pages kept: the page, its frame and a reload come right after one another."""

RECENT_SIZE = 1_000_000
"""Characters over which a page is not kept."""

_Key = tuple[DeliveryId, bool]


class ShowMessage:
    """Makes what a mail holds fit for a browser, away from the reactor."""

    def __init__(self, mail_bytes: MailBytes, worker: Worker) -> None:
        self._mail_bytes = mail_bytes
        self._worker = worker
        self._recent: RecentlyUsed[_Key, SafeHtml] = RecentlyUsed(RECENT_PAGES)
        self._wanted: dict[_Key, StoredMessage] = {}
        self._making: SharedCalls[_Key, SafeHtml] = SharedCalls(self._make)

    async def html(self, message: StoredMessage, *, allows_remote: bool) -> SafeHtml:
        """Give the HTML of a message, safe to be shown in a sandboxed frame.

        :raises MessageNotFound: it has been deleted meanwhile.
        """
        key = message.summary.delivery_id, allows_remote
        safe = self._recent.get(key)
        if safe is None:
            self._wanted[key] = message
            making = self._making.call(key)
            self._wanted.pop(key, None)  # still there where somebody else had begun
            safe = await making
        return safe

    async def raw_message(self, message: StoredMessage) -> bytes:
        """Give the exact bytes that came after DATA.

        :raises MessageNotFound: it has been deleted meanwhile.
        :raises Overloaded: too many large mails are asked for.
        """
        return await self._mail_bytes.whole(message.summary)

    async def attachment(self, message: StoredMessage, attachment_id: str) -> Attachment:
        """Give an attachment, decoded.

        :raises MessageNotFound: the message has been deleted meanwhile.
        :raises AttachmentNotFound: it has no such attachment.
        :raises Overloaded: too many large mails are asked for.
        """
        return await self._mail_bytes.attachment(message.summary, attachment_id)

    async def _make(self, key: _Key) -> SafeHtml:
        message = self._wanted.pop(key)
        html = message.content.html[: MAX_HTML + 1]
        # The whole mail goes to the worker only where its HTML asks for parts of it.
        owner = message.summary.account_id
        has_images = bool(message.content.attachments) and "cid:" in html.lower()
        make = partial(make_safe, html, allows_remote=key[1])
        if has_images:
            async with self._mail_bytes.in_hand(message.summary) as raw:
                safe = await self._worker.run(partial(make, raw), owner)
        else:
            safe = await self._worker.run(partial(make, b""), owner)
        if len(safe.body) + len(safe.style_sheet) <= RECENT_SIZE:
            self._recent.put(key, safe)
        return safe


def make_safe(html: str, raw_message: bytes, *, allows_remote: bool) -> SafeHtml:
    """Make HTML safe, with the images that its mail brings along."""
    safe = sanitise_html(html, allows_remote=allows_remote)
    images = find_inline_images(raw_message, safe.content_ids) if safe.content_ids else {}
    if not images:
        return safe
    return sanitise_html(html, images, allows_remote=allows_remote)
