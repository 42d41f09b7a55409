"""Making a deliverability test: an address that waits an hour for one mail."""

from mailcheck.core.deliverability_tests import ADDRESS_LIFETIME, DeliverabilityTest, State
from mailcheck.core.identifiers import (
    AccountId,
    DeliverabilityTestId,
    new_share_token,
    new_short_id,
)
from mailcheck.core.instants import Instant
from mailcheck.ports.clocks import TimeAndChance
from mailcheck.store.deliverability_store import DeliverabilityStore


class GenerateTest:
    """Makes tests; ``retention`` is how long results are kept, in milliseconds."""

    def __init__(
        self, store: DeliverabilityStore, retention: int, time_and_chance: TimeAndChance
    ) -> None:
        self._store = store
        self._retention = retention
        self._now = time_and_chance.now
        self._random_bytes = time_and_chance.random_bytes

    async def generate(self, account_id: AccountId) -> DeliverabilityTest:
        """Make a test that is pending.

        :raises TooManyPendingTests: too many of the account's tests wait for their mail.
        :raises TooMuchHeldMail: the mails of its tests take as much room as they may.
        """
        now = self._now()
        test = DeliverabilityTest(
            id=DeliverabilityTestId(new_short_id(self._random_bytes)),
            account_id=account_id,
            state=State.PENDING,
            created_at=now,
            expires_at=Instant(now + ADDRESS_LIFETIME),
            share_token=new_share_token(self._random_bytes),
        )
        await self._store.add(test, Instant(now + self._retention))
        return test
