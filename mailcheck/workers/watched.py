"""A worker whose calls have to end: the process that does not come to one is replaced.

A mail that somebody has made to be slow, or a library that never comes back,
would hold up all the mails behind it.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, DeferredLock, maybeDeferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from mailcheck.workers.process import ProcessWorker

Result = TypeVar("Result")


class WatchedWorker:
    """Hands calls to a process one by one; ``seconds`` is what each may take.

    Calls that wait stay here: a child that dies fails the one it was at and
    no other, and who gives up waiting takes his call back.
    """

    _log = Logger()

    def __init__(self, worker: ProcessWorker, clock: IReactorTime, seconds: float) -> None:
        self._worker = worker
        self._clock = clock
        self._seconds = seconds
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
        timer = self._clock.callLater(self._seconds, self._give_up)
        maybeDeferred(self._worker.run, call).addBoth(self._end, answer, timer)
        return answer

    def _end(self, result: Any, answer: Deferred[Any], timer: IDelayedCall) -> None:
        if timer.active():
            timer.cancel()
        self._turn.release()
        if not answer.called:
            answer.callback(result)

    def _give_up(self) -> None:
        self._log.error("a call took over {seconds} seconds", seconds=self._seconds)
        self._worker.kill()
