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

    async def load(self, account_id: AccountId, message_id: MessageId) -> StoredMessage:
        """Load a message of an account.

        :raises MessageNotFound: the account has no such message (any more).
        """
        return await self._loading.call((account_id, message_id))

    async def complete(self, row: MessageRow) -> StoredMessage:
        """Add the content to a message that was read already.

        :raises MessageNotFound: it has been deleted meanwhile.
        """
        content = await self._contents.of_message(row.summary)
        return StoredMessage(row.summary, row.envelope_sender, row.session, content)

    async def _load(self, key: tuple[AccountId, MessageId]) -> StoredMessage:
        row = await self._store.find_message(*key, self._now())
        if row is None:
            raise MessageNotFound
        return await self.complete(row)
