"""Running watches that are due: some at once, each by one daemon, none forgotten.

What is due stands in the store alone. A lease says who runs it: a daemon that stops lets go of
its own; what one has left that died is run again when the lease has ended.
"""

from collections.abc import Callable

from twisted.internet.defer import CancelledError, Deferred, DeferredList, succeed
from twisted.internet.defer import TimeoutError as DeferredTimeout
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailcheck.checks.watching.changes import compare, read_state, write_state
from mailcheck.core.errors import ExpectedFailure
from mailcheck.core.identifiers import AccountId, RandomBytes, new_short_id
from mailcheck.core.instants import MINUTE, SECOND, Instant
from mailcheck.core.instruments import Tally
from mailcheck.core.watches import AlertId, Watch, WatchId, next_run
from mailcheck.operations.domains.watches.look import LookAtWatched
from mailcheck.operations.domains.watches.ports import Recorded, WatchStore
from mailcheck.operations.ports import Now

AT_ONCE = 4
"""Runs under way at a time: a third of the checks that there may be, so that people get theirs."""

LOOK_INTERVAL = 5.0
"""Seconds between looks for what is due."""

LEASE = 120 * SECOND
"""After that another daemon runs what one has left."""

DEADLINE = 60.0
"""Seconds for one run: each check in it has a shorter deadline, so that only a fault of ours
gets here."""

GRACE = 5.0
"""Seconds that a stopping daemon waits for runs that do not end when they are cancelled."""

RETRY_AFTER = 5 * MINUTE
"""Before a run that failed by a fault of ours is tried again."""


class RunWatches:
    """Claims watches that are due; ``holder`` is this daemon's own name."""

    _log = Logger()

    def __init__(
        self,
        store: WatchStore,
        look: Callable[[], LookAtWatched],
        holder: str,
        clock: IReactorTime,
        now: Now,
        random_bytes: RandomBytes,
    ) -> None:
        self._store = store
        self._look_at = look
        self._holder = holder
        self._clock = clock
        self._now = now
        self._random_bytes = random_bytes
        self._under_way: dict[WatchId, Deferred[None]] = {}
        self._is_running = False
        self._must_look = False
        self._is_looking = False
        self._looking: Deferred[None] = succeed(None)
        self.outcomes = Tally()

    async def start(self) -> None:
        """Take up what was left, also by this daemon's own earlier life."""
        try:
            await self._store.release(self._holder)
        except ExpectedFailure as failure:
            self._log.warn("watches of an earlier run wait: {reason}", reason=failure)
        self._is_running = True
        self.look()

    async def stop(self) -> None:
        """Drop what is under way; it is due as before."""
        self._is_running = False
        await self._looking
        under_way = list(self._under_way.values())
        for one in under_way:
            one.cancel()
        ended = DeferredList(under_way).addTimeout(GRACE, self._clock)
        await ended.addErrback(lambda failure: failure.trap(DeferredTimeout))
        try:
            if under_way:
                await self._store.release(self._holder)
        except ExpectedFailure as failure:
            self._log.warn("watches could not be let go of: {reason}", reason=failure)

    def look(self) -> None:
        """Take the hint that a watch may be due."""
        self._must_look = True
        if self._is_running and not self._is_looking and len(self._under_way) < AT_ONCE:
            self._is_looking = True
            self._looking = Deferred.fromCoroutine(self._claim())

    async def look_for_due(self) -> None:
        """Look for what is due: to be done again every `LOOK_INTERVAL` seconds."""
        self.look()
        await self._looking

    def count(self) -> int:
        """Say how many runs are under way."""
        return len(self._under_way)

    async def run_now(self, account_id: AccountId, watch_id: WatchId) -> bool:
        """Run one whether it is due or not; false while another daemon runs it.

        Where this one does, it is run once more behind that: what has changed since is seen. Who
        goes away meanwhile ends nothing.
        """
        under_way = self._under_way.get(watch_id)
        if under_way is not None:
            await _end_of(under_way)
        watch = await self._store.claim_one(account_id, watch_id, self._holder, self._now(), LEASE)
        if watch is None:
            return False
        await _end_of(self._begin(watch, is_due=watch.next_run_at <= self._now()))
        return True

    async def _claim(self) -> None:
        try:
            while self._must_look and self._is_running and len(self._under_way) < AT_ONCE:
                self._must_look = False
                free = AT_ONCE - len(self._under_way)
                found = await self._store.claim(self._holder, self._now(), LEASE, free)
                self._must_look = self._must_look or len(found) == free
                for watch in found:
                    if watch.id not in self._under_way:
                        self._begin(watch, is_due=True)
        except ExpectedFailure as failure:
            self._log.warn("watches wait to be run: {reason}", reason=failure)
        except Exception:
            self._log.failure("watches could not be claimed")
        finally:
            self._is_looking = False

    def _begin(self, watch: Watch, *, is_due: bool) -> Deferred[None]:
        running = Deferred.fromCoroutine(self._run(watch, is_due=is_due))
        self._under_way[watch.id] = running
        running.addErrback(self._log_dropped, watch)
        running.addCallback(lambda _: self._end(watch.id))
        return running

    def _end(self, watch_id: WatchId) -> None:
        del self._under_way[watch_id]
        if self._must_look:
            self.look()

    async def _run(self, watch: Watch, *, is_due: bool) -> None:
        try:
            looking = Deferred.fromCoroutine(self._look_at().look(watch))
            facts = await looking.addTimeout(DEADLINE, self._clock)
        except CancelledError:
            return
        except Exception as failure:
            if not isinstance(failure, ExpectedFailure):
                self._log.failure("watch {watch} could not be run", watch=watch.id)
            self.outcomes.add("failed")
            await self._store.put_off(self._holder, watch.id, Instant(self._now() + RETRY_AFTER))
            return
        now = self._now()
        compared = compare(read_state(watch.state), facts, now)
        next_run_at = watch.next_run_at
        if is_due:
            next_run_at = next_run(watch.id, watch.settings.interval, now)
        recorded = Recorded(
            watch,
            now,
            next_run_at,
            write_state(compared.state),
            compared.changes,
            tuple((AlertId(new_short_id(self._random_bytes)), one) for one in compared.raised),
            compared.ended,
            compared.score,
        )
        await self._store.record(self._holder, recorded)
        self.outcomes.add("changed" if compared.changes else "unchanged")

    def _log_dropped(self, failure: Failure, watch: Watch) -> None:
        """Say why a run came to nothing: it is begun again when its lease has ended."""
        if failure.check(CancelledError):
            return
        if failure.check(ExpectedFailure):
            self._log.warn(
                "watch {watch} is put off: {reason}",
                watch=watch.id,
                reason=failure.getErrorMessage(),
            )
        else:
            self._log.failure("watch {watch} could not be kept", failure, watch=watch.id)


def _end_of(running: Deferred[None]) -> Deferred[None]:
    """Give what fires when a run has ended, and can be cancelled without ending that."""
    ended: Deferred[None] = Deferred()

    def tell(result: None) -> None:
        ended.callback(None)
        return result

    running.addCallback(tell)
    return ended
