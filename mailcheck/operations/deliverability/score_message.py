"""Scoring a message of the inbox: a deliverability test that has its mail already."""

from collections.abc import Callable

from mailcheck.core.deliverability_tests import ADDRESS_LIFETIME, DeliverabilityTest, State
from mailcheck.core.errors import MessageNotFound
from mailcheck.core.identifiers import (
    AccountId,
    DeliverabilityTestId,
    MessageId,
    new_share_token,
    new_short_id,
)
from mailcheck.core.instants import Instant
from mailcheck.operations.deliverability.find_test import not_found
from mailcheck.ports.clocks import TimeAndChance
from mailcheck.store.deliverability_store import DeliverabilityStore


class ScoreMessage:
    """Makes tests of stored messages; ``when_waiting`` is told that one waits to be analysed."""

    def __init__(
        self,
        store: DeliverabilityStore,
        retention: int,
        when_waiting: Callable[[], None],
        time_and_chance: TimeAndChance,
    ) -> None:
        self._store = store
        self._retention = retention
        self._when_waiting = when_waiting
        self._now = time_and_chance.now
        self._random_bytes = time_and_chance.random_bytes

    async def score(self, account_id: AccountId, message_id: MessageId) -> DeliverabilityTest:
        """Make a test of a message; it is in processing.

        The message may be deleted meanwhile: the test keeps the mail for as long as it lives.

        :raises MessageNotFound: the account has no such message.
        :raises TooMuchHeldMail: the mails of its tests take as much room as they may.
        """
        now = self._now()
        test_id = DeliverabilityTestId(new_short_id(self._random_bytes))
        test = DeliverabilityTest(
            id=test_id,
            account_id=account_id,
            state=State.PROCESSING,
            created_at=now,
            expires_at=Instant(now + ADDRESS_LIFETIME),
            share_token=new_share_token(self._random_bytes),
        )
        forget_at = Instant(now + self._retention)
        if not await self._store.add_of_message(test, message_id, forget_at):
            raise MessageNotFound
        # Read before anybody begins with it: what is given back is in processing.
        found = await self._store.find(account_id, test_id, now)
        self._when_waiting()
        if found is None:
            raise not_found()
        return found.test
