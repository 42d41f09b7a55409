"""Workers that control when and in which order calls run: directly, serially, measured, warmed.

With `SerialWorker`, a slow mail or a library that hangs delays only its own call. An account with
many such mails delays only its own calls.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from twisted.internet.defer import Deferred, fail, maybeDeferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailcheck.core.errors import StoreUnavailable
from mailcheck.core.memory.instruments import SECONDS, Distribution
from mailcheck.operations.concurrency import stop_timer
from mailcheck.ports.workers import Worker
from mailcheck.workers.process import ProcessWorker

Result = TypeVar("Result")


class DirectWorker:
    """A worker without threads, for the command line and for tests."""

    def run(self, call: Callable[[], Result], owner: str = "") -> Deferred[Result]:
        """Run the call now."""
        return maybeDeferred(call)

    def start(self) -> None:
        """Do nothing."""

    def stop(self) -> None:
        """Do nothing."""


class _Waiting(NamedTuple):
    """A queued call."""

    call: Callable[[], Any]
    answer: Deferred[Any]


class SerialWorker:
    """Passes calls to a process one by one.

    Owners take turns; the calls of one owner run in order. Queued calls stay in this
    process. If the child dies or is killed after a timeout, only the running call
    fails. Cancelling removes a call from the queue.
    """

    def __init__(self, worker: ProcessWorker) -> None:
        self._worker = worker
        self._queues: dict[str, deque[_Waiting]] = {}  # in the order of the owners' turns
        self._is_busy = False
        self._stopped: Deferred[None] | None = None

    def start(self) -> None:
        """Do nothing, since the child is started with the first call."""

    def run(self, call: Callable[[], Result], owner: str = "") -> Deferred[Result]:
        """Queue the call. The call, its result and its exceptions must be picklable.

        Cancelling a queued call removes it. Cancelling a running call only drops its result.

        :raises WorkTooSlow: the call exceeded the timeout.
        :raises WorkerDied: the child has died.
        :raises StoreUnavailable: the worker was stopped.
        """
        if self._stopped is not None:
            return fail(StoreUnavailable("the worker was stopped"))
        waiting: _Waiting = _Waiting(call, Deferred(lambda _: self._take_back(owner, waiting)))
        self._queues.setdefault(owner, deque()).append(waiting)
        self._begin_next()
        return waiting.answer

    def stop(self) -> Deferred[None]:
        """Let the child finish the queued calls and end. Fires when it has ended."""
        if self._stopped is None:
            self._stopped = Deferred()
            self._begin_next()
        return self._stopped

    def _take_back(self, owner: str, waiting: _Waiting) -> None:
        queue = self._queues.get(owner, deque())
        if waiting in queue:
            queue.remove(waiting)
            if not queue:
                del self._queues[owner]

    def _begin_next(self) -> None:
        if self._is_busy:
            return
        self._is_busy = True
        if self._queues:
            waiting = self._next()
            maybeDeferred(self._worker.run, waiting.call).addBoth(self._end, waiting.answer)
        elif self._stopped is not None:
            self._worker.stop().chainDeferred(self._stopped)
        else:
            self._is_busy = False

    def _next(self) -> _Waiting:
        """Return the first call of the next owner, and move the owner to the end."""
        owner = next(iter(self._queues))
        queue = self._queues.pop(owner)
        waiting = queue.popleft()
        if queue:
            self._queues[owner] = queue
        return waiting

    def _end(self, result: Any, answer: Deferred[Any]) -> None:
        self._is_busy = False
        if not answer.called:
            answer.callback(result)
        self._begin_next()


class MeasuredWorker:
    """Measures the calls of another worker.

    ``seconds`` is the distribution of times from a call to its result, including the
    time in the queue. ``under_way`` is the number of calls without a result.
    """

    def __init__(self, worker: Worker, clock: IReactorTime) -> None:
        self._worker = worker
        self._clock = clock
        self.seconds = Distribution(SECONDS)
        self.under_way = 0

    def start(self) -> None:
        """Start the worker."""
        self._worker.start()

    def stop(self) -> Deferred[None] | None:
        """Stop the worker."""
        return self._worker.stop()

    def run(self, call: Callable[[], Result], owner: str = "") -> Deferred[Result]:
        """Run the call in the worker."""
        self.under_way += 1
        return self._worker.run(call, owner).addBoth(self._note, self._clock.seconds())

    def _note(self, result: Any, began: float) -> Any:
        self.under_way -= 1
        self.seconds.observe(self._clock.seconds() - began)
        return result


class WarmedWorker:
    """Runs a first call some seconds after the start, to warm the worker up.

    The delay leaves the processor to the daemon until it is ready. The result is ignored.

    :param after: another worker. The delay begins with the first call that it runs.
    """

    _log = Logger()

    def __init__(
        self,
        worker: Worker,
        first_call: Callable[[], object],
        clock: IReactorTime,
        seconds: float,
        after: "WarmedWorker | None" = None,
    ) -> None:
        self._worker = worker
        self._first_call: Callable[[], object] | None = first_call
        self._clock = clock
        self._seconds = seconds
        self._timer: IDelayedCall | None = None
        self._followers: list[WarmedWorker] = []
        self._follows = after is not None
        if after is not None:
            after._followers.append(self)

    def run(self, call: Callable[[], Result], owner: str = "") -> Deferred[Result]:
        """Run the call in the worker."""
        while self._followers:
            self._followers.pop()._wait()
        return self._worker.run(call, owner)

    def start(self) -> None:
        """Schedule the first call."""
        if not self._follows:
            self._wait()

    def stop(self) -> Deferred[None] | None:
        """Stop the worker."""
        self._first_call = None
        stop_timer(self._timer)
        return self._worker.stop()

    def _wait(self) -> None:
        if self._first_call is not None:
            self._timer = self._clock.callLater(self._seconds, self._warm_up, self._first_call)

    def _warm_up(self, call: Callable[[], object]) -> None:
        self._worker.run(call).addErrback(self._log_failure)

    def _log_failure(self, failure: Failure) -> None:
        # The first real call will meet the same failure and report it to its caller.
        self._log.warn(
            "a worker could not be warmed up: {reason}", reason=failure.getErrorMessage()
        )
