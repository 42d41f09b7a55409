"""Loading a whole message: one read and one value for all who ask at the same time."""

from mailcheck.core.errors import MessageNotFound
from mailcheck.core.identifiers import AccountId, MessageId
from mailcheck.core.messages import StoredMessage
from mailcheck.operations.inbox.contents import Contents
from mailcheck.operations.ports import MessageRow, MessageStore, Now
from mailcheck.operations.sharing_calls import SharedCalls


class MessageLoader:
    """Reads messages with their content."""

    def __init__(self, store: MessageStore, contents: Contents, now: Now) -> None:
        self._store = store
        self._contents = contents
        self._now = now
        self._loading: SharedCalls[tuple[AccountId, MessageId], StoredMessage] = SharedCalls(
            self._load
        )
        self._completing: SharedCalls[MessageRow, StoredMessage] = SharedCalls(self._complete)
        self._last: tuple[MessageRow, StoredMessage] | None = None

    async def load(self, account_id: AccountId, message_id: MessageId) -> StoredMessage:
        """Load a message of an account.

        :raises MessageNotFound: the account has no such message (any more).
        """
        return await self._loading.call((account_id, message_id))

    async def complete(self, row: MessageRow) -> StoredMessage:
        """Add the content to a message that was read already.

        All who were offered the same row get the same message, also one after the other.

        :raises MessageNotFound: it has been deleted meanwhile.
        """
        if self._last is not None and self._last[0] is row:
            return self._last[1]
        return await self._completing.call(row)

    async def _complete(self, row: MessageRow) -> StoredMessage:
        content = await self._contents.of_message(row.summary)
        message = StoredMessage(row.summary, row.envelope_sender, row.session, content)
        self._last = row, message
        return message

    async def _load(self, key: tuple[AccountId, MessageId]) -> StoredMessage:
        row = await self._store.find_message(*key, self._now())
        if row is None:
            raise MessageNotFound
        return await self.complete(row)
