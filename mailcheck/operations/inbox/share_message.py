"""Share links: a message for those who have no account."""

from mailcheck.core.errors import MessageNotFound
from mailcheck.core.identifiers import AccountId, MessageId, new_share_token, parse_share_token
from mailcheck.core.messages import StoredMessage
from mailcheck.operations.inbox.contents import MessageLoader
from mailcheck.operations.shared_links import find_shared, share_not_found
from mailcheck.ports.clocks import TimeAndChance
from mailcheck.store.mail_store import MailStore

GONE = "the mail has expired"


class ShareMessage:
    """Opens share links and takes them back."""

    def __init__(
        self, store: MailStore, loader: MessageLoader, time_and_chance: TimeAndChance
    ) -> None:
        self._store = store
        self._loader = loader
        self._expiry_now = time_and_chance.expiry_now
        self._random_bytes = time_and_chance.random_bytes

    async def open(self, token: str) -> StoredMessage:
        """Give the message of a share link.

        :raises ShareNotFound: no message has this link (any more).
        """
        row = await find_shared(
            token,
            parse_share_token,
            lambda message_id: self._store.find_any_message(message_id, self._expiry_now()),
            lambda row: row.summary.share_token,
            GONE,
        )
        try:
            return await self._loader.complete(row)
        except MessageNotFound:
            raise share_not_found(GONE) from None

    async def renew(self, account_id: AccountId, message_id: MessageId) -> StoredMessage:
        """Revoke the share link of a message; a new one takes its place.

        :raises MessageNotFound: the account has no such message.
        """
        token = new_share_token(self._random_bytes)
        replaced = await self._store.replace_share_token(
            account_id, message_id, token, self._expiry_now()
        )
        # Read anew, not with those who asked for the message before: they get the old link.
        row = await self._store.find_message(account_id, message_id, self._expiry_now())
        if not replaced or row is None:
            raise MessageNotFound
        return await self._loader.complete(row)
