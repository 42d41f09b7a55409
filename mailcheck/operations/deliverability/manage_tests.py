"""Deliverability tests of an account: create, read, share, recheck and delete."""

from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct

from mailcheck.core.deliverability_tests import (
    ADDRESS_LIFETIME,
    DeliverabilityResult,
    DeliverabilityTest,
    ListedTest,
    ReceivedMail,
    State,
)
from mailcheck.core.errors import DeliverabilityTestNotFound, MessageNotFound, NoMailYet
from mailcheck.core.identifiers import (
    AccountId,
    DeliverabilityTestId,
    MessageId,
    is_test_id,
    new_share_token,
    new_short_id,
    parse_test_share_token,
)
from mailcheck.core.instants import Instant
from mailcheck.core.messages import StoredMessage
from mailcheck.operations.shared_links import find_shared
from mailcheck.ports.clocks import ClockAndRandomness
from mailcheck.ports.cluster import Notifications
from mailcheck.store.deliverability_store import DeliverabilityStore, ListedTestPage
from mailcheck.store.messages import MessageRow


class ManageTests(Struct, frozen=True, eq=False):
    """The operations on the tests of an account, except waiting for one.

    :param when_waiting: called when a test is ready to be analysed.
    :param retention: lifetime of results, in milliseconds.
    """

    store: DeliverabilityStore
    notifications: Notifications[DeliverabilityTestId]
    when_waiting: Callable[[], None]
    retention: int
    clocks: ClockAndRandomness

    async def create(self, account_id: AccountId) -> DeliverabilityTest:
        """Create a pending test.

        :raises TooManyPendingTests: too many tests of the account are pending.
        :raises TooMuchHeldMail: the mails of the account's tests use their whole quota.
        """
        now = self.clocks.now()
        test = self._new(account_id, State.PENDING, now)
        await self.store.add(test, Instant(now + self.retention))
        self.notifications.publish(test.id)
        return test

    async def score_message(
        self, account_id: AccountId, message_id: MessageId
    ) -> DeliverabilityTest:
        """Create a test of a stored message; its state is "processing".

        The test keeps the mail even if the message is deleted.

        :raises MessageNotFound: the account has no such message.
        :raises TooMuchHeldMail: the mails of the account's tests use their whole quota.
        """
        now = self.clocks.now()
        test = self._new(account_id, State.PROCESSING, now)
        forget_at = Instant(now + self.retention)
        if not await self.store.add_of_message(test, message_id, forget_at):
            raise MessageNotFound
        # Read it before an analysis can start, so that the returned test is in processing.
        found = await self.store.find(account_id, test.id, now)
        self.notifications.publish(test.id)
        self.when_waiting()
        if found is None:
            raise _not_found()
        return found.test

    async def owner(self, test_id: DeliverabilityTestId) -> AccountId | None:
        """Return the account of a test, or `None` if the test does not exist any more."""
        found = await self.store.find_any(test_id, self.clocks.expiry_now())
        return None if found is None else found.test.account_id

    async def one(self, account_id: AccountId, test_id: str) -> DeliverabilityResult:
        """Return a test, with its report if it is completed.

        :raises DeliverabilityTestNotFound: the account has no such test.
        """
        if is_test_id(test_id):
            wanted = DeliverabilityTestId(test_id)
            found = await self.store.find(account_id, wanted, self.clocks.expiry_now())
            if found is not None:
                return found
        raise _not_found()

    async def page(self, account_id: AccountId, limit: int, page: int) -> ListedTestPage:
        """List the account's tests, newest first. Pages are counted from 1."""
        return await self.store.page(
            account_id, self.clocks.expiry_now(), limit, (page - 1) * limit
        )

    async def of_domain(
        self, account_id: AccountId, domain: str, limit: int
    ) -> Sequence[ListedTest]:
        """List the newest completed tests of mails by authors of a domain, newest first."""
        return await self.store.of_domain(
            account_id, domain.lower(), self.clocks.expiry_now(), limit
        )

    async def mail(self, account_id: AccountId, test_id: str) -> ReceivedMail:
        """Return the mail of a test as it was received.

        :raises DeliverabilityTestNotFound: the account has no such test.
        :raises NoMailYet: the test has no mail.
        """
        found = await self.one(account_id, test_id)
        received = await self.store.read_mail(found.test.id)
        if received is None:
            raise NoMailYet("no mail has arrived for this test")
        return received

    async def recheck(self, account_id: AccountId, test_id: str) -> bool:
        """Analyse the mail of a test again. Return whether the analysis was not running yet.

        :raises DeliverabilityTestNotFound: the account has no such test.
        :raises NoMailYet: the test has no mail.
        """
        if not is_test_id(test_id):
            raise _not_found()
        wanted = DeliverabilityTestId(test_id)
        before = await self.store.recheck(account_id, wanted, self.clocks.now())
        if before is None:
            raise _not_found()
        if before in (State.PENDING, State.EXPIRED):
            raise NoMailYet("no mail has arrived for this test, so it cannot be rechecked")
        if before is State.PROCESSING:
            return False
        self.notifications.publish(wanted)
        self.when_waiting()
        return True

    async def open_shared(self, token: str) -> DeliverabilityResult:
        """Return the test of a share link.

        :raises ShareNotFound: the share link is unknown, revoked or expired.
        """
        return await find_shared(
            token,
            parse_test_share_token,
            lambda test_id: self.store.find_any(test_id, self.clocks.expiry_now()),
            lambda found: found.test.share_token,
            "the report has expired",
        )

    async def renew_share_link(self, account_id: AccountId, test_id: str) -> DeliverabilityResult:
        """Replace the share link of a test by a new one.

        :raises DeliverabilityTestNotFound: the account has no such test.
        """
        if not is_test_id(test_id):
            raise _not_found()
        wanted = DeliverabilityTestId(test_id)
        token = new_share_token(self.clocks.random_bytes)
        replaced = await self.store.replace_share_token(
            account_id, wanted, token, self.clocks.expiry_now()
        )
        found = await self.store.find(account_id, wanted, self.clocks.expiry_now())
        if not replaced or found is None:
            raise _not_found()
        return found

    async def delete(self, account_id: AccountId, test_id: str) -> None:
        """Delete a test with its address, report and share link.

        Its mail is deleted too, unless it is also in an inbox. The report of a running analysis
        is discarded.

        :raises DeliverabilityTestNotFound: the account has no such test.
        """
        wanted = DeliverabilityTestId(test_id)
        if not is_test_id(test_id) or not await self.store.delete(
            account_id, wanted, self.clocks.expiry_now()
        ):
            raise _not_found()
        self.notifications.publish(wanted)

    def _new(self, account_id: AccountId, state: State, now: Instant) -> DeliverabilityTest:
        return DeliverabilityTest(
            id=DeliverabilityTestId(new_short_id(self.clocks.random_bytes)),
            account_id=account_id,
            state=state,
            created_at=now,
            expires_at=Instant(now + ADDRESS_LIFETIME),
            share_token=new_share_token(self.clocks.random_bytes),
        )


def _not_found() -> DeliverabilityTestNotFound:
    """Return the error for a test that the account does not have."""
    return DeliverabilityTestNotFound("there is no such test: the id is wrong or it has expired")


Complete = Callable[[MessageRow], Awaitable[StoredMessage]]
"""Adds the data derived from a mail's bytes."""


class MailOfTest(Struct, frozen=True, eq=False):
    """Returns the mails of tests as messages, for readers of a report."""

    store: DeliverabilityStore
    complete: Complete

    async def of(self, found: DeliverabilityResult) -> StoredMessage:
        """Return the mail of a test as a message.

        :raises MessageNotFound: the test has no mail, or was deleted meanwhile.
        """
        row = await self.store.find_message(found.test.id)
        if row is None:
            raise MessageNotFound("no mail has arrived for this test")
        return await self.complete(row)
