"""Reading of the audit log by programs: with a cursor, with waits, and in the journal."""

from msgspec import Struct
from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as DeferredTimeout
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from mailcheck.core.accounts import Caller
from mailcheck.core.audit import AuditEntry, AuditFilter
from mailcheck.core.errors import StoreUnavailable
from mailcheck.core.instants import format_instant
from mailcheck.operations.parked_waits import WaitSlots
from mailcheck.ports.cluster import Notifications
from mailcheck.store.accounts.audit_store import AuditStore

POLL = 1.0
"""Seconds after which a wait reads the log without a notification: the command line sends none."""

JOURNAL_INTERVAL = 2.0
"""Seconds between two looks for entries that the journal does not have yet."""

JOURNAL_BATCH = 200
"""Number of entries that are written to the journal at once."""


class AuditPage(Struct, frozen=True):
    """Entries in the order of commits, and the position to continue after."""

    entries: list[AuditEntry]
    position: int
    has_more: bool


class FollowAudit:
    """The operation behind the routes of the audit log."""

    def __init__(
        self,
        store: AuditStore,
        changes: Notifications[str],
        slots: WaitSlots,
        clock: IReactorTime,
    ) -> None:
        self._store = store
        self._slots = slots
        self._clock = clock
        self._waiting: set[Deferred[None]] = set()
        changes.listen(self._on_change)

    async def read(
        self,
        caller: Caller,
        wanted: AuditFilter,
        after: int | None,
        limit: int,
        timeout: float | None,
    ) -> AuditPage:
        """Return the entries after a position, or the newest ones without a position.

        :param timeout: seconds to wait for an entry after the position, if there is none yet.
        :raises TooManyWaits: all wait slots of the key are in use.
        :raises InvalidCredentials: the access of the caller has ended meanwhile.
        """
        if after is None:
            last = await self._store.last_position()
            newest = await self._store.newest(wanted, last + 1, limit)
            return AuditPage(newest[::-1], last, has_more=False)
        if timeout is None:
            return await self._page(wanted, after, limit)
        deadline = self._clock.seconds() + timeout
        async with self._slots.held_by(caller) as parked:
            while True:
                bell: Deferred[None] = Deferred(self._waiting.discard)
                self._waiting.add(bell)
                try:
                    page = await self._page(wanted, after, limit)
                    left = deadline - self._clock.seconds()
                    if page.entries or left <= 0:
                        return page
                    await parked.until(bell, min(left, POLL))
                except DeferredTimeout:
                    continue
                finally:
                    self._waiting.discard(bell)

    async def _page(self, wanted: AuditFilter, after: int, limit: int) -> AuditPage:
        # The last position is read first: entries that are committed meanwhile come next time.
        last = await self._store.last_position()
        found = await self._store.after(wanted, after, limit + 1)
        entries, has_more = found[:limit], len(found) > limit
        position = entries[-1].position if has_more else max(last, after, *_positions(entries))
        return AuditPage(entries, position, has_more=has_more)

    def _on_change(self, _: str) -> None:
        for bell in tuple(self._waiting):
            self._waiting.discard(bell)
            bell.callback(None)


def _positions(entries: list[AuditEntry]) -> list[int]:
    return [entry.position for entry in entries] or [0]


class AuditJournal(Struct, frozen=True, eq=False):
    """Writes each entry of the audit log to the log of the daemon, too.

    An entry is written at least once, also one of the command line: two daemons, or one that stops
    between writing and recording, may write it twice, with the same id.
    """

    _log = Logger()

    store: AuditStore

    async def write(self) -> None:
        """Write the entries that are new."""
        try:
            while found := await self.store.unjournaled(JOURNAL_BATCH):
                for entry in found:
                    self._log.info(
                        "audit: id={id} at={at} client={client} action={action} account={account} "
                        "actor={actor} detail={detail}",
                        id=entry.id,
                        at=format_instant(entry.happened_at),
                        client=entry.client,
                        action=entry.action,
                        account=entry.account_name,
                        actor=entry.actor,
                        detail=entry.detail,
                    )
                await self.store.note_journaled(found[-1].position)
        except StoreUnavailable:
            pass  # the next round tries again
