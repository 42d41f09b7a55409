"""A worker that is measured: how long its calls take, and how many it has."""

from collections.abc import Callable
from typing import Any, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from mailcheck.core.instruments import SECONDS, Distribution
from mailcheck.ports.workers import Worker

Result = TypeVar("Result")


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
