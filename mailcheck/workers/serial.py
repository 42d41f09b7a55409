"""A worker that hands calls to a process one by one.

A mail that somebody has made to be slow, or a library that never comes back,
costs its own call and no other. An account that has many such mails holds up itself.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from twisted.internet.defer import Deferred, fail, maybeDeferred

from mailcheck.core.errors import StoreUnavailable
from mailcheck.workers.process import ProcessWorker

Result = TypeVar("Result")


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
