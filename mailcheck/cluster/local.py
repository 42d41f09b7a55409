"""Counters and wake-ups of one process: for a daemon that is alone, for good or for a while."""

from collections.abc import Callable
from typing import Any, Generic

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IReactorTime

from mailcheck.core.rate_limits import Window
from mailcheck.operations.places import Places
from mailcheck.operations.ports import Hit, Subject

SWEEP_AT = 10_000
"""Counters from which on those of past windows are thrown away."""


class LocalRateCounters:
    """Fills the port `RateCounters` in memory; a restart forgets."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, Window], tuple[int, int]] = {}
        self._newest: dict[Window, int] = {}
        self._sweep_at = SWEEP_AT

    def hit(self, *hits: Hit) -> Deferred[list[list[int]]]:
        """Count requests where no window goes over its limit; gives the counts with them."""
        return succeed([self._hit(hit) for hit in hits])

    def _hit(self, hit: Hit) -> list[int]:
        counts = [
            self._count(hit.subject, window, index) + hit.amount for window, index, _ in hit.windows
        ]
        limits = [limit for _, _, limit in hit.windows]
        if hit.amount and all(map(int.__le__, counts, limits)):
            for count, (window, index, _) in zip(counts, hit.windows, strict=True):
                self._counts[hit.subject, window] = (index, count)
                self._newest[window] = index
            if len(self._counts) > self._sweep_at:
                self._sweep()
        return counts

    def _count(self, subject: str, window: Window, index: int) -> int:
        counted_index, count = self._counts.get((subject, window), (index, 0))
        return count if counted_index == index else 0

    def _sweep(self) -> None:
        self._counts = {
            (subject, window): (index, count)
            for (subject, window), (index, count) in self._counts.items()
            if index >= self._newest[window]
        }
        # All that is left may be of windows under way: to look at it again for each
        # request would cost more with every client that comes.
        self._sweep_at = max(SWEEP_AT, 2 * len(self._counts))


class LocalWakeUps(Generic[Subject]):
    """Fills the port `WakeUps` within this process."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[Subject], None]] = []

    def publish(self, subject: Subject) -> None:
        """Tell who listens here, at once."""
        for heard in self._listeners:
            heard(subject)

    def listen(self, heard: Callable[[Subject], None]) -> None:
        """Call ``heard`` for every hint from now on."""
        self._listeners.append(heard)


class LocalCluster:
    """What a daemon that is alone has in place of what several share."""

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self.counters = LocalRateCounters()

    def wake_ups(self, channel: str) -> LocalWakeUps[Any]:
        """Make the wake-ups of one kind."""
        return LocalWakeUps()

    def places(self, name: str, of_one: int) -> Places[str]:
        """Make places of which each owner may have so many."""
        return Places(self._clock, of_one=of_one)

    def when_hints_are_lost(self, look: Callable[[], None]) -> None:
        """Have nothing to do: within a process no hint is lost."""
