"""A worker that can be slow or fail, like a disk."""

from collections.abc import Callable
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, fail, maybeDeferred

from mailcheck.workers.scheduling import DirectWorker

Result = TypeVar("Result")


class FaultyWorker(DirectWorker):
    """Runs calls at once, unless a test makes it delay or fail them.

    The next ``good_calls`` calls succeed even then.
    """

    def __init__(self) -> None:
        self.fault: Exception | None = None
        self.is_slow = False
        self.good_calls = 0
        self.calls = 0
        self._held: list[tuple[Callable[[], Any], Deferred[Any]]] = []

    def run(self, call: Callable[[], Result], owner: str = "") -> Deferred[Result]:
        """Run the call now or later, or fail."""
        self.calls += 1
        if self.good_calls or not (self.fault or self.is_slow):
            self.good_calls -= bool(self.good_calls)
            return maybeDeferred(call)
        if self.fault is not None:
            return fail(self.fault)
        done: Deferred[Result] = Deferred()
        self._held.append((call, done))
        return done

    def catch_up(self) -> None:
        """Run the delayed calls, and be fast again."""
        self.is_slow = False
        held, self._held = self._held, []
        for call, done in held:
            if not done.called:  # by a canceller
                maybeDeferred(call).chainDeferred(done)
