"""Doing things side by side: several at once, one call for all who ask, a piece in each turn.

What can wait waits while mail is coming in: its senders wait for a reply.
"""

import math
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, TypeVarTuple

from twisted.internet.defer import CancelledError, Deferred, ensureDeferred, gatherResults
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailcheck.core.errors import ExpectedFailure, StoreFull
from mailcheck.ports.clocks import Soon


async def run_all(*coroutines: Coroutine[Any, Any, Any]) -> list[Any]:
    """Run all at the same time; gives their results in order.

    When one fails, or the caller is cancelled, the others are cancelled and
    their end is awaited; the failure that came first is raised.
    `gatherResults` alone lets the others run on.
    """
    running = [Deferred.fromCoroutine(coroutine) for coroutine in coroutines]
    try:
        return await gatherResults(running, consumeErrors=True)
    except BaseException as failure:
        for one in running:
            one.cancel()
        raise getattr(getattr(failure, "subFailure", None), "value", failure) from None


Key = TypeVar("Key")
Result = TypeVar("Result")
Inputs = TypeVarTuple("Inputs")


@dataclass(slots=True)
class _Call(Generic[Result]):
    """A call under way, and all who wait for it."""

    waiting: list[Deferred[Result]] = field(default_factory=list)
    work: Deferred[Result] | None = None


class SingleFlight(Generic[Key, Result, *Inputs]):
    """Merges calls with the same key while one is under way.

    The function is called with the key and the further inputs of the first caller.

    A caller that is cancelled leaves the others alone. A fault of ours that nobody
    waits for any more is logged.

    :param cancels_unwanted: a call that nobody waits for any more is cancelled; else
        it goes on.
    """

    _log = Logger()

    def __init__(
        self,
        function: Callable[[Key, *Inputs], Coroutine[Any, Any, Result] | Deferred[Result]],
        *,
        cancels_unwanted: bool = False,
    ) -> None:
        self._function = function
        self._ends_unwanted = cancels_unwanted
        self._under_way: dict[Key, _Call[Result]] = {}

    def __len__(self) -> int:
        return len(self._under_way)

    def __contains__(self, key: Key) -> bool:
        return key in self._under_way

    def call(self, key: Key, *inputs: *Inputs) -> Deferred[Result]:
        """Call the function, or join the call that is under way."""
        call = self._under_way.get(key)
        if call is not None:
            return self._join(call)
        work = self._function(key, *inputs)  # a function that is no coroutine may raise
        call = self._under_way[key] = _Call()
        mine = self._join(call)
        call.work = ensureDeferred(work)
        call.work.addBoth(self._answer, key, call)
        return mine

    def stop(self) -> None:
        """Cancel all that is under way."""
        for call in list(self._under_way.values()):
            if call.work is not None:
                call.work.cancel()

    def _join(self, call: _Call[Result]) -> Deferred[Result]:
        def leave(joined: Deferred[Result]) -> None:
            call.waiting.remove(joined)
            if self._ends_unwanted and not call.waiting and call.work is not None:
                call.work.cancel()

        joined: Deferred[Result] = Deferred(leave)
        call.waiting.append(joined)
        return joined

    def _answer(self, result: Result | Failure, key: Key, call: _Call[Result]) -> None:
        del self._under_way[key]
        if not call.waiting and isinstance(result, Failure):
            if not result.check(CancelledError, ExpectedFailure):
                self._log.failure("What nobody waited for any more failed", result)
            return
        while call.waiting:
            call.waiting.pop(0).callback(result)


REST = 0.01
"""Seconds between two pieces at least: each takes some milliseconds."""

REST_SHARE = 3.0
"""Seconds of rest for each second that a piece took: all of them have a quarter of the reactor."""


class PacedCall:
    """A piece of work that is done some time, unless it is cancelled."""

    __slots__ = ("action",)

    def __init__(self, action: Callable[[], None]) -> None:
        self.action: Callable[[], None] | None = action

    def cancel(self) -> None:
        """Do nothing; harmless when it was done or cancelled already."""
        self.action = None


class PacedQueue:
    """Does pieces of work in the order in which they came, with a rest between two."""

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self._waiting: deque[PacedCall] = deque()

    def call(self, action: Callable[[], None]) -> PacedCall:
        """Have an action called in a turn of its own."""
        turn = PacedCall(action)
        self._waiting.append(turn)
        if len(self._waiting) == 1:
            self._clock.callLater(0, self._take)
        return turn

    def wait(self) -> Deferred[None]:
        """Fire in a turn of its own; what hangs on it is the piece of work."""
        waiting: Deferred[None] = Deferred(lambda _: turn.cancel())
        turn = self.call(lambda: waiting.callback(None))
        return waiting

    def _take(self) -> None:
        action = None
        while self._waiting and action is None:
            action = self._waiting[0].action
            if action is None:
                self._waiting.popleft()
        if action is None:
            return
        began = self._clock.seconds()
        try:
            action()
        finally:
            self._waiting.popleft()
            if self._waiting:
                took = self._clock.seconds() - began
                self._clock.callLater(max(REST, REST_SHARE * took), self._take)


QUIET = 0.05
"""Seconds without new mail after which the machine counts as idle."""


GATHERING = 0.008
"""Seconds at most for which what is to be written waits for mails that are coming in. A commit
costs much the same for one mail and for ten."""

STEP = 0.001
"""Seconds in which one of these has to come a step further: nobody waits for a client that takes
its time."""


class MailTraffic:
    """Knows which mail is coming in, when the last came, and since when without a pause.

    :param soon: calls after all that the reactor has found to do.
    """

    def __init__(self, clock: IReactorTime, soon: Soon) -> None:
        self._clock = clock
        self._soon = soon
        self._newest_at = -math.inf
        self._burst_began_at = -math.inf
        self._arriving: set[object] = set()
        self._moved_at = -math.inf
        self._held: list[Callable[[], object]] = []
        self._held_since = 0.0
        self._will_look_again = False

    def note_progress(self, mail: object) -> None:
        """Take note that a mail is coming in, or has come a step further."""
        self._arriving.add(mail)
        self._moved_at = self._clock.seconds()

    def note_end(self, mail: object) -> None:
        """Take note that it is there, or will not come."""
        self._arriving.discard(mail)
        if not self._arriving:
            self._stop_waiting()

    def call_batched(self, call: Callable[[], object]) -> None:
        """Call soon; where mails are coming in, when all are there or none comes any further.

        What all of them ask for is done together then.
        """
        self._held.append(call)
        if len(self._held) == 1:
            self._held_since = self._clock.seconds()
            self._soon(self._look)

    def flush(self) -> None:
        """Wait for no more of it: somebody waits for what was asked for."""
        self._held_since = -math.inf
        self._stop_waiting()

    def _stop_waiting(self) -> None:
        # Where nothing is put off, the first look is still to come.
        if self._will_look_again:
            self._soon(self._look)

    def _look(self) -> None:
        now = self._clock.seconds()
        if self._arriving and now < min(self._moved_at + STEP, self._held_since + GATHERING):
            if not self._will_look_again:
                self._will_look_again = True
                self._clock.callLater(STEP, self._look_again)
            return
        held, self._held = self._held, []
        for call in held:
            call()

    def _look_again(self) -> None:
        self._will_look_again = False
        if self._held:
            self._look()

    def note_stored(self) -> None:
        """Take note of a mail that has just been stored."""
        now = self._clock.seconds()
        if not 0 <= now - self._newest_at < QUIET:
            self._burst_began_at = now
        self._newest_at = now

    @property
    def is_busy(self) -> bool:
        """Tell whether mail is coming in."""
        return self.seconds_until_idle() > 0

    def seconds_until_idle(self, longest: float = math.inf) -> float:
        """Say when the machine counts as idle unless more comes in: 0 is now.

        A burst that lasts for ``longest`` seconds is waited for no more. A
        clock that was set back ends it, too.
        """
        now = self._clock.seconds()
        # Compared as moments: of a difference of large numbers there may be a rest for ever.
        quiet_at = min(self._newest_at + QUIET, self._burst_began_at + longest)
        return quiet_at - now if self._newest_at <= now < quiet_at else 0.0


async def delete_in_batches(remove: Callable[[int], Awaitable[int]], most: int) -> int:
    """Remove until nothing is left, at most ``most`` at a time; gives how many were removed.

    :param remove: removes at most so many in one transaction, and gives how many.
    :raises StoreFull: the disk has no room to remove a single one.
    """
    removed = 0
    while True:
        try:
            count = await remove(most)
        except StoreFull:
            if most == 1:
                raise
            most = fewer(most)
            continue
        removed += count
        if count < most:
            return removed


def fewer(most: int) -> int:
    """Say how many to try where so many were too many for a full disk; one in the end."""
    return max(1, most // 8)
