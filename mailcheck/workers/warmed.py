"""A worker that learns its work before there is any: importing it takes a process a while."""

from collections.abc import Callable
from typing import TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailcheck.ports.workers import Worker

Result = TypeVar("Result")


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
