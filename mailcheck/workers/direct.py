"""A worker without threads: for the command line, and for tests."""

from collections.abc import Callable
from typing import TypeVar

from twisted.internet.defer import Deferred, maybeDeferred

Result = TypeVar("Result")


class DirectWorker:
    """Runs calls at once."""

    def run(self, call: Callable[[], Result], owner: str = "") -> Deferred[Result]:
        """Run the call now."""
        return maybeDeferred(call)

    def start(self) -> None:
        """Nothing to start."""

    def stop(self) -> None:
        """Nothing to stop."""
