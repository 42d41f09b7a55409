"""When and in which order workers run calls: at once, one by one, after a warm-up, measured.

`SerialWorker` keeps a slow mail, or a library that never returns, from delaying more than its own
call. An account that has many such mails delays its own calls only.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from twisted.internet.defer import Deferred, fail, maybeDeferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailcheck.core.errors import StoreUnavailable
from mailcheck.core.instruments import SECONDS, Distribution
from mailcheck.ports.workers import Worker
from mailcheck.workers.process import ProcessWorker

Result = TypeVar("Result")


class DirectWorker:
    """A worker without threads, for the command line and for tests."""

    def run(self, call: Callable[[], Result], owner: str = "") -> Deferred[Result]:
        """Run the call now."""
        return maybeDeferred(call)

    def start(self) -> None:
        """Nothing to start."""

    def stop(self) -> None:
        """Nothing to stop."""


class _Waiting(NamedTuple):
    """A call whose turn has not come."""

    call: Callable[[], Any]
    answer: Deferred[Any]


class SerialWorker:
    """Gives each call to the process when the one before it has ended.

    Owners take turns; the calls of one owner run in order. Calls that wait stay here: a child
    that dies, or is replaced since a call took too long, fails the call that it was at and no
    other. A caller that gives up waiting takes its call back.
    """

    def __init__(self, worker: ProcessWorker) -> None:
        self._worker = worker
        self._queues: dict[str, deque[_Waiting]] = {}  # the next owner comes first
        self._is_busy = False
        self._stopped: Deferred[None] | None = None

    def start(self) -> None:
        """Start the child ahead of the first call."""
        self._worker.start()

    def run(self, call: Callable[[], Result], owner: str = "") -> Deferred[Result]:
        """Run the call when its turn comes; it, and what it gives or raises, can be pickled.

        Cancelled before that it is never run; afterwards only its answer is given up.

        :raises WorkTooSlow: the call took longer than it may.
        :raises WorkerDied: the child has died.
        :raises StoreUnavailable: the worker has been stopped.
        """
        if self._stopped is not None:
            return fail(StoreUnavailable("the worker has been stopped"))
        waiting: _Waiting = _Waiting(call, Deferred(lambda _: self._take_back(owner, waiting)))
        self._queues.setdefault(owner, deque()).append(waiting)
        self._begin_next()
        return waiting.answer

    def stop(self) -> Deferred[None]:
        """Let the child finish what was given to this worker, and end; fires when it has ended."""
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
        """Take the first call of the next owner, who is the last one then."""
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
    """Hands every call on.

    ``seconds`` counts from when a call is given to its answer, the time in the
    queue included; ``under_way`` is how many have none yet.
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
    """Starts with the first call it gets, or by itself some seconds after its start.

    The processor belongs to the daemon until that is ready. Then one call is
    run; what comes of it is not asked. Without a first call it waits for those of others.

    :param after: another worker, for whose first call it waits before it counts the seconds.
    """

    _log = Logger()

    def __init__(
        self,
        worker: Worker,
        first_call: Callable[[], object] | None,
        clock: IReactorTime,
        seconds: float,
        after: "WarmedWorker | None" = None,
    ) -> None:
        self._worker = worker
        self._first_call = first_call
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
        """Have the worker run the first call in a while."""
        if not self._follows:
            self._wait()

    def stop(self) -> Deferred[None] | None:
        """Stop the worker."""
        self._first_call = None
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        return self._worker.stop()

    def _wait(self) -> None:
        if self._first_call is not None:
            self._timer = self._clock.callLater(self._seconds, self._warm_up, self._first_call)

    def _warm_up(self, call: Callable[[], object]) -> None:
        self._worker.run(call).addErrback(self._log_failure)

    def _log_failure(self, failure: Failure) -> None:
        # Whatever is wrong will be met again by the first real call, and told to who made it.
        self._log.warn(
            "a worker could not be warmed up: {reason}", reason=failure.getErrorMessage()
        )
