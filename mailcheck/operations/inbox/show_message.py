"""The content of a message as browsers may show it."""

from functools import partial

from mailcheck.checks.content.bodies import Attachment
from mailcheck.checks.content.limits import MAX_HTML
from mailcheck.checks.content.safe_html import SafeHtml, make_safe
from mailcheck.core.identifiers import DeliveryId
from mailcheck.core.memory.recent import LruCache
from mailcheck.core.messages import StoredMessage
from mailcheck.operations.concurrency import SingleFlight
from mailcheck.operations.inbox.contents import MailBytes
from mailcheck.ports.workers import Worker

RECENT_PAGES = 32
"""Number of cached safe pages. A page, its frame and a reload follow each other closely."""

RECENT_SIZE = 1_000_000
"""Length in characters above which a page is not cached."""

_Key = tuple[DeliveryId, bool]


class ShowMessage:
    """Renders the content of mails safely for a browser, in a worker."""

    def __init__(self, mail_bytes: MailBytes, worker: Worker) -> None:
        self._mail_bytes = mail_bytes
        self._worker = worker
        self._recent: LruCache[_Key, SafeHtml] = LruCache(RECENT_PAGES)
        self._making: SingleFlight[_Key, SafeHtml, StoredMessage] = SingleFlight(self._make)

    async def html(self, message: StoredMessage, *, allows_remote: bool) -> SafeHtml:
        """Return the HTML of a message, sanitised for a sandboxed frame.

        :raises MessageNotFound: the message was deleted meanwhile.
        """
        key = message.summary.delivery_id, allows_remote
        safe = self._recent.get(key)
        return await self._making.call(key, message) if safe is None else safe

    async def raw_message(self, message: StoredMessage) -> bytes:
        """Return the exact bytes received after DATA.

        :raises MessageNotFound: the message was deleted meanwhile.
        :raises Overloaded: too many large mails are being read.
        """
        return await self._mail_bytes.whole(message.summary)

    async def attachment(self, message: StoredMessage, attachment_id: str) -> Attachment:
        """Return a decoded attachment.

        :raises MessageNotFound: the message was deleted meanwhile.
        :raises AttachmentNotFound: the message has no such attachment.
        :raises Overloaded: too many large mails are being read.
        """
        return await self._mail_bytes.attachment(message.summary, attachment_id)

    async def _make(self, key: _Key, message: StoredMessage) -> SafeHtml:
        html = message.content.html[: MAX_HTML + 1]
        # The whole mail is only sent to the worker if its HTML refers to inline images.
        owner = message.summary.account_id
        has_images = bool(message.content.attachments) and "cid:" in html.lower()
        make = partial(make_safe, html, allows_remote=key[1])
        if has_images:
            async with self._mail_bytes.opened(message.summary) as raw:
                safe = await self._worker.run(partial(make, raw), owner)
        else:
            safe = await self._worker.run(partial(make, b""), owner)
        if len(safe.body) + len(safe.style_sheet) <= RECENT_SIZE:
            self._recent.put(key, safe)
        return safe
