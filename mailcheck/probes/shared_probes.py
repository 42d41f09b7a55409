"""One probe for all who ask the same at the same time, and a memory of what came of it."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Generic

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IReactorTime

from mailcheck.core.instants import Instant, instant_of
from mailcheck.operations.recent import Key, Recent, Value
from mailcheck.operations.sharing_calls import SharedCalls


@dataclass(frozen=True, slots=True)
class Bounds:
    """``remembered`` results for ``freshness`` milliseconds; ``at_once`` probes under way."""

    freshness: int
    remembered: int = 10_000
    at_once: int = 100


class SharedProbes(Generic[Key, Value]):
    """Runs probes by key.

    :param run: does the work; it ends by itself, within its own deadline.
    :param is_worth_keeping: tells whether a result is remembered.
    :param when_busy: the result where too many probes are under way.
    """

    def __init__(
        self,
        clock: IReactorTime,
        bounds: Bounds,
        run: Callable[[Key], Coroutine[Deferred[Any], Any, Value]],
        *,
        is_worth_keeping: Callable[[Value], bool],
        when_busy: Callable[[Key], Value],
    ) -> None:
        self._clock = clock
        self._bounds = bounds
        self._run = run
        self._running = SharedCalls(self._probe)
        self._is_worth_keeping = is_worth_keeping
        self._when_busy = when_busy
        self._results: Recent[Key, Value] = Recent(bounds.remembered, bounds.freshness)

    def get(self, key: Key) -> Deferred[Value]:
        """Give the result: remembered, of the probe under way, or of a new one."""
        remembered = self.remembered(key)
        if remembered is not None:
            return succeed(remembered)
        if key not in self._running and len(self._running) >= self._bounds.at_once:
            return succeed(self._when_busy(key))
        return self._running.call(key)

    def remembered(self, key: Key) -> Value | None:
        """Give what is remembered."""
        return self._results.get(key, self._now())

    def remember(self, key: Key, value: Value) -> None:
        """Keep what was learned otherwise."""
        self._results.put(key, value, self._now())

    def stop(self) -> None:
        """Cancel all that is under way."""
        self._running.stop()

    async def _probe(self, key: Key) -> Value:
        result = await self._run(key)
        if self._is_worth_keeping(result):
            self.remember(key, result)
        return result

    def _now(self) -> Instant:
        return instant_of(self._clock.seconds())
