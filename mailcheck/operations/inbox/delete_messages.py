"""Deleting mail for good."""

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from mailcheck.core.cursors import START, require_reached
from mailcheck.core.errors import MessageNotFound
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import AccountId, MessageId
from mailcheck.operations.batches import remove_all
from mailcheck.ports.clocks import Now
from mailcheck.store.mail_store import MailStore

BATCH = 500
"""Messages deleted in one transaction, so that mail coming in waits a moment at most."""


class DeleteMessages:
    """The deleting operations of one daemon.

    :param tell: is told of each inbox that messages were deleted from.
    """

    def __init__(self, store: MailStore, now: Now, tell: Callable[[AccountId], None]) -> None:
        self._store = store
        self._now = now
        self._tell = tell

    async def one(self, account_id: AccountId, message_id: MessageId) -> None:
        """Delete a message.

        :raises MessageNotFound: the account has no such message.
        """
        if not await self._store.delete_message(account_id, message_id, self._now()):
            raise MessageNotFound
        self._tell(account_id)

    async def some(self, account_id: AccountId, message_ids: Iterable[MessageId]) -> None:
        """Delete messages; those that are gone already are as they should be."""
        for message_id in message_ids:
            await self._store.delete_message(account_id, message_id, self._now())
        self._tell(account_id)

    async def matching(self, account_id: AccountId, wanted: MessageFilter) -> int:
        """Delete all messages that match and are there now; gives how many.

        :raises InvalidParameter: ``after`` is a cursor of another inbox.
        """
        inbox = await self._store.find_account_inbox(account_id)
        newest = START if inbox is None else inbox.last_position
        require_reached(wanted.start, newest)
        # What comes in while a large inbox is emptied is not meant.
        up_to = newest if wanted.up_to is None else min(wanted.up_to, newest)
        wanted = replace(wanted, up_to=up_to)
        now = self._now()
        deleted = await remove_all(
            lambda most: self._store.delete_matches(account_id, wanted, now, most), BATCH
        )
        self._tell(account_id)
        return deleted
