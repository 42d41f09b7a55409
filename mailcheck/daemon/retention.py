"""Forgets what has expired: mail, refusals nobody will ask for any more, tests, histories."""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from twisted.internet.interfaces import IReactorTime

from mailcheck.core.instants import HOUR, Instant
from mailcheck.core.watches import HISTORY_KEPT
from mailcheck.daemon.periodic import PeriodicService
from mailcheck.operations.concurrency import delete_in_batches
from mailcheck.ports.clocks import Now
from mailcheck.store.deliverability_store import DeliverabilityStore
from mailcheck.store.domains.report_store import ReportStore
from mailcheck.store.domains.watch_store import WatchStore
from mailcheck.store.messages import ExpiryStore

INTERVAL = 10.0
"""Seconds between rounds; what has expired is shown so at once, this only makes it last."""

BEGINS_AFTER = 2.0
"""Seconds after a start until the first round: the disk is first for who waits for that."""

WATCHES_INTERVAL = 600.0
"""Seconds between rounds for what is kept for more than a year."""

BATCH = 200
"""Messages, refusals or tests in one transaction, so that mail coming in waits a moment at most."""

REFUSALS_KEPT = 1 * HOUR


def retention_service(
    name: str, interval: float, sweep: Callable[[], Coroutine[Any, Any, None]], clock: IReactorTime
) -> PeriodicService:
    """Give what sweeps once in ``interval`` seconds."""
    return PeriodicService(name, interval, sweep, clock, begins_after=BEGINS_AFTER)


class Retention:
    """One round of forgetting."""

    def __init__(self, store: ExpiryStore, now: Now) -> None:
        self._store = store
        self._now = now

    async def sweep(self) -> None:
        """Delete all that has expired by now, and give the space back."""
        now = self._now()
        await delete_in_batches(partial(self._store.expire, now), BATCH)
        before = Instant(now - REFUSALS_KEPT)
        await delete_in_batches(partial(self._store.forget_refusals, before), BATCH)
        # A piece in each round, until nothing is left to give.
        await self._store.reclaim_space()


class DeliverabilityRetention:
    """One round of ending tests that got no mail in time, and of forgetting old ones."""

    def __init__(self, store: DeliverabilityStore, now: Now) -> None:
        self._store = store
        self._now = now

    async def sweep(self) -> None:
        """Expire and forget all whose time has come by now."""
        now = self._now()
        await delete_in_batches(partial(self._store.expire, now), BATCH)
        await delete_in_batches(partial(self._store.forget, now), BATCH)


class WatchRetention:
    """One round of forgetting what changed long ago."""

    def __init__(self, store: WatchStore, now: Now) -> None:
        self._store = store
        self._now = now

    async def sweep(self) -> None:
        """Forget what is older than histories are kept."""
        await delete_in_batches(
            partial(self._store.forget, Instant(self._now() - HISTORY_KEPT)), BATCH
        )


class ReportRetention:
    """One round of forgetting reports of receivers, and what they say."""

    def __init__(self, store: ReportStore, now: Now) -> None:
        self._store = store
        self._now = now

    async def sweep(self) -> None:
        """Forget all that was kept for long enough."""
        await delete_in_batches(partial(self._store.forget, self._now()), BATCH)
