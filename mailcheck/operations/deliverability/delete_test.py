"""Deleting a deliverability test for good, before its time."""

from mailcheck.core.identifiers import AccountId, DeliverabilityTestId, is_test_id
from mailcheck.operations.deliverability.find_test import not_found
from mailcheck.ports.clocks import Now
from mailcheck.ports.cluster import WakeUps
from mailcheck.store.deliverability_store import DeliverabilityStore


class DeleteTest:
    """Deletes tests; who waits for one is told that it has gone."""

    def __init__(
        self, store: DeliverabilityStore, wake_ups: WakeUps[DeliverabilityTestId], now: Now
    ) -> None:
        self._store = store
        self._wake_ups = wake_ups
        self._now = now

    async def delete(self, account_id: AccountId, test_id: str) -> None:
        """Delete a test: its address, report and share link, and its mail unless that is an
        inbox's too. An analysis under way has no use for its report.

        :raises DeliverabilityTestNotFound: the account has no such test.
        """
        wanted = DeliverabilityTestId(test_id)
        if not is_test_id(test_id) or not await self._store.delete(account_id, wanted, self._now()):
            raise not_found()
        self._wake_ups.publish(wanted)
