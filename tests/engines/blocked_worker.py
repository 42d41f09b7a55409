"""A worker whose calls, or their answers, wait until the test lets them go, in any order."""

from collections.abc import Callable
from typing import TypeVar

from twisted.internet.defer import Deferred

from mailcheck.workers.scheduling import DirectWorker

Result = TypeVar("Result")


class HeldWorker(DirectWorker):
    """Runs calls at once, until it is told to hold them.

    ``held`` are the calls that wait, oldest first: calling one lets it go.
    """

    def __init__(self) -> None:
        self.held: list[Callable[[], object]] = []
        self.calls = 0
        self._is_holding_calls = False
        self._is_holding_answers = False

    def hold_calls(self) -> None:
        """Begin no call from now on."""
        self._is_holding_calls, self._is_holding_answers = True, False

    def hold_answers(self) -> None:
        """Run calls from now on, but do not answer."""
        self._is_holding_calls, self._is_holding_answers = False, True

    def let_go(self) -> None:
        """Run and answer what was held, and what comes of it, in order; then hold nothing more."""
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
