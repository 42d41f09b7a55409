"""Deliverability tests of an account: made, read, shared, checked again and deleted."""

from collections.abc import Awaitable, Callable, Sequence

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
from mailcheck.ports.clocks import TimeAndChance
from mailcheck.ports.cluster import WakeUps
from mailcheck.store.deliverability_store import DeliverabilityStore, ListedTestPage
from mailcheck.store.messages import MessageRow


class ManageTests:
    """The operations on the tests of an account, except waiting for one.

    :param when_waiting: is called when a test waits to be analysed.
    :param retention: how long results are kept, in milliseconds.
    """

    def __init__(
        self,
        store: DeliverabilityStore,
        wake_ups: WakeUps[DeliverabilityTestId],
        when_waiting: Callable[[], None],
        retention: int,
        time_and_chance: TimeAndChance,
    ) -> None:
        self._store = store
        self._wake_ups = wake_ups
        self._when_waiting = when_waiting
        self._retention = retention
        self._now = time_and_chance.now
        self._expiry_now = time_and_chance.expiry_now
        self._random_bytes = time_and_chance.random_bytes

    async def create(self, account_id: AccountId) -> DeliverabilityTest:
        """Make a test that is pending.

        :raises TooManyPendingTests: too many of the account's tests wait for their mail.
        :raises TooMuchHeldMail: the mails of its tests take as much room as they may.
        """
        now = self._now()
        test = self._new(account_id, State.PENDING, now)
        await self._store.add(test, Instant(now + self._retention))
        return test

    async def score_message(
        self, account_id: AccountId, message_id: MessageId
    ) -> DeliverabilityTest:
        """Make a test of a message; it is in processing.

        The message may be deleted meanwhile: the test keeps the mail for as long as it lives.

        :raises MessageNotFound: the account has no such message.
        :raises TooMuchHeldMail: the mails of its tests take as much room as they may.
        """
        now = self._now()
        test = self._new(account_id, State.PROCESSING, now)
        forget_at = Instant(now + self._retention)
        if not await self._store.add_of_message(test, message_id, forget_at):
            raise MessageNotFound
        # Read before anybody begins with it: what is given back is in processing.
        found = await self._store.find(account_id, test.id, now)
        self._when_waiting()
        if found is None:
            raise _not_found()
        return found.test

    async def one(self, account_id: AccountId, test_id: str) -> DeliverabilityResult:
        """Give a test as it stands, with its report when it is completed.

        :raises DeliverabilityTestNotFound: the account has no such test.
        """
        if is_test_id(test_id):
            wanted = DeliverabilityTestId(test_id)
            found = await self._store.find(account_id, wanted, self._expiry_now())
            if found is not None:
                return found
        raise _not_found()

    async def page(self, account_id: AccountId, limit: int, page: int) -> ListedTestPage:
        """List the account's tests, newest first; pages are counted from 1."""
        return await self._store.page(account_id, self._expiry_now(), limit, (page - 1) * limit)

    async def of_domain(
        self, account_id: AccountId, domain: str, limit: int
    ) -> Sequence[ListedTest]:
        """List the newest completed tests of mails by authors of a domain, the newest first."""
        return await self._store.of_domain(account_id, domain.lower(), self._expiry_now(), limit)

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

    async def recheck(self, account_id: AccountId, test_id: str) -> bool:
        """Put a test back into processing; false when it is being analysed already.

        :raises DeliverabilityTestNotFound: the account has no such test.
        :raises NoMailYet: it has no mail that could be analysed.
        """
        if not is_test_id(test_id):
            raise _not_found()
        wanted = DeliverabilityTestId(test_id)
        before = await self._store.recheck(account_id, wanted, self._now())
        if before is None:
            raise _not_found()
        if before in (State.PENDING, State.EXPIRED):
            raise NoMailYet("no mail has come in for this test: there is nothing to check again")
        if before is State.PROCESSING:
            return False
        self._wake_ups.publish(wanted)
        self._when_waiting()
        return True

    async def open_shared(self, token: str) -> DeliverabilityResult:
        """Give the test of a share link.

        :raises ShareNotFound: no test has this link (any more).
        """
        return await find_shared(
            token,
            parse_test_share_token,
            lambda test_id: self._store.find_any(test_id, self._expiry_now()),
            lambda found: found.test.share_token,
            "the report has gone",
        )

    async def renew_share_link(self, account_id: AccountId, test_id: str) -> DeliverabilityResult:
        """Revoke the share link of a test; a new one takes its place.

        :raises DeliverabilityTestNotFound: the account has no such test.
        """
        if not is_test_id(test_id):
            raise _not_found()
        wanted = DeliverabilityTestId(test_id)
        token = new_share_token(self._random_bytes)
        replaced = await self._store.replace_share_token(
            account_id, wanted, token, self._expiry_now()
        )
        found = await self._store.find(account_id, wanted, self._expiry_now())
        if not replaced or found is None:
            raise _not_found()
        return found

    async def delete(self, account_id: AccountId, test_id: str) -> None:
        """Delete a test: its address, report and share link, and its mail unless that is an
        inbox's too. An analysis under way has no use for its report.

        :raises DeliverabilityTestNotFound: the account has no such test.
        """
        wanted = DeliverabilityTestId(test_id)
        if not is_test_id(test_id) or not await self._store.delete(
            account_id, wanted, self._expiry_now()
        ):
            raise _not_found()
        self._wake_ups.publish(wanted)

    def _new(self, account_id: AccountId, state: State, now: Instant) -> DeliverabilityTest:
        return DeliverabilityTest(
            id=DeliverabilityTestId(new_short_id(self._random_bytes)),
            account_id=account_id,
            state=state,
            created_at=now,
            expires_at=Instant(now + ADDRESS_LIFETIME),
            share_token=new_share_token(self._random_bytes),
        )


def _not_found() -> DeliverabilityTestNotFound:
    """Make the failure for a test that the account does not have."""
    return DeliverabilityTestNotFound("there is no such test: never made, or its results have gone")


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
