"""Deletes expired mail, old records of rejected mail, tests, histories, logs and reports."""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from msgspec import Struct
from twisted.internet.interfaces import IReactorTime

from mailcheck.core.audit import AUDIT_KEPT, MOST_ENTRIES
from mailcheck.core.domains.watches import HISTORY_KEPT
from mailcheck.core.identifiers import AccountId
from mailcheck.core.inbound import KEPT
from mailcheck.core.instants import DAY, HOUR, Instant
from mailcheck.daemon.periodic import PeriodicService
from mailcheck.operations.concurrency import delete_in_batches
from mailcheck.ports.clocks import Now
from mailcheck.store.accounts.audit_store import AuditStore
from mailcheck.store.deliverability_store import DeliverabilityStore
from mailcheck.store.domains.report_store import ReportStore
from mailcheck.store.domains.traffic_store import TrafficStore
from mailcheck.store.domains.watch_store import WatchStore
from mailcheck.store.inbound_store import InboundStore
from mailcheck.store.messages import ExpiryStore

INTERVAL = 10.0
"""Seconds between rounds. Expired data is hidden at once; the rounds only delete it."""

BEGINS_AFTER = 2.0
"""Seconds between startup and the first round, to leave the disk to the startup."""

AUDIT_INTERVAL = 3600.0
"""Seconds between rounds for the audit log."""

WATCHES_INTERVAL = 600.0
"""Seconds between rounds for data that is stored for more than a year."""

BATCH = 200
"""Maximum number of rows deleted in one transaction, so that incoming mail waits only briefly."""

INBOUND_INTERVAL = 60.0
"""Seconds between rounds for mails into applications, whose number is limited."""

REFUSALS_KEPT = 1 * HOUR

LEAST_KEPT = 1 * DAY
"""Minimum retention of mail that is stored already, when the retention is shortened."""


def retention_service(
    name: str, interval: float, sweep: Callable[[], Coroutine[Any, Any, None]], clock: IReactorTime
) -> PeriodicService:
    """Return a service that calls ``sweep`` every ``interval`` seconds.

    A stop does not wait for the sweep, which may delete hundreds of thousands of rows.
    """
    return PeriodicService(
        name, interval, sweep, clock, begins_after=BEGINS_AFTER, is_cancelled=True
    )


class Retention:
    """Deletes expired mail and old records of rejected mail.

    Mail that would be stored for longer than the retention of today expires earlier, but never
    before it was stored for `LEAST_KEPT`: clients were told when it expires.

    :param kept: the retention of inboxes without their own, in milliseconds.
    :param tell: called for each inbox with a deletion that cannot be undone any more.
    """

    def __init__(
        self, store: ExpiryStore, kept: int, now: Now, tell: Callable[[AccountId], None]
    ) -> None:
        self._store = store
        self._kept = kept
        self._now = now
        self._tell = tell
        self._applied: dict[AccountId | None, int] = {}

    async def sweep(self) -> None:
        """Delete all that has expired, and reclaim the disk space."""
        await self._shorten()
        now = self._now()
        final = await self._store.final_deletions(now)
        await delete_in_batches(partial(self._store.expire, now), BATCH)
        for account_id in final:
            self._tell(account_id)
        before = Instant(now - REFUSALS_KEPT)
        await delete_in_batches(partial(self._store.forget_refusals, before), BATCH)
        # Reclaims a part in each round.
        await self._store.reclaim_space()

    async def _shorten(self) -> None:
        """Apply each retention that was not applied yet."""
        wanted: dict[AccountId | None, int] = {None: self._kept}
        for account_id, hours in (await self._store.own_retentions()).items():
            wanted[account_id] = hours * HOUR
        for owner, kept in wanted.items():
            if self._applied.get(owner) != kept:
                await self._shorten_of(owner, max(kept, LEAST_KEPT))
        self._applied = wanted

    async def _shorten_of(self, owner: AccountId | None, longest: int) -> None:
        found, last = await self._store.expiring_after(owner, longest, BATCH)
        while found:
            await self._store.shorten(found, longest)
            if last is None:
                return
            found, last = await self._store.expiring_after(owner, longest, BATCH, last)


class DeliverabilityRetention(Struct, frozen=True, eq=False):
    """Expires tests that received no mail in time, and deletes old tests."""

    store: DeliverabilityStore
    now: Now

    async def sweep(self) -> None:
        """Expire and delete all tests that are due."""
        now = self.now()
        await delete_in_batches(partial(self.store.expire, now), BATCH)
        await delete_in_batches(partial(self.store.forget, now), BATCH)


class InboundRetention(Struct, frozen=True, eq=False):
    """Deletes mails into applications that are old or too many, and their attempts."""

    store: InboundStore
    now: Now

    async def sweep(self) -> None:
        """Delete what is older than `KEPT`, or beyond the maximum of its account."""
        before = Instant(self.now() - KEPT)
        await delete_in_batches(partial(self.store.forget_mails, before), BATCH)
        await delete_in_batches(self.store.forget_attempts, BATCH)


class WatchRetention(Struct, frozen=True, eq=False):
    """Deletes old history of watches."""

    store: WatchStore
    now: Now

    async def sweep(self) -> None:
        """Delete history older than its retention."""
        await delete_in_batches(
            partial(self.store.forget, Instant(self.now() - HISTORY_KEPT)), BATCH
        )


class AuditRetention(Struct, frozen=True, eq=False):
    """Deletes old entries of the audit log."""

    store: AuditStore
    now: Now

    async def sweep(self) -> None:
        """Delete entries older than `AUDIT_KEPT`, and those beyond `MOST_ENTRIES`."""
        before = Instant(self.now() - AUDIT_KEPT)
        await delete_in_batches(partial(self.store.forget, before), BATCH)
        for account_id, excess in await self.store.crowded(MOST_ENTRIES):
            for begun in range(0, excess, BATCH):
                await self.store.forget_oldest(account_id, min(BATCH, excess - begun))


class ReportRetention(Struct, frozen=True, eq=False):
    """Deletes old reports of receivers and their contents."""

    store: ReportStore
    now: Now

    async def sweep(self) -> None:
        """Delete all reports older than their retention."""
        await delete_in_batches(partial(self.store.forget, self.now()), BATCH)


class TrafficRetention(Struct, frozen=True, eq=False):
    """Deletes old statistics of traffic."""

    store: TrafficStore
    days: int
    now: Now

    async def sweep(self) -> None:
        """Delete the counts of all days before the last ones."""
        now = self.now()
        first = Instant(now - now % DAY - (self.days - 1) * DAY)
        await delete_in_batches(partial(self.store.forget, first), BATCH)
