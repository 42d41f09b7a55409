"""Analysing the mails of deliverability tests."""

from collections.abc import Awaitable, Callable, Sequence

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import deferLater

from mailcheck.core.deliverability_tests import DeliverabilityTest, ReceivedMail, StoredReport
from mailcheck.core.errors import ExpectedFailure, WorkTooSlow
from mailcheck.core.identifiers import DeliverabilityTestId
from mailcheck.core.instants import SECOND, Instant
from mailcheck.operations.concurrency import MailTraffic
from mailcheck.operations.queue_worker import QueueWorker
from mailcheck.ports.clocks import TimeAndChance
from mailcheck.ports.cluster import WakeUps
from mailcheck.ports.workers import Lease
from mailcheck.store.deliverability_store import DeliverabilityStore

Analyse = Callable[[ReceivedMail], Awaitable[StoredReport]]
"""Judges a mail. What could not be determined stands in the report; a failure is one of ours."""


AT_ONCE = 8
"""Analyses under way at a time: they wait for DNS mostly, but each holds its mail in memory."""

PACE = 0.08
"""Seconds between the beginnings of two analyses while mail is coming in: each takes some ten
milliseconds of the reactor, and its mails' senders wait for that."""

LEASE = 30 * SECOND
"""After that another daemon takes over what one has left; renewed six times meanwhile."""

RENEWAL = 5.0
"""Seconds between renewals, and between looks for what was left by others: with the lease it
is within 40 s that a dead daemon's tests are begun again."""

DEADLINE = 120.0
"""Seconds for one analysis: each check in it has a shorter deadline of its own, so that only
a fault of ours gets here."""

RETRY_AFTER = 5 * SECOND
"""Before a failed analysis is begun again: what failed may be well by then."""


class RunTestChecks(QueueWorker[DeliverabilityTestId, DeliverabilityTest]):
    """Claims tests that wait and has them analysed; ``holder`` is this daemon's own name."""

    jobs = "tests"
    max_jobs = AT_ONCE

    def __init__(
        self,
        store: DeliverabilityStore,
        analyse: Analyse,
        wake_ups: WakeUps[DeliverabilityTestId],
        traffic: MailTraffic,
        holder: str,
        time_and_chance: TimeAndChance,
    ) -> None:
        super().__init__(time_and_chance.clock)
        self._store = store
        self._analyse = analyse
        self._wake_ups = wake_ups
        self._traffic = traffic
        self._holder = holder
        self._next_turn = 0.0
        self._now = time_and_chance.now

    async def renew(self) -> None:
        """Hold what is under way for longer, drop what is not ours any more, and look for more."""
        test_ids = tuple(self._under_way)
        try:
            held = await self._store.renew(self._lease(), test_ids) if test_ids else frozenset()
        except ExpectedFailure as failure:
            self._log.warn("leases could not be renewed: {reason}", reason=failure)
            return
        for test_id in test_ids:
            analysis = self._under_way.get(test_id)
            if test_id not in held and analysis is not None:
                analysis.cancel()
        self.wake()

    async def claim(self, limit: int) -> Sequence[DeliverabilityTest]:
        """Take the tests that wait longest; those that were given up are told to who waits."""
        found = await self._store.claim(self._lease(), self._now(), limit)
        for test_id in found.given_up:
            self._wake_ups.publish(test_id)
        if found.given_up:
            self.wake()  # they took others' places
        return found.tests

    async def release(self, *, is_attempt: bool) -> None:
        """Let go of what this daemon holds."""
        await self._store.release(self._holder, is_attempt=is_attempt)

    async def process(self, job: DeliverabilityTest) -> None:
        """Analyse the mail of a test, and keep its report."""
        mail = await self._store.read_mail(job.id)
        if mail is None:
            return  # forgotten meanwhile
        try:
            await self._wait_turn()
            report = await self._judge(mail)
        except CancelledError:
            return  # stopped, or another daemon has it now
        except WorkTooSlow as failure:
            self.outcomes.add("failed")
            await self._fail(job, f"the analysis was given up: {failure}", retry_at=None)
            return
        except Exception as failure:
            self._log.failure("analysis of test {test} failed", test=job.id)
            self.outcomes.add("failed")
            why = f"the analysis failed: {type(failure).__name__}"
            await self._fail(job, why, Instant(self._now() + RETRY_AFTER))
            return
        if self._is_running:
            await self._store.complete(job.id, self._holder, report)
            self.outcomes.add("completed")
            self._wake_ups.publish(job.id)

    async def _wait_turn(self) -> None:
        """Let some time pass since another analysis began, if mail is coming in meanwhile."""
        now = turn = self._clock.seconds()
        if self._traffic.is_busy:
            turn = max(now, self._next_turn)
        self._next_turn = turn + PACE
        if turn > now:
            await deferLater(self._clock, turn - now)

    def _judge(self, mail: ReceivedMail) -> Deferred[StoredReport]:
        async def judge() -> StoredReport:
            return await self._analyse(mail)

        return Deferred.fromCoroutine(judge()).addTimeout(DEADLINE, self._clock)

    async def _fail(self, test: DeliverabilityTest, reason: str, retry_at: Instant | None) -> None:
        await self._store.fail_attempt(test.id, self._holder, reason, retry_at)
        self._wake_ups.publish(test.id)

    def _lease(self) -> Lease:
        return Lease(self._holder, Instant(self._now() + LEASE))
