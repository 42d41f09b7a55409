"""Mails of an inbox, each once with all its recipients, as clients of other products know them."""

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.core.accounts import Caller
from mailcheck.core.errors import MessageNotFound
from mailcheck.core.filters import ANY, MessageFilter
from mailcheck.core.identifiers import AccountId, DeliveryId
from mailcheck.core.instants import Instant
from mailcheck.core.messages import StoredMessage, keywords_in, read_keyword
from mailcheck.operations.inbox.contents import LARGE, MessageContents, MessageLoader
from mailcheck.operations.inbox.messages import DeleteMessages, ReadInbox
from mailcheck.ports.clocks import Now
from mailcheck.store.mails import MailCount, MailMessage, MailPage, MailsStore
from mailcheck.store.messages import Prefetch

MOST = 500
"""Maximum number of mails of a page, and of mails that are deleted or derived at once."""

_ALONG = Prefetch(lambda _: True, LARGE, MOST)


class Mail(Struct, frozen=True, eq=False):
    """A mail: its first message with the content, and all messages that the caller may use."""

    message: StoredMessage
    messages: Sequence[MailMessage]

    @property
    def id(self) -> DeliveryId:
        """The id of the mail."""
        return self.message.summary.delivery_id

    @property
    def received_at(self) -> Instant:
        """When the mail was received."""
        return self.message.summary.received_at

    @property
    def is_read(self) -> bool:
        """Whether all messages were read."""
        return all(message.is_read for message in self.messages)

    @property
    def tags(self) -> list[str]:
        """The distinct tags of the recipients and keywords, in order."""
        tags = {message.tag for message in self.messages if message.tag}
        keywords = {
            read_keyword(keyword) for each in self.messages for keyword in keywords_in(each.flags)
        }
        return sorted(tags | keywords, key=str.casefold)

    @property
    def hidden_recipients(self) -> list[str]:
        """The recipients that no address field of the header names: blind copies."""
        named = {person.address.casefold() for person in self.message.content.people}
        return [
            message.recipient
            for message in self.messages
            if message.recipient.casefold() not in named
        ]


class MailList(Struct, frozen=True):
    """A page of mails, newest first, with the numbers of all matches and of the whole inbox."""

    mails: Sequence[Mail]
    matches: MailCount
    inbox: MailCount


class Mails(Struct, frozen=True, eq=False):
    """Lists, reads, marks and deletes whole mails.

    Every search is complete: content that was not derived yet is derived before the answer.
    """

    store: MailsStore
    contents: MessageContents
    loader: MessageLoader
    read: ReadInbox
    deletion: DeleteMessages
    now: Now

    async def page(self, caller: Caller, wanted: MessageFilter, limit: int, start: int) -> MailList:
        """List matching mails, newest first. At most `MOST` are returned."""
        found = await self._page(caller, wanted, min(limit, MOST), start)
        of_inbox = found.count
        if wanted != ANY:
            everything = _of(caller, ANY)
            of_inbox = await self.store.count(caller.account_id, everything, self.now())
        return MailList(await self._complete(found), found.count, of_inbox)

    async def mail(self, caller: Caller, mail_id: str) -> Mail:
        """Return a mail.

        :raises MessageNotFound: the caller has no such mail, or may not use its tags.
        """
        return await self._first(caller, MessageFilter(mails=(DeliveryId(mail_id),)))

    async def newest(self, caller: Caller, wanted: MessageFilter = ANY) -> Mail:
        """Return the newest matching mail.

        :raises MessageNotFound: there is none.
        """
        return await self._first(caller, wanted)

    async def mark(
        self, caller: Caller, wanted: MessageFilter, *, is_read: bool
    ) -> list[DeliveryId]:
        """Mark all matching mails as read or unread, and return their ids."""
        batches = await self._batches(caller, wanted)
        for batch in batches:
            await self.read.mark_all(caller.account_id, batch, is_read=is_read)
        return [mail for batch in batches for mail in batch.mails or ()]

    async def delete(self, caller: Caller, wanted: MessageFilter) -> list[DeliveryId]:
        """Delete all matching mails that exist now, and return their ids."""
        batches = await self._batches(caller, wanted)
        for batch in batches:
            await self.deletion.matching(caller.account_id, batch)
        return [mail for batch in batches for mail in batch.mails or ()]

    async def derive(self, account_id: AccountId, wanted: MessageFilter) -> None:
        """Derive the content of possible matches, the newest first, so that searches find them."""
        for summary in await self.store.underived(account_id, wanted, self.now(), MOST):
            with suppress(MessageNotFound):  # deleted meanwhile
                await self.contents.keep(summary)

    async def _batches(self, caller: Caller, wanted: MessageFilter) -> list[MessageFilter]:
        """Return filters for the messages of all matching mails."""
        if wanted.asks_content:
            await self._page(caller, wanted, 0, 0)
        wanted = _of(caller, wanted)
        ids = await self.store.ids(caller.account_id, wanted, self.now())
        return [
            MessageFilter(mails=ids[first : first + MOST], allowed=caller.rights.tags)
            for first in range(0, len(ids), MOST)
        ]

    async def _first(self, caller: Caller, wanted: MessageFilter) -> Mail:
        mails = await self._complete(await self._page(caller, wanted, 1, 0))
        if not mails:
            raise MessageNotFound
        return mails[0]

    async def _page(
        self, caller: Caller, wanted: MessageFilter, limit: int, start: int
    ) -> MailPage:
        wanted, account_id = _of(caller, wanted), caller.account_id
        asked = account_id, wanted, self.now(), limit, start, _ALONG
        found = await self.store.page(*asked)
        if not found.not_searched:
            return found
        await self.derive(account_id, wanted)
        return await self.store.page(*asked)

    async def _complete(self, found: MailPage) -> list[Mail]:
        messages: dict[DeliveryId, list[MailMessage]] = defaultdict(list)
        for found_message in found.messages:
            messages[found_message.delivery_id].append(found_message)
        mails = []
        for row in found.rows:
            with suppress(MessageNotFound):  # deleted since the page was read
                message = await self.loader.complete(row)
                mails.append(Mail(message, messages[row.summary.delivery_id]))
        return mails


def _of(caller: Caller, wanted: MessageFilter) -> MessageFilter:
    return replace(wanted, allowed=caller.rights.tags, once_per_mail=True)
