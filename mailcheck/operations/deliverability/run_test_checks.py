"""Analysing the mails of deliverability tests, as jobs with a lease."""

from collections.abc import Awaitable, Callable, Sequence

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import deferLater

from mailcheck.core.deliverability_tests import DeliverabilityTest, ReceivedMail, StoredReport
from mailcheck.core.errors import ExpectedFailure, WorkTooSlow
from mailcheck.core.identifiers import DeliverabilityTestId
from mailcheck.core.instants import SECOND, Instant
from mailcheck.operations.concurrency import MailTraffic
from mailcheck.operations.queue_worker import QueueWorker
from mailcheck.ports.cluster import Notifications
from mailcheck.store.deliverability_store import DeliverabilityStore

Analyse = Callable[[ReceivedMail], Awaitable[StoredReport]]
"""Analyses a mail. The report contains what could not be determined; failures are bugs."""


AT_ONCE = 8
"""Maximum number of concurrent analyses. They mostly wait for DNS, but each keeps its mail in
memory."""

PACE = 0.08
"""Minimum seconds between the starts of two analyses while mail is being received. Each occupies
the reactor for some ten milliseconds, and the senders of that mail wait for it."""

LEASE = 30 * SECOND
"""Duration of a lease. Afterwards another daemon takes the job over. It is renewed six times."""

RENEWAL = 5.0
"""Seconds between renewals, and between looks for abandoned jobs. Together with the lease, the
tests of a dead daemon restart within 40 s."""

DEADLINE = 120.0
"""Seconds for one analysis. All checks have their own, shorter deadlines, so only a bug
reaches this one."""

RETRY_AFTER = 5 * SECOND
"""Time until a failed analysis is repeated, since its cause may be temporary."""


class RunTestChecks(QueueWorker[DeliverabilityTestId, DeliverabilityTest], eq=False):
    """Claims tests that are ready and has them analysed."""

    jobs = "tests"
    max_jobs = AT_ONCE
    lease = LEASE

    store: DeliverabilityStore
    analyse: Analyse
    notifications: Notifications[DeliverabilityTestId]
    traffic: MailTraffic
    _next_turn: float = 0.0

    async def renew(self) -> None:
        """Renew the leases of running analyses, cancel those that were lost, and look for more."""
        try:
            await self.renew_leases(self.store.renew)
        except ExpectedFailure as failure:
            self._log.warn("leases could not be renewed: {reason}", reason=failure)
            return
        self.wake()

    async def claim(self, limit: int) -> Sequence[DeliverabilityTest]:
        """Claim the tests that have waited longest, and announce those that were given up."""
        found = await self.store.claim(self.new_lease(), self.clocks.now(), limit)
        for test_id in found.given_up:
            self.notifications.publish(test_id)
        if found.given_up:
            self.wake()  # they were counted against the limit
        return found.tests

    async def release(self, *, is_attempt: bool) -> None:
        """Release the leases of this daemon."""
        await self.store.release(self.holder, is_attempt=is_attempt)

    async def process(self, job: DeliverabilityTest) -> None:
        """Analyse the mail of a test and store its report."""
        mail = await self.store.read_mail(job.id)
        if mail is None:
            return  # deleted meanwhile
        try:
            await self._wait_turn()
            report = await self._judge(mail)
        except CancelledError:
            return  # the daemon stops, or another daemon has the job now
        except WorkTooSlow as failure:
            self.outcomes.add("failed")
            await self._fail(job, f"the analysis was given up: {failure}", retry_at=None)
            return
        except Exception as failure:
            self._log.failure("analysis of test {test} failed", test=job.id)
            self.outcomes.add("failed")
            why = f"the analysis failed: {type(failure).__name__}"
            await self._fail(job, why, Instant(self.clocks.now() + RETRY_AFTER))
            return
        if self._is_running:
            await self.store.complete(job.id, self.holder, report)
            self.outcomes.add("completed")
            self.notifications.publish(job.id)

    async def _wait_turn(self) -> None:
        """Wait until enough time has passed since the last start, if mail is being received."""
        now = turn = self.clocks.clock.seconds()
        if self.traffic.is_busy:
            turn = max(now, self._next_turn)
        self._next_turn = turn + PACE
        if turn > now:
            await deferLater(self.clocks.clock, turn - now)

    def _judge(self, mail: ReceivedMail) -> Deferred[StoredReport]:
        async def judge() -> StoredReport:
            return await self.analyse(mail)

        return Deferred.fromCoroutine(judge()).addTimeout(DEADLINE, self.clocks.clock)

    async def _fail(self, test: DeliverabilityTest, reason: str, retry_at: Instant | None) -> None:
        await self.store.fail_attempt(test.id, self.holder, reason, retry_at)
        self.notifications.publish(test.id)
