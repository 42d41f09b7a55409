"""Concurrency helpers: running coroutines together, single-flight, pacing and batching.

Work that is not urgent waits while mail is being received, since its senders wait for a reply.
"""

import math
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar, TypeVarTuple

from msgspec import Struct, field
from twisted.internet.defer import CancelledError, Deferred, ensureDeferred, gatherResults
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailcheck.core.errors import ExpectedFailure, StoreFull
from mailcheck.ports.clocks import CallSoon


async def run_all(*coroutines: Coroutine[Any, Any, Any]) -> list[Any]:
    """Run coroutines concurrently and return their results in order.

    If one fails or the caller is cancelled, the others are cancelled and awaited, and the first
    failure is raised. `gatherResults` alone would let the others continue.
    """
    running = [Deferred.fromCoroutine(coroutine) for coroutine in coroutines]
    try:
        return await gatherResults(running, consumeErrors=True)
    except BaseException as failure:
        for deferred in running:
            deferred.cancel()
        raise getattr(getattr(failure, "subFailure", None), "value", failure) from None


Key = TypeVar("Key")
Result = TypeVar("Result")
Inputs = TypeVarTuple("Inputs")


class _Call(Struct, Generic[Result]):
    """A running call and the callers that wait for it."""

    waiting: list[Deferred[Result]] = field(default_factory=list)
    work: Deferred[Result] | None = None


class SingleFlight(Generic[Key, Result, *Inputs]):
    """Runs one call per key at a time. Concurrent callers with the same key share its result.

    The function receives the key and the further inputs of the first caller. Cancelling one caller
    does not affect the others. An unexpected failure without a waiting caller is logged.

    :param cancels_unwanted: whether a call is cancelled when its last caller has gone.
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
        """Call the function, or join the call that is already running."""
        call = self._under_way.get(key)
        if call is not None:
            return self._join(call)
        work = self._function(key, *inputs)  # a function that is not a coroutine may raise
        call = self._under_way[key] = _Call()
        mine = self._join(call)
        call.work = ensureDeferred(work)
        call.work.addBoth(self._answer, key, call)
        return mine

    def stop(self) -> None:
        """Cancel all running calls."""
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
                self._log.failure("A call without waiting callers failed", result)
            return
        while call.waiting:
            call.waiting.pop(0).callback(result)


REST = 0.01
"""Minimum seconds between two calls. Each call takes some milliseconds."""

REST_SHARE = 3.0
"""Seconds of pause for each second that a call took, so that paced calls use at most a quarter of
the reactor's time."""


def stop_timer(timer: IDelayedCall | None) -> None:
    """Cancel a delayed call, if there is one that has not been made."""
    if timer is not None and timer.active():
        timer.cancel()


class PacedCall(Struct, eq=False):
    """A call in a `PacedQueue`, which can be cancelled."""

    action: Callable[[], None] | None

    def cancel(self) -> None:
        """Cancel the call. Does nothing if it has run or is cancelled already."""
        self.action = None


class PacedQueue:
    """Runs calls in order, with a pause between two of them."""

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self._waiting: deque[PacedCall] = deque()

    def call(self, action: Callable[[], None]) -> PacedCall:
        """Add a call to the queue."""
        turn = PacedCall(action)
        self._waiting.append(turn)
        if len(self._waiting) == 1:
            self._clock.callLater(0, self._take)
        return turn

    def wait(self) -> Deferred[None]:
        """Return a Deferred that fires in its turn. Its callbacks are the paced work."""
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
"""Seconds without new mail after which the daemon counts as idle."""


GATHERING = 0.008
"""Maximum seconds that a write waits for mails that are being received. A commit costs about the
same for one mail and for ten."""

STEP = 0.001
"""Seconds within which one of these mails must make progress. Writes do not wait for a slow
client."""


class MailTraffic:
    """Tracks the mails that are being received, the last stored mail, and bursts of mail.

    :param soon: calls a function after all other events of this reactor turn.
    """

    def __init__(self, clock: IReactorTime, call_soon: CallSoon) -> None:
        self._clock = clock
        self._call_soon = call_soon
        self._newest_at = -math.inf
        self._burst_began_at = -math.inf
        self._arriving: set[object] = set()
        self._moved_at = -math.inf
        self._held: list[Callable[[], object]] = []
        self._held_since = 0.0
        self._will_look_again = False

    def note_progress(self, mail: object) -> None:
        """Record that a mail is being received, or has made progress."""
        self._arriving.add(mail)
        self._moved_at = self._clock.seconds()

    def note_end(self, mail: object) -> None:
        """Record that a mail was received completely or was given up."""
        self._arriving.discard(mail)
        if not self._arriving:
            self._stop_waiting()

    def call_batched(self, call: Callable[[], object]) -> None:
        """Call a function soon; during a burst, when its mails have arrived or are stalled.

        The work of the burst is then done as one batch.
        """
        self._held.append(call)
        if len(self._held) == 1:
            self._held_since = self._clock.seconds()
            self._call_soon(self._look)

    def flush(self) -> None:
        """Run the batch now: a client waits for its result."""
        self._held_since = -math.inf
        self._stop_waiting()

    def _stop_waiting(self) -> None:
        # If no call is delayed, the first `_look` is still scheduled.
        if self._will_look_again:
            self._call_soon(self._look)

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
        """Record that a mail was stored."""
        now = self._clock.seconds()
        if not 0 <= now - self._newest_at < QUIET:
            self._burst_began_at = now
        self._newest_at = now

    @property
    def is_busy(self) -> bool:
        """Whether mail is being received."""
        return self.seconds_until_idle() > 0

    def seconds_until_idle(self, longest: float = math.inf) -> float:
        """Return the seconds until the daemon counts as idle if no more mail arrives; 0 is now.

        A burst of more than ``longest`` seconds counts as over, as does one after which the
        clock was set back.
        """
        now = self._clock.seconds()
        # Compare moments: the difference of two large floats may never become zero.
        quiet_at = min(self._newest_at + QUIET, self._burst_began_at + longest)
        return quiet_at - now if self._newest_at <= now < quiet_at else 0.0


async def delete_in_batches(delete: Callable[[int], Awaitable[int]], limit: int) -> int:
    """Delete rows in batches until none is left, and return their number.

    :param delete: deletes up to a number of rows in one transaction, and returns how many.
    :param limit: the batch size. It shrinks while the disk is too full for the transaction.
    :raises StoreFull: the disk has no space to delete even a single row.
    """
    deleted = 0
    while True:
        try:
            count = await delete(limit)
        except StoreFull:
            if limit == 1:
                raise
            limit = smaller_batch(limit)
            continue
        deleted += count
        if count < limit:
            return deleted


def smaller_batch(limit: int) -> int:
    """Return the next smaller batch size to try when the disk is full; at least 1."""
    return max(1, limit // 8)
