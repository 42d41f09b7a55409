"""Reading an inbox: overview, address, lists, single messages, raw bytes, attachments."""

from msgspec import Struct
from twisted.logger import Logger

from mailcheck.checks.content.bodies import Attachment
from mailcheck.core.accounts import InboxState
from mailcheck.core.cursors import Position, require_reached
from mailcheck.core.errors import MessageNotFound, StoreUnavailable
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import AccountId, MessageId
from mailcheck.core.messages import ListedMessage, MessageSummary, StoredMessage
from mailcheck.operations.inbox.contents import Contents, MessageLoader
from mailcheck.operations.inbox.mail_bytes import MailBytes
from mailcheck.ports.clocks import Now
from mailcheck.store.mail_store import MailStore
from mailcheck.store.messages import InboxOverview

OVERVIEW_TAGS = 200
"""Tags that an overview names, the newest: each test may make one, and people read a screen."""


LOOKED_THROUGH = 1_000
"""Newest messages of which the unread ones are counted: what people still mean to look at."""

BATCH = 500
"""Messages marked in one transaction, so that mail coming in waits a moment at most."""


class MessageList(Struct, frozen=True):
    """A page of messages, newest first. ``next_page`` is ``None`` on the last one.

    ``not_searched`` counts messages that may match as well: what is in them is not known yet.
    """

    messages: tuple[ListedMessage, ...]
    next_page: int | None
    total: int
    cursor: Position
    not_searched: int = 0


class ReadInbox:
    """The reading operations of one daemon."""

    _log = Logger()

    def __init__(
        self,
        store: MailStore,
        contents: Contents,
        loader: MessageLoader,
        mail_bytes: MailBytes,
        now: Now,
    ) -> None:
        self._store = store
        self._contents = contents
        self._loader = loader
        self._mail_bytes = mail_bytes
        self._now = now

    async def state(self, account_id: AccountId) -> InboxState:
        """Give the inbox of an account with its newest cursor."""
        inbox = await self._store.find_account_inbox(account_id)
        if inbox is None:
            raise MessageNotFound("the account has been removed")
        return inbox

    async def overview(self, account_id: AccountId) -> InboxOverview:
        """Sum the inbox up."""
        return await self._store.overview(account_id, self._now(), OVERVIEW_TAGS)

    async def page(
        self, account_id: AccountId, wanted: MessageFilter, limit: int, page: int
    ) -> MessageList:
        """List messages that match, newest first; pages count from 1.

        :raises InvalidParameter: ``after`` is a cursor of another inbox.
        """
        offset = (page - 1) * limit
        found = await self._store.page(account_id, wanted, self._now(), limit, offset)
        require_reached(wanted.start, found.last_position)
        messages = []
        for summary, extracted in found.entries:
            if extracted is None:
                try:
                    extracted = (await self._contents.of_message(summary)).extracted
                except MessageNotFound:
                    continue  # deleted since the page was read
            messages.append(ListedMessage(summary, extracted))
        has_more = offset + len(found.entries) < found.total and bool(found.entries)
        return MessageList(
            tuple(messages),
            page + 1 if has_more else None,
            found.total,
            found.last_position,
            found.not_searched,
        )

    async def message(self, account_id: AccountId, message_id: MessageId) -> StoredMessage:
        """Give a whole message.

        :raises MessageNotFound: the account has no such message.
        """
        return await self._loader.load(account_id, message_id)

    async def open_message(self, account_id: AccountId, message_id: MessageId) -> StoredMessage:
        """Give a whole message to a person: it counts as read from now on.

        :raises MessageNotFound: the account has no such message.
        """
        message = await self._loader.load(account_id, message_id)
        if not message.summary.is_read:
            try:
                await self._store.mark_read(account_id, message_id)
            except StoreUnavailable as failure:
                # A store that takes no write (its disk is full) can still be read.
                self._log.warn("a message was not marked as read: {why}", why=failure)
        return message

    async def count_unread(self, account_id: AccountId, wanted: MessageFilter) -> int:
        """Count what nobody has opened of the newest thousand messages that match.

        :param wanted: says to whom; what is in a message is not asked.
        """
        return await self._store.count_unread(account_id, wanted, self._now(), LOOKED_THROUGH)

    async def mark_all_read(self, account_id: AccountId, wanted: MessageFilter) -> None:
        """Remember of all messages that match that a person has seen them."""
        now = self._now()
        while await self._store.mark_matches_read(account_id, wanted, now, BATCH) == BATCH:
            pass

    async def raw_message(self, account_id: AccountId, message_id: MessageId) -> bytes:
        """Give the exact bytes that came after DATA.

        :raises MessageNotFound: the account has no such message.
        :raises Overloaded: too many large mails are asked for.
        """
        return await self._mail_bytes.whole(await self._summary(account_id, message_id))

    async def attachment(
        self, account_id: AccountId, message_id: MessageId, attachment_id: str
    ) -> Attachment:
        """Give an attachment, decoded.

        :raises MessageNotFound: the account has no such message.
        :raises AttachmentNotFound: the message has no such attachment.
        :raises Overloaded: too many large mails are asked for.
        """
        summary = await self._summary(account_id, message_id)
        return await self._mail_bytes.attachment(summary, attachment_id)

    async def _summary(self, account_id: AccountId, message_id: MessageId) -> MessageSummary:
        row = await self._store.find_message(account_id, message_id, self._now())
        if row is None:
            raise MessageNotFound
        return row.summary
