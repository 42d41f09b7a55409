"""Work that waits in the store, done some at once, each job by one daemon, none forgotten.

What is to be done stands in the store alone: whoever says that a job waits gives a hint. A lease
says whose a job is. A daemon that stops lets go of its own; one that dies leaves them to the next,
or to itself after its restart, when their leases have ended.
"""

from abc import ABC, abstractmethod
from collections.abc import Coroutine, Hashable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from twisted.internet.defer import CancelledError, Deferred, DeferredList, succeed
from twisted.internet.defer import TimeoutError as DeferredTimeout
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailcheck.core.errors import ExpectedFailure
from mailcheck.core.instruments import Tally

GRACE = 5.0
"""Seconds that a stopping daemon waits for jobs that do not end when they are cancelled."""


class HasId(Protocol):
    """Something that is to be done: for what has this id, one at a time."""

    @property
    def id(self) -> Any:
        """Its id."""


Id = TypeVar("Id", bound=Hashable)
Job = TypeVar("Job", bound=HasId)


class QueueWorker(ABC, Generic[Id, Job]):
    """Claims jobs that wait and does them, while it runs.

    A kind of work says what it is called in the log (``jobs``: "tests"), how many of it may be
    under way (``max_jobs``), and how it is claimed, done and let go of.
    """

    jobs: str
    max_jobs: int
    _log = Logger()

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self._under_way: dict[Id, Deferred[None]] = {}
        self._is_running = False
        self._has_hint = False
        self._is_polling = False
        self._polling: Deferred[None] = succeed(None)
        self.outcomes = Tally()

    @abstractmethod
    async def claim(self, limit: int) -> Sequence[Job]:
        """Take so many jobs at most that wait and that nobody else does."""

    @abstractmethod
    async def process(self, job: Job) -> None:
        """Do a job and record it; one that fails here is claimed again when its lease has ended."""

    @abstractmethod
    async def release(self, *, is_attempt: bool) -> None:
        """Let go of all that is this daemon's; without ``is_attempt`` it was not really begun."""

    async def start(self) -> None:
        """Take up what was left, also by this daemon's own earlier life."""
        try:
            await self.release(is_attempt=True)
        except ExpectedFailure as failure:
            # They are free when their leases end.
            self._log.warn("{jobs} of an earlier run wait: {why}", jobs=self.jobs, why=failure)
        self._is_running = True
        self.wake()

    async def stop(self) -> None:
        """Drop what is under way, to be taken up at the next start."""
        self._is_running = False
        await self._polling
        under_way = list(self._under_way.values())
        for one in under_way:
            one.cancel()
        ended = DeferredList(under_way).addTimeout(GRACE, self._clock)
        await ended.addErrback(lambda failure: failure.trap(DeferredTimeout))
        try:
            if under_way:
                await self.release(is_attempt=False)
        except ExpectedFailure as failure:
            self._log.warn("{jobs} could not be let go of: {why}", jobs=self.jobs, why=failure)

    def wake(self) -> None:
        """Take the hint that a job may wait."""
        self._has_hint = True
        if self._may_claim() and not self._is_polling:
            self._is_polling = True
            self._polling = Deferred.fromCoroutine(self._claim_all())

    async def poll(self) -> None:
        """Look without a hint: one may have been lost, or a job was put off."""
        self.wake()
        await self._polling

    def count(self) -> int:
        """Say how many jobs are under way."""
        return len(self._under_way)

    def begin(self, job_id: Id, doing: Coroutine[Any, Any, None]) -> Deferred[None]:
        """Do what was claimed; fires when it has ended, however it did."""
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
                # There may be more where so many were found: who ends looks again.
                self._has_hint = self._has_hint or len(claimed) == free
                for job in claimed:
                    # One of our own, when the clock was put forward: its lease goes on.
                    if job.id not in self._under_way:
                        self.begin(job.id, self.process(job))
        except ExpectedFailure as failure:
            self._log.warn("{jobs} wait to be claimed: {why}", jobs=self.jobs, why=failure)
        except Exception:
            self._log.failure("{jobs} could not be claimed", jobs=self.jobs)
        finally:
            self._is_polling = False

    def _end(self, job_id: Id) -> None:
        del self._under_way[job_id]
        if self._has_hint:
            self.wake()

    def _log_dropped(self, failure: Failure, job_id: Id) -> None:
        """Say why a job came to nothing: it is begun again when its lease has ended."""
        if failure.check(CancelledError):
            return
        if failure.check(ExpectedFailure):
            self._log.warn(
                "one of the {jobs} is put off, {id}: {why}",
                jobs=self.jobs,
                id=job_id,
                why=failure.getErrorMessage(),
            )
        else:
            self._log.failure(
                "one of the {jobs} could not be kept: {id}", failure, jobs=self.jobs, id=job_id
            )
