"""Running due watches, as jobs with a lease."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from msgspec.structs import replace
from twisted.internet.defer import CancelledError, Deferred

from mailcheck.checks.watching.changes import compare, read_state, write_state
from mailcheck.checks.watching.facts import Facts, Topic
from mailcheck.core.domains.watches import (
    AlertId,
    Ended,
    Raised,
    Watch,
    WatchId,
    WatchKind,
    next_run,
)
from mailcheck.core.errors import ExpectedFailure
from mailcheck.core.identifiers import AccountId, new_short_id
from mailcheck.core.instants import MINUTE, SECOND, Instant
from mailcheck.operations.domains.watches.collect_facts import CollectFacts
from mailcheck.operations.queue_worker import QueueWorker
from mailcheck.ports.cluster import Notifications
from mailcheck.store.domains.watch_store import RunRecord, WatchStore

AT_ONCE = 4
"""Maximum number of concurrent runs: a third of all domain checks, so that clients get theirs."""

LOOK_INTERVAL = 5.0
"""Seconds between two looks for due watches."""

LEASE = 120 * SECOND
"""Duration of a lease. Afterwards another daemon may run an abandoned watch."""

DEADLINE = 60.0
"""Seconds for one run. All checks have their own, shorter deadlines, so only a bug reaches
this one."""

RETRY_AFTER = 5 * MINUTE
"""Time until a run is repeated that failed because of a bug."""


ReportedTopics = Callable[[AccountId, str], Awaitable[Mapping[str, Topic]]]
"""Returns the topics that the reports about a domain of an account add."""


class RunWatches(QueueWorker[WatchId, Watch], eq=False):
    """Runs due watches. ``changed`` announces accounts with new results."""

    jobs = "watches"
    max_jobs = AT_ONCE
    lease = LEASE

    store: WatchStore
    facts: CollectFacts
    reported: ReportedTopics
    changed: Notifications[AccountId]

    async def claim(self, limit: int) -> Sequence[Watch]:
        """Claim due watches, the longest overdue first."""
        return await self.store.claim(self.holder, self.clocks.now(), LEASE, limit)

    async def release(self, *, is_attempt: bool) -> None:
        """Release the watches of this daemon. They are due as before."""
        await self.store.release(self.holder)

    async def process(self, job: Watch) -> None:
        """Run a due watch."""
        await self._run(job, is_due=True)

    async def run_now(self, account_id: AccountId, watch_id: WatchId) -> bool:
        """Run a watch even if it is not due. Return false if another daemon is running it.

        If this daemon is running it, it runs once more afterwards, to see what has changed since.
        Cancelling the call does not cancel the run.
        """
        under_way = self._under_way.get(watch_id)
        if under_way is not None:
            await _end_of(under_way)
        watch = await self.store.claim_one(
            account_id, watch_id, self.holder, self.clocks.now(), LEASE
        )
        if watch is None:
            return False
        is_due = watch.next_run_at <= self.clocks.now()
        await _end_of(self.begin(watch.id, self._run(watch, is_due=is_due)))
        return True

    async def _collect(self, watch: Watch) -> Facts:
        """Return the facts of the checks, and the failing senders in reports about a domain."""
        facts = await self.facts.collect(watch)
        if watch.kind is not WatchKind.DOMAIN:
            return facts
        reported = await self.reported(watch.account_id, watch.target)
        return replace(facts, topics={**facts.topics, **reported})

    async def _run(self, watch: Watch, *, is_due: bool) -> None:
        try:
            looking = Deferred.fromCoroutine(self._collect(watch))
            facts = await looking.addTimeout(DEADLINE, self.clocks.clock)
        except CancelledError:
            return
        except Exception as failure:
            if not isinstance(failure, ExpectedFailure):
                self._log.failure("watch {watch} could not be run", watch=watch.id)
            self.outcomes.add("failed")
            await self.store.postpone(
                self.holder, watch.id, Instant(self.clocks.now() + RETRY_AFTER)
            )
            return
        now = self.clocks.now()
        compared = compare(read_state(watch.state), facts, now)
        next_run_at = watch.next_run_at
        if is_due:
            next_run_at = next_run(watch.id, watch.settings.interval, now)
        events: list[Raised | Ended] = [*compared.raised, *compared.ended]
        recorded = RunRecord(
            watch,
            now,
            next_run_at,
            write_state(compared.state),
            compared.changes,
            events=tuple(
                (AlertId(new_short_id(self.clocks.random_bytes)), event) for event in events
            ),
            score=compared.score,
            problem_count=len(list(compared.state.problems)),
        )
        await self.store.record(self.holder, recorded)
        self.changed.publish(watch.account_id)
        self.outcomes.add("changed" if compared.changes else "unchanged")


def _end_of(running: Deferred[None]) -> Deferred[None]:
    """Return a Deferred for the end of a run. Cancelling it does not cancel the run."""
    ended: Deferred[None] = Deferred()

    def tell(result: None) -> None:
        ended.callback(None)
        return result

    running.addCallback(tell)
    return ended
