"""The messages of an inbox: list, read, show, share and delete."""

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace
from twisted.logger import Logger

from mailcheck.checks.content.bodies import Attachment
from mailcheck.core.accounts import Caller, InboxState
from mailcheck.core.conditions import VIA, Term
from mailcheck.core.cursors import START, Position, is_cursor, parse_cursor, require_reached
from mailcheck.core.errors import MessageNotFound, StoreUnavailable
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import (
    AccountId,
    MessageId,
    attachment_secret,
    end_of_attachment_token,
    format_attachment_token,
    new_share_token,
    parse_share_token,
)
from mailcheck.core.instants import MINUTE, Instant
from mailcheck.core.messages import ListedMessage, MessageSummary, StoredMessage
from mailcheck.core.rights import TagLimit
from mailcheck.operations.concurrency import delete_in_batches
from mailcheck.operations.inbox.contents import MailBytes, MessageContents, MessageLoader
from mailcheck.operations.shared_links import find_shared, share_not_found
from mailcheck.ports.clocks import ClockAndRandomness, Now
from mailcheck.store.mail_store import MailStore
from mailcheck.store.messages import InboxOverview, MessageRow

OVERVIEW_TAGS = 200
"""Maximum number of tags in an overview, newest first. Each test may create a tag."""


LOOKED_THROUGH = 1_000
"""Number of newest messages among which unread ones are counted. People read no older ones."""

BATCH = 500
"""Messages marked or deleted in one transaction, so that incoming mail waits only briefly."""


class MessageList(Struct, frozen=True):
    """A page of messages, newest first. ``next_page`` is ``None`` on the last one.

    ``not_searched`` counts messages that may match too, but whose content is not known yet.
    ``page`` is the number of the page, from 1.
    """

    messages: tuple[ListedMessage, ...]
    next_page: int | None
    total: int
    cursor: Position
    not_searched: int = 0
    page: int = 1


class Surroundings(Struct, frozen=True):
    """The page of a list that has a message, and the messages before and after it."""

    listed: MessageList
    newer: MessageId | None
    older: MessageId | None


class ReadInbox(Struct, frozen=True, eq=False):
    """The read operations on inboxes.

    :param tell: called for each inbox whose messages were marked as read.
    """

    store: MailStore
    contents: MessageContents
    loader: MessageLoader
    mail_bytes: MailBytes
    now: Now
    tell: Callable[[AccountId], None]

    _log = Logger()

    async def state(self, account_id: AccountId) -> InboxState:
        """Return the inbox of an account with its newest cursor."""
        inbox = await self.store.find_account_inbox(account_id)
        if inbox is None:
            raise MessageNotFound("the account has been deleted")
        return inbox

    async def overview(
        self, account_id: AccountId, allowed: TagLimit | None = None
    ) -> InboxOverview:
        """Return a summary of the inbox, or of the messages with the ``allowed`` tags."""
        return await self.store.overview(account_id, self.now(), OVERVIEW_TAGS, allowed)

    async def require_allowed(self, caller: Caller, message_id: MessageId) -> None:
        """Check that a caller that is limited to some tags may use a message.

        A message with another tag is not found, so that its existence is not revealed.

        :raises MessageNotFound: the account has no such message, or it has another tag.
        """
        if caller.rights.tags is None:
            return  # without a read of the store
        if not caller.rights.allows_tag((await self.summary(caller.account_id, message_id)).tag):
            raise MessageNotFound

    async def id_of(self, caller: Caller, name: str) -> MessageId:
        """Return the id of a message that is named by its id or its cursor.

        :raises MessageNotFound: the account has no such message, or the caller may not use its tag.
        """
        if not is_cursor(name):
            await self.require_allowed(caller, MessageId(name))
            return MessageId(name)
        position = parse_cursor(name)
        before = MessageFilter(after=Position(position - 1), allowed=caller.rights.tags)
        rows, _ = await self.store.oldest_matches(caller.account_id, before, self.now(), limit=1)
        if not rows or rows[0].summary.position != position:
            raise MessageNotFound
        return rows[0].summary.id

    async def page(
        self, account_id: AccountId, wanted: MessageFilter, limit: int, page: int
    ) -> MessageList:
        """List matching messages, newest first. Pages are counted from 1.

        :raises InvalidParameter: ``after`` is a cursor of another inbox.
        """
        return await self._listed(account_id, wanted, limit, (page - 1) * limit)

    async def page_or_last(
        self, account_id: AccountId, wanted: MessageFilter, limit: int, page: int
    ) -> MessageList:
        """List matching messages as `page` does, or those of the last page if there are fewer."""
        found = await self.page(account_id, wanted, limit, page)
        last = max(1, -(-found.total // limit))
        return found if page <= last else await self.page(account_id, wanted, limit, last)

    async def page_around(
        self, account_id: AccountId, wanted: MessageFilter, limit: int, position: Position
    ) -> Surroundings:
        """List the page of matching messages that has a position, with the message's neighbours.

        The message itself need not match: reading it may have changed that.
        """
        ahead_of_it = await self._listed(account_id, replace(wanted, after=position), 1, 0)
        offset = ahead_of_it.total // limit * limit
        # With one message more on each side, which may be on another page.
        ahead = min(1, offset)
        found = await self._listed(account_id, wanted, limit + ahead + 1, offset - ahead)
        shown = found.messages[ahead : ahead + limit]
        has_more = offset + len(shown) < found.total
        number = offset // limit + 1
        listed = replace(
            found, messages=shown, page=number, next_page=number + 1 if has_more else None
        )
        places = [(message.summary.position, message.summary.id) for message in found.messages]
        newer = min((place for place in places if place[0] > position), default=None)
        older = max((place for place in places if place[0] < position), default=None)
        return Surroundings(listed, newer and newer[1], older and older[1])

    async def _listed(
        self, account_id: AccountId, wanted: MessageFilter, limit: int, offset: int
    ) -> MessageList:
        found = await self.store.page(account_id, wanted, self.now(), limit, offset)
        require_reached(wanted.start, found.last_position)
        messages = []
        for summary, extracted in found.entries:
            if extracted is None:
                try:
                    extracted = (await self.contents.of_message(summary)).extracted
                except MessageNotFound:
                    continue  # deleted since the page was read
            messages.append(ListedMessage(summary, extracted))
        has_more = offset + len(found.entries) < found.total and bool(found.entries)
        page = offset // limit + 1
        return MessageList(
            tuple(messages),
            page + 1 if has_more else None,
            found.total,
            found.last_position,
            found.not_searched,
            page=page,
        )

    async def message(self, account_id: AccountId, message_id: MessageId) -> StoredMessage:
        """Return a whole message.

        :raises MessageNotFound: the account has no such message.
        """
        return await self.loader.load(account_id, message_id)

    async def subjects(
        self, account_id: AccountId, message_ids: Sequence[MessageId]
    ) -> dict[MessageId, str]:
        """Return the subjects of messages; those that are gone are left out."""
        return await self.store.subjects(account_id, message_ids, self.now())

    async def delivered(self, caller: Caller, delivery_id: str) -> StoredMessage:
        """Return the first message of a delivery.

        :raises MessageNotFound: the caller has no such message, or may not use its tag.
        """
        row = await self.store.find_delivered(caller.account_id, delivery_id, self.now())
        if row is None or not caller.rights.allows_tag(row.summary.tag):
            raise MessageNotFound
        return await self.loader.complete(row)

    async def mails_via(
        self,
        caller: Caller,
        provider: str,
        limit: int,
        older_than: str | None = None,
        newer_than: str | None = None,
    ) -> tuple[list[StoredMessage], bool]:
        """Return mails that came over the API of a provider, newest first, and whether there are
        more. A mail is its first message.

        :param older_than: the delivery before which the mails came, if it is not `None`.
        :param newer_than: the delivery after which they came.
        :raises MessageNotFound: the caller has no such delivery.
        """
        wanted = MessageFilter(
            search=(Term(VIA, provider),),
            once_per_mail=True,
            allowed=caller.rights.tags,
        )
        if older_than is not None:
            last = (await self.delivered(caller, older_than)).summary.position
            wanted = replace(wanted, up_to=Position(last - 1))
        if newer_than is not None:
            first = (await self.delivered(caller, newer_than)).summary.position
            wanted = replace(wanted, after=first)
        found = await self._listed(caller.account_id, wanted, limit, 0)
        if newer_than is not None and found.total > limit:
            # The page is next to the named mail.
            found = await self._listed(caller.account_id, wanted, limit, found.total - limit)
        mails = []
        for message in found.messages:
            try:
                mails.append(await self.message(caller.account_id, message.summary.id))
            except MessageNotFound:
                continue  # deleted since the page was read
        return mails, found.total > len(found.messages)

    async def open_message(self, account_id: AccountId, message_id: MessageId) -> StoredMessage:
        """Return a whole message for a person, and mark it as read.

        :raises MessageNotFound: the account has no such message.
        """
        message = await self.loader.load(account_id, message_id)
        if not message.summary.is_read:
            try:
                await self.store.mark_read(account_id, [message_id])
                self.tell(account_id)
            except StoreUnavailable as failure:
                # A store that cannot be written (its disk is full) can still be read.
                self._log.warn("a message was not marked as read: {why}", why=failure)
        return message

    async def count_unread(self, account_id: AccountId, wanted: MessageFilter) -> int:
        """Count the unread messages among the newest thousand that match.

        :param wanted: filters by recipient; contents are not searched.
        """
        return await self.store.count_unread(account_id, wanted, self.now(), LOOKED_THROUGH)

    async def mark_read(self, account_id: AccountId, message_ids: Sequence[MessageId]) -> None:
        """Mark messages as read. Those that do not exist are ignored."""
        if message_ids:
            await self.store.mark_read(account_id, message_ids)
            self.tell(account_id)

    async def mark_all(
        self, account_id: AccountId, wanted: MessageFilter, *, is_read: bool = True
    ) -> None:
        """Mark all matching messages as read or unread."""
        now, mark = self.now(), self.store.mark_matches
        while await mark(account_id, wanted, now, BATCH, int(is_read)) == BATCH:
            pass
        self.tell(account_id)

    async def raw_message(self, account_id: AccountId, message_id: MessageId) -> bytes:
        """Return the exact bytes received after DATA.

        :raises MessageNotFound: the account has no such message.
        :raises Overloaded: too many large mails are being read.
        """
        return await self.mail_bytes.whole(await self.summary(account_id, message_id))

    async def attachment(
        self, account_id: AccountId, message_id: MessageId, attachment_id: str
    ) -> Attachment:
        """Return a decoded attachment.

        :raises MessageNotFound: the account has no such message.
        :raises AttachmentNotFound: the message has no such attachment.
        :raises Overloaded: too many large mails are being read.
        """
        summary = await self.summary(account_id, message_id)
        return await self.mail_bytes.attachment(summary, attachment_id)

    async def summary(self, account_id: AccountId, message_id: MessageId) -> MessageSummary:
        """Return the summary of a message.

        :raises MessageNotFound: the account has no such message.
        """
        row = await self.store.find_message(account_id, message_id, self.now())
        if row is None:
            raise MessageNotFound
        return row.summary


GONE = "the mail was deleted or has expired"
LINK_ENDED = "the time of the link is over"

ATTACHMENT_LINK_AGE = 10 * MINUTE
"""Validity of a link to an attachment. An agent passes it on or downloads it at once."""


class ShareMessage(Struct, frozen=True, eq=False):
    """Opens and replaces share links."""

    store: MailStore
    loader: MessageLoader
    clocks: ClockAndRandomness

    async def open(self, token: str) -> StoredMessage:
        """Return the message of a share link.

        :raises ShareNotFound: the share link is unknown, revoked or expired.
        """
        row = await find_shared(
            token,
            parse_share_token,
            lambda message_id: self.store.find_any_message(message_id, self.clocks.expiry_now()),
            lambda row: row.summary.share_token,
            GONE,
        )
        return await self._complete(row)

    def attachment_token(self, summary: MessageSummary, attachment_id: str) -> str:
        """Return the token of a link to an attachment, which ends after `ATTACHMENT_LINK_AGE`."""
        ends_at = Instant(self.clocks.expiry_now() + ATTACHMENT_LINK_AGE)
        return format_attachment_token(summary.id, attachment_id, summary.share_token, ends_at)

    async def open_attachment(self, token: str, attachment_id: str) -> StoredMessage:
        """Return the message of a link to an attachment.

        :raises ShareNotFound: the link is not for this attachment, was revoked, or has ended.
        """
        try:
            ends_at = end_of_attachment_token(token)
        except ValueError:
            raise share_not_found(LINK_ENDED) from None
        row = await find_shared(
            token,
            parse_share_token,
            lambda message_id: self.store.find_any_message(message_id, self.clocks.expiry_now()),
            lambda row: attachment_secret(attachment_id, row.summary.share_token, ends_at),
            LINK_ENDED,
        )
        if ends_at <= self.clocks.expiry_now():
            raise share_not_found(LINK_ENDED)
        return await self._complete(row)

    async def _complete(self, row: MessageRow) -> StoredMessage:
        try:
            return await self.loader.complete(row)
        except MessageNotFound:
            raise share_not_found(GONE) from None

    async def renew(self, account_id: AccountId, message_id: MessageId) -> StoredMessage:
        """Replace the share link of a message by a new one.

        :raises MessageNotFound: the account has no such message.
        """
        token = new_share_token(self.clocks.random_bytes)
        replaced = await self.store.replace_share_token(
            account_id, message_id, token, self.clocks.expiry_now()
        )
        # Do not join a load that started before, since it would return the old link.
        row = await self.store.find_message(account_id, message_id, self.clocks.expiry_now())
        if not replaced or row is None:
            raise MessageNotFound
        return await self.loader.complete(row)


class Deletion(Struct, frozen=True):
    """A deletion that can be undone. Its time identifies it within the inbox."""

    deleted_at: Instant
    count: int


class DeleteMessages(Struct, frozen=True, eq=False):
    """Deletes messages.

    :param tell: called for each inbox from which messages were deleted.
    """

    store: MailStore
    now: Now
    tell: Callable[[AccountId], None]

    async def one(self, account_id: AccountId, message_id: MessageId) -> None:
        """Delete a message.

        :raises MessageNotFound: the account has no such message.
        """
        if not await self.store.delete_message(account_id, message_id, self.now()):
            raise MessageNotFound
        self.tell(account_id)

    async def some(self, account_id: AccountId, message_ids: Iterable[MessageId]) -> None:
        """Delete messages. Those that are already deleted are ignored."""
        for message_id in message_ids:
            await self.store.delete_message(account_id, message_id, self.now())
        self.tell(account_id)

    async def matching(self, account_id: AccountId, wanted: MessageFilter) -> int:
        """Delete all matching messages that exist now, and return their number.

        :raises InvalidParameter: ``after`` is a cursor of another inbox.
        """
        wanted, now = await self._existing(account_id, wanted), self.now()
        deleted = await delete_in_batches(
            lambda most: self.store.delete_matches(account_id, wanted, now, most), BATCH
        )
        self.tell(account_id)
        return deleted

    async def some_with_undo(
        self, account_id: AccountId, message_ids: Sequence[MessageId]
    ) -> Deletion:
        """Delete messages so that `undo` can restore them for `UNDO_TIME`.

        They are hidden at once. Those that are already deleted are ignored.
        """
        now = self.now()
        count = await self.store.hide(account_id, message_ids, now)
        self.tell(account_id)
        return Deletion(now, count)

    async def matching_with_undo(self, account_id: AccountId, wanted: MessageFilter) -> Deletion:
        """Delete all matching messages that exist now, so that `undo` can restore them.

        :raises InvalidParameter: ``after`` is a cursor of another inbox.
        """
        wanted, now = await self._existing(account_id, wanted), self.now()
        count = await delete_in_batches(
            lambda most: self.store.hide_matches(account_id, wanted, now, most), BATCH
        )
        self.tell(account_id)
        return Deletion(now, count)

    async def undo(self, account_id: AccountId, deleted_at: Instant) -> int:
        """Undo the deletion at a time, and return the number of restored messages.

        It is 0 if the messages have been removed: `UNDO_TIME` has passed.
        """
        count = await self.store.restore(account_id, deleted_at, self.now())
        self.tell(account_id)
        return count

    async def _existing(self, account_id: AccountId, wanted: MessageFilter) -> MessageFilter:
        """Limit a filter to the messages that exist now.

        Messages that arrive during a long deletion are not deleted.
        """
        inbox = await self.store.find_account_inbox(account_id)
        newest = START if inbox is None else inbox.last_position
        require_reached(wanted.start, newest)
        up_to = newest if wanted.up_to is None else min(wanted.up_to, newest)
        return replace(wanted, up_to=up_to)
