"""A lane that learns its work before there is any: importing it takes a process a while."""

from collections.abc import Callable
from typing import TypeVar

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailcheck.operations.ports import Lane

Result = TypeVar("Result")


class WarmedLane:
    """Runs one call as soon as the lane has started; what comes of it is not asked."""

    _log = Logger()

    def __init__(self, lane: Lane, first_call: Callable[[], object]) -> None:
        self._lane = lane
        self._first_call = first_call

    def run(self, call: Callable[[], Result]) -> Deferred[Result]:
        """Run the call in the lane."""
        return self._lane.run(call)

    def start(self) -> None:
        """Start the lane, and have it run the first call."""
        self._lane.start()
        self._lane.run(self._first_call).addErrback(self._log_failure)

    def stop(self) -> Deferred[None] | None:
        """Stop the lane."""
        return self._lane.stop()

    def _log_failure(self, failure: Failure) -> None:
        # Whatever is wrong will be met again by the first real call, and told to who made it.
        self._log.warn("a lane could not be warmed up: {reason}", reason=failure.getErrorMessage())
