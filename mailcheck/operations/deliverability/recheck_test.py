"""Analysing the mail of a deliverability test once more."""

from collections.abc import Callable

from mailcheck.core.deliverability_tests import State
from mailcheck.core.errors import NoMailYet
from mailcheck.core.identifiers import AccountId, DeliverabilityTestId, is_test_id
from mailcheck.operations.deliverability.find_test import not_found
from mailcheck.ports.clocks import Now
from mailcheck.ports.cluster import WakeUps
from mailcheck.store.deliverability_store import DeliverabilityStore


class RecheckTest:
    """Starts rechecks; ``when_waiting`` is told that a test waits to be analysed."""

    def __init__(
        self,
        store: DeliverabilityStore,
        wake_ups: WakeUps[DeliverabilityTestId],
        when_waiting: Callable[[], None],
        now: Now,
    ) -> None:
        self._store = store
        self._wake_ups = wake_ups
        self._when_waiting = when_waiting
        self._now = now

    async def recheck(self, account_id: AccountId, test_id: str) -> bool:
        """Put a test back into processing; false when it is being analysed already.

        :raises DeliverabilityTestNotFound: the account has no such test.
        :raises NoMailYet: it has no mail that could be analysed.
        """
        if not is_test_id(test_id):
            raise not_found()
        wanted = DeliverabilityTestId(test_id)
        before = await self._store.recheck(account_id, wanted, self._now())
        if before is None:
            raise not_found()
        if before in (State.PENDING, State.EXPIRED):
            raise NoMailYet("no mail has come in for this test: there is nothing to check again")
        if before is State.PROCESSING:
            return False
        self._wake_ups.publish(wanted)
        self._when_waiting()
        return True
