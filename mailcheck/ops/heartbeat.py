"""Readiness of the daemon: a test write to the store, and a reply of each worker."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure

from mailcheck.core.errors import ExpectedFailure
from mailcheck.core.memory.instruments import Conditions
from mailcheck.ops.watch import DISK, FULL_DISK

INTERVAL = 5.0
"""Seconds between test writes. A write without a reply by then means that the store is stuck."""

LONGEST_SILENCE = 10.0
"""Seconds that a child process may be busy with one call: mail that was built to be slow takes as
long. A child process that does not return at all is replaced later."""

STORE = "store"

NOT_THERE, NOT_MADE = "it is not there yet", "it could not be made, and is tried again"
"""Problems of a part that the daemon creates at its start; the cause is in the log only."""


class Worker(Protocol):
    """A child process, or the threads of one purpose."""

    @property
    def subject(self) -> str:
        """The name of the worker for people."""

    @property
    def silence(self) -> float:
        """Seconds since a reply has been due; zero if none is."""

    @property
    def problem(self) -> str:
        """The problem of the worker; empty if it works."""

    @property
    def can_work(self) -> bool:
        """Whether a call to the worker is worth a try."""

    def ping(self) -> None:
        """Request a reply unless one is due; restart a process that has died."""


class Store(Protocol):
    """The store of the test writes."""

    def beat(self) -> Deferred[None]:
        """Write to the store, and read from it."""

    def freeable(self) -> Deferred[dict[str, int]]:
        """Return how many bytes of its disk each measure would free."""


class State(NamedTuple):
    """Whether the daemon is ready, and all problems by their subject.

    ``frees`` has the bytes that each measure would free on a disk with too little space.
    """

    is_ready: bool
    problems: Mapping[str, str]
    frees: Mapping[str, int]


class Heartbeat:
    """Check store and workers every `INTERVAL` seconds; a request for the state causes no check.

    :param workers: all of them must work for the daemon to be ready.
    :param patient: workers whose calls may take long, and without which most of the daemon works.
    """

    def __init__(
        self,
        conditions: Conditions,
        store: Store,
        workers: Sequence[Worker],
        clock: IReactorTime,
        patient: Sequence[Worker] = (),
    ) -> None:
        self._conditions = conditions
        self._store = store
        self._workers = workers
        self._patient = patient
        self._clock = clock
        self._awaited: set[str] = set()
        self._when_ready: list[Deferred[None]] = []
        self._began: float | None = None
        self._frees: Mapping[str, int] = {}

    def wait_for(self, subject: str) -> Callable[[str], None]:
        """Stay not ready until the daemon has created a part that it needs.

        Return a function that takes the cause of a failure, or an empty text once there is none.
        """
        self._awaited.add(subject)

        def note(cause: str) -> None:
            self._conditions.explain(subject, cause)
            self._conditions.set(subject, NOT_MADE if cause else "")
            if not cause:
                self._awaited.discard(subject)
            while self._when_ready and not self._awaited:
                self._when_ready.pop().callback(None)

        return note

    def when_ready(self) -> Deferred[None]:
        """Fire when the daemon has created all parts that it needs."""
        if not self._awaited:
            return succeed(None)
        self._when_ready.append(Deferred())
        return self._when_ready[-1]

    @property
    def state(self) -> State:
        """The present state: ready once all parts exist, and mail can be stored."""
        found = {
            **dict.fromkeys(self._awaited, NOT_THERE),
            **{what: why for what, why in self._conditions.problems.items() if why},
            **self._problems_of_workers(),
        }
        problems = {what: why for what, why in found.items() if why}
        can_work = all(worker.can_work and not _silence(worker) for worker in self._workers)
        can_store = STORE not in problems and problems.get(DISK) != FULL_DISK
        is_ready = can_work and can_store and not self._awaited
        return State(is_ready, problems, self._frees if DISK in problems else {})

    async def look(self) -> None:
        """Begin a write unless one is running, and ping the workers, without waiting for them."""
        if self._began is None:
            self._began = self._clock.seconds()
            Deferred.fromCoroutine(self._beat()).addCallbacks(self._note, self._fail)
        else:
            waited = self._clock.seconds() - self._began
            self._conditions.set(STORE, f"it has not taken a write for {waited:.0f} s")
        for subject, problem in self._problems_of_workers().items():
            self._conditions.set(subject, problem)
        for worker in (*self._workers, *self._patient):
            worker.ping()

    def _problems_of_workers(self) -> dict[str, str]:
        return {
            **{worker.subject: _silence(worker) or worker.problem for worker in self._workers},
            **{worker.subject: worker.problem for worker in self._patient},
        }

    async def _beat(self) -> str:
        await self._store.beat()
        if self._conditions.problems.get(DISK):
            self._frees = await self._store.freeable()
        return ""

    def _fail(self, failure: Failure) -> None:
        failure.trap(ExpectedFailure)
        self._note(failure.getErrorMessage())

    def _note(self, problem: str) -> None:
        self._began = None
        self._conditions.set(STORE, problem)


def _silence(worker: Worker) -> str:
    is_silent = worker.silence >= LONGEST_SILENCE
    return f"no answer for {worker.silence:.0f} s" if is_silent else ""
