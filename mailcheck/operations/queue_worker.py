"""Workers for job queues in the store: each job is done by one daemon, and none is lost.

The store alone has the queue; notifications about new jobs are hints. A lease says which daemon
does a job. A daemon that stops releases its leases. If it crashes, another daemon takes its jobs
over when their leases end, or the daemon itself does after its restart.
"""

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Collection, Coroutine, Hashable, Sequence
from functools import partial
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from msgspec import Struct, field
from twisted.internet.defer import CancelledError, Deferred, DeferredList, succeed
from twisted.internet.defer import TimeoutError as DeferredTimeout
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailcheck.core.errors import ExpectedFailure
from mailcheck.core.instants import Instant
from mailcheck.core.memory.instruments import Tally
from mailcheck.ports.clocks import ClockAndRandomness
from mailcheck.ports.workers import Lease

GRACE = 5.0
"""Seconds that a stopping daemon waits for cancelled jobs to end."""


class HasId(Protocol):
    """A job. At most one job with the same id is running."""

    @property
    def id(self) -> Any:
        """The id of the job."""


Id = TypeVar("Id", bound=Hashable)
Job = TypeVar("Job", bound=HasId)


class QueueWorker(Struct, Generic[Id, Job], eq=False, kw_only=True):
    """Claims waiting jobs and runs them while the daemon runs.

    Subclasses define ``jobs`` (their name in the log, such as "tests"), ``max_jobs`` (the maximum
    number of concurrent jobs), ``lease`` (the duration of a lease, in milliseconds), and how jobs
    are claimed, processed and released.

    :param holder: the name under which this daemon holds leases.
    """

    jobs: ClassVar[str]
    max_jobs: ClassVar[int]
    lease: ClassVar[int]
    _log = Logger()

    holder: str
    clocks: ClockAndRandomness
    outcomes: Tally = field(default_factory=Tally)
    _under_way: dict[Id, "Deferred[None]"] = field(default_factory=dict)
    _is_running: bool = False
    _has_hint: bool = False
    _is_polling: bool = False
    _polling: "Deferred[None]" = field(default_factory=partial(succeed, None))

    @abstractmethod
    async def claim(self, limit: int) -> Sequence[Job]:
        """Claim up to ``limit`` waiting jobs that no other daemon has."""

    @abstractmethod
    async def process(self, job: Job) -> None:
        """Process a job and record its result. If it fails, it is claimed again after its lease."""

    @abstractmethod
    async def release(self, *, is_attempt: bool) -> None:
        """Release all jobs of this daemon; ``is_attempt``: whether they count as attempted."""

    async def start(self) -> None:
        """Start, and take over the jobs of an earlier run of this daemon."""
        try:
            await self.release(is_attempt=True)
        except ExpectedFailure as failure:
            # They are free when their leases end.
            self._log.warn("{jobs} of an earlier run wait: {why}", jobs=self.jobs, why=failure)
        self._is_running = True
        self.wake()

    async def stop(self) -> None:
        """Stop, and release the running jobs for the next start."""
        self._is_running = False
        await self._polling
        under_way = list(self._under_way.values())
        for deferred in under_way:
            deferred.cancel()
        ended = DeferredList(under_way).addTimeout(GRACE, self.clocks.clock)
        await ended.addErrback(lambda failure: failure.trap(DeferredTimeout))
        try:
            if under_way:
                await self.release(is_attempt=False)
        except ExpectedFailure as failure:
            self._log.warn("{jobs} could not be released: {why}", jobs=self.jobs, why=failure)

    def wake(self) -> None:
        """Handle the hint that a job may be waiting."""
        self._has_hint = True
        if self._may_claim() and not self._is_polling:
            self._is_polling = True
            self._polling = Deferred.fromCoroutine(self._claim_all())

    async def poll(self) -> None:
        """Look for jobs without a hint, since hints may be lost and jobs may be postponed."""
        self.wake()
        await self._polling

    def new_lease(self) -> Lease:
        """Return a lease that begins now."""
        return Lease(self.holder, Instant(self.clocks.now() + self.lease))

    async def renew_leases(
        self, renew: Callable[[Lease, tuple[Id, ...]], Awaitable[Collection[Id]]]
    ) -> None:
        """Renew the leases of running jobs, and cancel the jobs whose leases were lost.

        :param renew: returns the ids of the jobs whose leases it has renewed.
        """
        job_ids = tuple(self._under_way)
        held = await renew(self.new_lease(), job_ids) if job_ids else ()
        for job_id in job_ids:
            under_way = self._under_way.get(job_id)
            if job_id not in held and under_way is not None:
                under_way.cancel()

    def count(self) -> int:
        """Return the number of running jobs."""
        return len(self._under_way)

    def begin(self, job_id: Id, doing: Coroutine[Any, Any, None]) -> Deferred[None]:
        """Run a claimed job. Fires when it has ended, whatever the result."""
        under_way = self._under_way[job_id] = Deferred.fromCoroutine(doing)
        under_way.addErrback(self._log_dropped, job_id)
        under_way.addCallback(lambda _: self._end(job_id))
        return under_way

    def _may_claim(self) -> bool:
        return self._has_hint and self._is_running and len(self._under_way) < self.max_jobs

    async def _claim_all(self) -> None:
        try:
            while self._may_claim():
                self._has_hint = False
                free = self.max_jobs - len(self._under_way)
                claimed = await self.claim(free)
                # The batch was full, so more jobs may be waiting; the next job to end polls again.
                self._has_hint = self._has_hint or len(claimed) == free
                for job in claimed:
                    # A job of this daemon is claimed again if the clock was set forward.
                    if job.id not in self._under_way:
                        self.begin(job.id, self.process(job))
        except ExpectedFailure as failure:
            self._log.warn("{jobs} are claimed later: {why}", jobs=self.jobs, why=failure)
        except Exception:
            self._log.failure("{jobs} could not be claimed", jobs=self.jobs)
        finally:
            self._is_polling = False

    def _end(self, job_id: Id) -> None:
        del self._under_way[job_id]
        if self._has_hint:
            self.wake()

    def _log_dropped(self, failure: Failure, job_id: Id) -> None:
        """Log why a job failed. It is claimed again when its lease has ended."""
        if failure.check(CancelledError):
            return
        if failure.check(ExpectedFailure):
            self._log.warn(
                "one of the {jobs} is postponed, {id}: {why}",
                jobs=self.jobs,
                id=job_id,
                why=failure.getErrorMessage(),
            )
        else:
            self._log.failure("one of the {jobs} failed: {id}", failure, jobs=self.jobs, id=job_id)
