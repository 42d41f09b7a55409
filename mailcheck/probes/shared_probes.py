"""One probe for all who ask the same at the same time, and a memory of what came of it."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Generic

from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailcheck.core.instants import Instant, instant_of
from mailcheck.operations.recent import Key, Recent, Value


@dataclass(frozen=True, slots=True)
class Bounds:
    """``remembered`` results for ``freshness`` milliseconds; ``at_once`` probes under way."""

    freshness: int
    remembered: int = 10_000
    at_once: int = 100


@dataclass(slots=True)
class _Probe(Generic[Value]):
    """A probe under way, and all who wait for it."""

    waiting: list[Deferred[Value]] = field(default_factory=list)
    work: Deferred[Value] | None = None


class SharedProbes(Generic[Key, Value]):
    """Runs probes by key.

    :param run: does the work; it ends by itself, within its own deadline.
    :param is_worth_keeping: tells whether a result is remembered.
    :param when_busy: the result where too many probes are under way.
    """

    _log = Logger()

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
        self._is_worth_keeping = is_worth_keeping
        self._when_busy = when_busy
        self._results: Recent[Key, Value] = Recent(bounds.remembered, bounds.freshness)
        self._running: dict[Key, _Probe[Value]] = {}

    def get(self, key: Key) -> Deferred[Value]:
        """Give the result: remembered, of the probe under way, or of a new one."""
        remembered = self.remembered(key)
        if remembered is not None:
            return succeed(remembered)
        probe = self._running.get(key)
        if probe is not None:
            return self._join(probe)
        if len(self._running) >= self._bounds.at_once:
            return succeed(self._when_busy(key))
        probe = self._running[key] = _Probe()
        result = self._join(probe)
        probe.work = Deferred.fromCoroutine(self._run(key))
        probe.work.addBoth(self._finish, key, probe)
        return result

    def remembered(self, key: Key) -> Value | None:
        """Give what is remembered."""
        return self._results.get(key, self._now())

    def remember(self, key: Key, value: Value) -> None:
        """Keep what was learned otherwise."""
        self._results.put(key, value, self._now())

    def stop(self) -> None:
        """Cancel all that is under way."""
        for probe in list(self._running.values()):
            if probe.work is not None:
                probe.work.cancel()

    def _join(self, probe: _Probe[Value]) -> Deferred[Value]:
        result: Deferred[Value] = Deferred(probe.waiting.remove)
        probe.waiting.append(result)
        return result

    def _finish(self, result: Value | Failure, key: Key, probe: _Probe[Value]) -> None:
        del self._running[key]
        if not isinstance(result, Failure):
            if self._is_worth_keeping(result):
                self.remember(key, result)
        elif not probe.waiting and not result.check(CancelledError):
            self._log.failure("A probe that nobody waited for failed", result)
        while probe.waiting:
            probe.waiting.pop(0).callback(result)

    def _now(self) -> Instant:
        return instant_of(self._clock.seconds())
