"""Ends deliverability tests that got no mail in time, and forgets those that are too old."""

from mailcheck.operations.deliverability.ports import DeliverabilityStore
from mailcheck.operations.ports import Now

INTERVAL = 10.0
"""Seconds between rounds; what has expired is shown so at once, this only makes it last."""

BATCH = 200
"""Tests moved or deleted in one transaction, so that mail coming in waits a moment at most."""


class DeliverabilityRetention:
    """One round of expiring and forgetting."""

    def __init__(self, store: DeliverabilityStore, now: Now) -> None:
        self._store = store
        self._now = now

    async def sweep(self) -> None:
        """Expire and forget all whose time has come by now."""
        now = self._now()
        while await self._store.expire(now, BATCH) == BATCH:
            pass
        while await self._store.forget(now, BATCH) == BATCH:
            pass
