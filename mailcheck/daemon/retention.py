"""Forgets mail that has expired and refusals nobody will ask for any more."""

from mailcheck.core.instants import HOUR, Instant
from mailcheck.operations.ports import ExpiryStore, Now

INTERVAL = 10.0
"""Seconds between rounds; what has expired is hidden at once, this only frees its space."""

BATCH = 200
"""Messages deleted in one transaction, so that mail coming in waits a moment at most."""

REFUSALS_KEPT = 1 * HOUR


class Retention:
    """One round of forgetting."""

    def __init__(self, store: ExpiryStore, now: Now) -> None:
        self._store = store
        self._now = now

    async def sweep(self) -> None:
        """Delete all that has expired by now, and give the space back."""
        now = self._now()
        while await self._store.expire(now, BATCH) == BATCH:
            pass
        await self._store.forget_refusals(Instant(now - REFUSALS_KEPT))
        # A piece in each round, until nothing is left to give.
        await self._store.give_back_space()
