"""A worker that learns its work before there is any: importing it takes a process a while."""

from collections.abc import Callable
from typing import TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailcheck.operations.ports import Worker

Result = TypeVar("Result")


class WarmedWorker:
    """Starts with the first call it gets, or by itself some seconds after its start.

    The processor belongs to the daemon until that is ready. Then one call is
    run; what comes of it is not asked.
    """

    _log = Logger()

    def __init__(
        self, worker: Worker, first_call: Callable[[], object], clock: IReactorTime, seconds: float
    ) -> None:
        self._worker = worker
        self._first_call = first_call
        self._clock = clock
        self._seconds = seconds
        self._timer: IDelayedCall | None = None

    def run(self, call: Callable[[], Result]) -> Deferred[Result]:
        """Run the call in the worker."""
        return self._worker.run(call)

    def start(self) -> None:
        """Have the worker run the first call in a while."""
        self._timer = self._clock.callLater(self._seconds, self._warm_up)

    def stop(self) -> Deferred[None] | None:
        """Stop the worker."""
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        return self._worker.stop()

    def _warm_up(self) -> None:
        self._worker.run(self._first_call).addErrback(self._log_failure)

    def _log_failure(self, failure: Failure) -> None:
        # Whatever is wrong will be met again by the first real call, and told to who made it.
        self._log.warn(
            "a worker could not be warmed up: {reason}", reason=failure.getErrorMessage()
        )
