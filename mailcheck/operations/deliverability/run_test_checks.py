"""Analysing the mails of deliverability tests: some at once, each by one daemon, none forgotten.

What is to be done stands in the store alone: whoever says that a test waits
gives a hint. A lease says whose an analysis is. A daemon that stops lets go of
its own; one that dies leaves them to the next, or to itself after its restart.
"""

from twisted.internet.defer import CancelledError, Deferred, DeferredList, succeed
from twisted.internet.defer import TimeoutError as DeferredTimeout
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailcheck.core.deliverability_tests import DeliverabilityTest, ReceivedMail, StoredReport
from mailcheck.core.errors import ExpectedFailure
from mailcheck.core.identifiers import DeliverabilityTestId
from mailcheck.core.instants import SECOND, Instant
from mailcheck.core.instruments import Tally
from mailcheck.operations.concurrency import MailTraffic
from mailcheck.operations.deliverability.ports import (
    Analyse,
    DeliverabilityStore,
    Lease,
)
from mailcheck.operations.ports import Now, WakeUps

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

GRACE = 5.0
"""Seconds that a stopping daemon waits for analyses that do not end when they are cancelled."""

RETRY_AFTER = 5 * SECOND
"""Before a failed analysis is begun again: what failed may be well by then."""


class RunTestChecks:
    """Claims tests that wait and has them analysed; ``holder`` is this daemon's own name."""

    _log = Logger()

    def __init__(
        self,
        store: DeliverabilityStore,
        analyse: Analyse,
        wake_ups: WakeUps[DeliverabilityTestId],
        traffic: MailTraffic,
        holder: str,
        clock: IReactorTime,
        now: Now,
    ) -> None:
        self._store = store
        self._analyse = analyse
        self._wake_ups = wake_ups
        self._traffic = traffic
        self._holder = holder
        self._next_turn = 0.0
        self._clock = clock
        self._now = now
        self._under_way: dict[DeliverabilityTestId, Deferred[None]] = {}
        self._is_running = False
        self._must_look = False
        self._looking: Deferred[None] = succeed(None)
        self._is_looking = False
        self.outcomes = Tally()

    async def start(self) -> None:
        """Take up what was left, also by this daemon's own earlier life."""
        try:
            await self._store.release(self._holder, is_attempt=True)
        except ExpectedFailure as failure:
            # It is free when its lease ends.
            self._log.warn("tests of an earlier run wait: {reason}", reason=failure)
        self._is_running = True
        self.look()

    async def stop(self) -> None:
        """Drop what is under way, to be taken up at the next start; it counts as not begun."""
        self._is_running = False
        await self._looking
        under_way = list(self._under_way.values())
        for analysis in under_way:
            analysis.cancel()
        ended = DeferredList(under_way).addTimeout(GRACE, self._clock)
        await ended.addErrback(lambda failure: failure.trap(DeferredTimeout))
        try:
            if under_way:
                await self._store.release(self._holder, is_attempt=False)
        except ExpectedFailure as failure:
            self._log.warn("tests could not be let go of: {reason}", reason=failure)

    def look(self) -> None:
        """Take the hint that a test may wait."""
        self._must_look = True
        if self._is_running and not self._is_looking and len(self._under_way) < AT_ONCE:
            self._is_looking = True
            self._looking = Deferred.fromCoroutine(self._claim())

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
        self.look()

    def count(self) -> int:
        """Say how many analyses are under way."""
        return len(self._under_way)

    async def _claim(self) -> None:
        try:
            while self._must_look and self._is_running and len(self._under_way) < AT_ONCE:
                self._must_look = False
                free = AT_ONCE - len(self._under_way)
                found = await self._store.claim(self._lease(), self._now(), free)
                # There may be more where so many were found: who ends looks again.
                is_full = len(found.tests) + len(found.given_up) == free
                self._must_look = self._must_look or is_full
                for test_id in found.given_up:
                    self._wake_ups.publish(test_id)
                for test in found.tests:
                    # One of our own, when the clock was put forward: its lease goes on.
                    if test.id not in self._under_way:
                        self._begin(test)
        except ExpectedFailure as failure:
            self._log.warn("tests wait to be analysed: {reason}", reason=failure)
        except Exception:
            self._log.failure("tests could not be claimed")
        finally:
            self._is_looking = False

    def _begin(self, test: DeliverabilityTest) -> None:
        analysis = self._under_way[test.id] = Deferred.fromCoroutine(self._run(test))
        analysis.addErrback(self._log_dropped, test.id)
        analysis.addCallback(lambda _: self._end(test.id))

    def _end(self, test_id: DeliverabilityTestId) -> None:
        del self._under_way[test_id]
        if self._must_look:
            self.look()

    async def _run(self, test: DeliverabilityTest) -> None:
        mail = await self._store.read_mail(test.id)
        if mail is None:
            return  # forgotten meanwhile
        try:
            await self._wait_turn()
            report = await self._judge(mail)
        except CancelledError:
            return  # stopped, or another daemon has it now
        except Exception as failure:
            self._log.failure("analysis of test {test} failed", test=test.id)
            self.outcomes.add("failed")
            await self._fail(test, f"the analysis failed: {type(failure).__name__}")
            return
        if self._is_running:
            await self._store.complete(test.id, self._holder, report)
            self.outcomes.add("completed")
            self._wake_ups.publish(test.id)

    async def _wait_turn(self) -> None:
        """Let some time pass since another analysis began, if mail is coming in meanwhile."""
        now = turn = self._clock.seconds()
        if self._traffic.is_flowing:
            turn = max(now, self._next_turn)
        self._next_turn = turn + PACE
        if turn > now:
            await deferLater(self._clock, turn - now)

    def _judge(self, mail: ReceivedMail) -> Deferred[StoredReport]:
        async def judge() -> StoredReport:
            return await self._analyse(mail)

        return Deferred.fromCoroutine(judge()).addTimeout(DEADLINE, self._clock)

    async def _fail(self, test: DeliverabilityTest, reason: str) -> None:
        retry_at = Instant(self._now() + RETRY_AFTER)
        await self._store.fail_attempt(test.id, self._holder, reason, retry_at)
        self._wake_ups.publish(test.id)

    def _log_dropped(self, failure: Failure, test_id: DeliverabilityTestId) -> None:
        """Say why an analysis came to nothing: it is begun again when its lease has ended."""
        if failure.check(CancelledError):
            return
        if failure.check(ExpectedFailure):
            self._log.warn(
                "analysis of test {test} is put off: {reason}",
                test=test_id,
                reason=failure.getErrorMessage(),
            )
        else:
            self._log.failure("test {test} could not be kept", failure, test=test_id)

    def _lease(self) -> Lease:
        return Lease(self._holder, Instant(self._now() + LEASE))
