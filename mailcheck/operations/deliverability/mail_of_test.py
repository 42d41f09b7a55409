"""The mail of a deliverability test, to be shown as any message of an inbox is."""

from collections.abc import Awaitable, Callable

from mailcheck.core.deliverability_tests import DeliverabilityResult
from mailcheck.core.errors import MessageNotFound
from mailcheck.core.messages import StoredMessage
from mailcheck.operations.deliverability.ports import DeliverabilityStore
from mailcheck.operations.ports import MessageRow

Complete = Callable[[MessageRow], Awaitable[StoredMessage]]
"""Adds what is derived from a mail's bytes."""


class MailOfTest:
    """Gives the mails of tests with what is derived from them, for whoever was given the test."""

    def __init__(self, store: DeliverabilityStore, complete: Complete) -> None:
        self._store = store
        self._complete = complete

    async def of(self, found: DeliverabilityResult) -> StoredMessage:
        """Give the mail of a test as a message.

        :raises MessageNotFound: it has none, or has been deleted meanwhile.
        """
        row = await self._store.find_message(found.test.id)
        if row is None:
            raise MessageNotFound("no mail has come in for this test")
        return await self._complete(row)
