"""Reading deliverability tests of an account, and their mails."""

from collections.abc import Awaitable, Callable, Sequence

from mailcheck.core.deliverability_tests import DeliverabilityResult, ListedTest, ReceivedMail
from mailcheck.core.errors import DeliverabilityTestNotFound, MessageNotFound, NoMailYet
from mailcheck.core.identifiers import AccountId, DeliverabilityTestId, is_test_id
from mailcheck.core.messages import StoredMessage
from mailcheck.ports.clocks import Now
from mailcheck.store.deliverability_store import DeliverabilityStore, ListedTestPage
from mailcheck.store.messages import MessageRow


def not_found() -> DeliverabilityTestNotFound:
    """Make the failure for a test that the account does not have."""
    return DeliverabilityTestNotFound("there is no such test: never made, or its results have gone")


class FindTest:
    """Finds tests, lists them, and gives their mails."""

    def __init__(self, store: DeliverabilityStore, now: Now) -> None:
        self._store = store
        self._now = now

    async def one(self, account_id: AccountId, test_id: str) -> DeliverabilityResult:
        """Give a test as it stands, with its report when it is completed.

        :raises DeliverabilityTestNotFound: the account has no such test.
        """
        if is_test_id(test_id):
            wanted = DeliverabilityTestId(test_id)
            found = await self._store.find(account_id, wanted, self._now())
            if found is not None:
                return found
        raise not_found()

    async def page(self, account_id: AccountId, limit: int, page: int) -> ListedTestPage:
        """List the account's tests, newest first; pages are counted from 1."""
        return await self._store.page(account_id, self._now(), limit, (page - 1) * limit)

    async def of_domain(
        self, account_id: AccountId, domain: str, limit: int
    ) -> Sequence[ListedTest]:
        """List the newest completed tests of mails by authors of a domain, the newest first."""
        return await self._store.of_domain(account_id, domain.lower(), self._now(), limit)

    async def mail(self, account_id: AccountId, test_id: str) -> ReceivedMail:
        """Give the mail of a test as it came in.

        :raises DeliverabilityTestNotFound: the account has no such test.
        :raises NoMailYet: the test has no mail.
        """
        found = await self.one(account_id, test_id)
        received = await self._store.read_mail(found.test.id)
        if received is None:
            raise NoMailYet("no mail has come in for this test")
        return received


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
