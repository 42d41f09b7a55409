"""A worker that hands calls to a process one by one.

A mail that somebody has made to be slow, or a library that never comes back,
costs its own call and no other.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, DeferredLock, maybeDeferred

from mailcheck.workers.process import ProcessWorker

Result = TypeVar("Result")


class SerialWorker:
    """Gives each call to the process when the one before it has ended.

    Calls that wait stay here: a child that dies, or is replaced since a call took too long,
    fails the one it was at and no other, and who gives up waiting takes his call back.
    """

    def __init__(self, worker: ProcessWorker) -> None:
        self._worker = worker
        self._turn = DeferredLock()

    def start(self) -> None:
        """Start the child ahead of the first call."""
        self._worker.start()

    def run(self, call: Callable[[], Result]) -> Deferred[Result]:
        """Run the call when its turn comes; it, and what it gives or raises, can be pickled.

        Cancelled before that it is never run; afterwards only its answer is given up.

        :raises WorkerDied: the child has died, or was killed since the call took too long.
        :raises StoreUnavailable: the worker has been stopped.
        """
        return self._turn.acquire().addCallback(self._begin, call)

    def stop(self) -> Deferred[None]:
        """Let the child finish what was given to it, and end; fires when it has ended."""
        return self._turn.run(self._worker.stop)

    def _begin(self, _: object, call: Callable[[], Result]) -> Deferred[Result]:
        answer: Deferred[Result] = Deferred()
        maybeDeferred(self._worker.run, call).addBoth(self._end, answer)
        return answer

    def _end(self, result: Any, answer: Deferred[Any]) -> None:
        self._turn.release()
        if not answer.called:
            answer.callback(result)
