"""Cached probes: concurrent requests share one probe, and its result is cached for all daemons."""

from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from mailcheck.core.instants import SECOND, instant_of
from mailcheck.core.memory.recent import Recent
from mailcheck.operations.cached_values import CachedValues
from mailcheck.operations.concurrency import SingleFlight

Value = TypeVar("Value")

LONGEST = 12 * SECOND
"""Milliseconds for which a daemon has the lock for a probe. No probe takes that long."""

PATIENCE = 9.0
"""Seconds to wait for the result of another daemon, within the 10 seconds of a check."""

LOOK = 0.1
"""Seconds between two looks for that result."""

TOLD = 2 * SECOND
"""Milliseconds for which a result that is not cached is kept for the waiting daemons."""


MAX_OWN = 10_000
"""Maximum number of cached results that only hold for this daemon."""


class CachedProbes(Generic[Value]):
    """Runs probes by key. Over all daemons, at most one probe per key is running.

    :param run: performs the probe, within its own deadline.
    :param freshness: milliseconds for which a result is cached.
    :param is_kept: returns whether a result is cached at all.
    :param is_for_all: returns whether a result also holds for other daemons.
    :param when_busy: returns the result when ``at_once`` probes are running.
    """

    def __init__(
        self,
        clock: IReactorTime,
        cache: CachedValues[Value],
        run: Callable[[str], Coroutine[Deferred[Any], Any, Value]],
        *,
        freshness: int,
        is_kept: Callable[[Value], bool],
        is_for_all: Callable[[Value], bool] = lambda _: True,
        at_once: int = 100,
        when_busy: Callable[[str], Value],
    ) -> None:
        self._clock = clock
        self._freshness = freshness
        self._at_once = at_once
        self._cache = cache
        self._for_waiting = cache.variant("told")
        self._run = run
        self._is_kept = is_kept
        self._is_for_all = is_for_all
        self._when_busy = when_busy
        self._calls = SingleFlight(self._find)
        self._own: Recent[str, Value] = Recent(MAX_OWN, freshness)
        self._under_way = 0

    def get(self, key: str) -> Deferred[Value]:
        """Return a result: from the cache, of the running probe, or of a new one."""
        return self._calls.call(key)

    async def cached(self, key: str) -> Value | None:
        """Return the cached result, or `None`."""
        own = self._own.get(key, instant_of(self._clock.seconds()))
        return await self._cache.get(key) if own is None else own

    def stop(self) -> None:
        """Cancel all running probes."""
        self._calls.stop()

    async def _find(self, key: str) -> Value:
        found = await self.cached(key)
        if found is not None:
            return found
        if self._under_way >= self._at_once:
            return self._when_busy(key)
        self._under_way += 1
        try:
            return await self._find_out(key)
        finally:
            self._under_way -= 1

    async def _find_out(self, key: str) -> Value:
        gives_up_at = self._clock.seconds() + PATIENCE
        look = self._cache.get
        while not await self._cache.acquire(key, LONGEST):
            if self._clock.seconds() >= gives_up_at:
                return self._when_busy(key)
            await deferLater(self._clock, LOOK)
            look = self._told
            found = await look(key)
            if found is not None:
                return found
        try:
            # Another daemon may have finished the probe since the last look.
            found = await look(key)
            if found is not None:
                return found
            result = await self._run(key)
            await self._note(key, result)
            return result
        finally:
            await self._cache.release(key)

    async def _note(self, key: str, result: Value) -> None:
        is_kept, is_for_all = self._is_kept(result), self._is_for_all(result)
        if is_kept and is_for_all:
            await self._cache.put(key, result, self._freshness)
        elif is_for_all:
            await self._for_waiting.put(key, result, TOLD)
        elif is_kept:
            self._own.put(key, result, instant_of(self._clock.seconds()))

    async def _told(self, key: str) -> Value | None:
        """Return the result that another daemon has just found, or `None`."""
        found = await self._cache.get(key)
        return await self._for_waiting.get(key) if found is None else found
