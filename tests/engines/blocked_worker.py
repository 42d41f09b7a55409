"""A worker whose calls, or their answers, wait for the test."""

from collections.abc import Callable
from typing import TypeVar

from twisted.internet.defer import Deferred

from mailcheck.workers.scheduling import DirectWorker

Result = TypeVar("Result")


class BlockedWorker(DirectWorker):
    """Runs calls at once, until the test holds them.

    ``held`` contains the waiting calls, oldest first; calling one runs it.
    """

    def __init__(self) -> None:
        self.held: list[Callable[[], object]] = []
        self.calls = 0
        self._is_holding_calls = False
        self._is_holding_answers = False

    def hold_calls(self) -> None:
        """Hold all further calls."""
        self._is_holding_calls, self._is_holding_answers = True, False

    def hold_answers(self) -> None:
        """Run further calls, and hold their answers."""
        self._is_holding_calls, self._is_holding_answers = False, True

    def let_go(self) -> None:
        """Run what is held, in order, including new calls; then hold no more."""
        while self.held:
            self.held.pop(0)()
        self._is_holding_calls = self._is_holding_answers = False

    def run(self, call: Callable[[], Result], owner: str = "") -> Deferred[Result]:
        """Run the call, now or later."""
        self.calls += 1
        if not (self._is_holding_calls or self._is_holding_answers):
            return super().run(call)
        done: Deferred[Result] = Deferred()
        answer = super().run(call) if self._is_holding_answers else None

        def go() -> None:
            (answer or DirectWorker.run(self, call)).chainDeferred(done)

        self.held.append(go)
        return done
