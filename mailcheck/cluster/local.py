"""Counters and wake-ups of one process: for a daemon that is alone, for good or for a while."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, Generic

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure

from mailcheck.core.client_limits import Window
from mailcheck.core.instants import instant_of
from mailcheck.core.keys import Key
from mailcheck.core.recent import LruCache
from mailcheck.operations.semaphores import FairSemaphore
from mailcheck.ports.cluster import KNOWN_DOMAINS, KNOWN_SELECTORS, Hit, RateCounters, Subject

KEPT_CHARACTERS = 32 * 2**20
"""Of all texts that are kept: some thousands of reputations, or many more probes."""

SWEEP_AT = 10_000
"""Counters from which on those of past windows are thrown away."""


class LocalRateCounters:
    """Fills the port `RateCounters` in memory; a restart forgets."""

    def __init__(self) -> None:
        self._counts: dict[tuple[Key, Window], tuple[int, int]] = {}
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

    def _count(self, subject: Key, window: Window, index: int) -> int:
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


class CountersOrAlone:
    """Fills the port `RateCounters` elsewhere; in memory while there is ``trouble`` there."""

    def __init__(self, counters: RateCounters, trouble: type[Exception]) -> None:
        self._counters = counters
        self._trouble = trouble
        self._alone = LocalRateCounters()

    def hit(self, *hits: Hit) -> Deferred[list[list[int]]]:
        """Count requests where no window goes over its limit; gives the counts with them."""

        def count_alone(failure: Failure) -> Deferred[list[list[int]]]:
            failure.trap(self._trouble)
            return self._alone.hit(*hits)

        return self._counters.hit(*hits).addErrback(count_alone)


class LocalMemory:
    """Fills the port `Memory` in memory; a restart forgets."""

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self._kept: LruCache[Key, tuple[str, int, int]] = LruCache(
            KEPT_CHARACTERS, lambda kept: len(kept[0])
        )

    def recall(self, name: Key) -> Deferred[str | None]:
        """Give what is kept under a name."""
        kept = self._kept.get(name)
        if kept is None:
            return succeed(None)
        text, ends_at, milliseconds = kept
        # A clock that was set back must not keep a text for ever.
        is_kept = 0 < ends_at - instant_of(self._clock.seconds()) <= milliseconds
        return succeed(text if is_kept else None)

    def keep(self, name: Key, text: str, milliseconds: int) -> Deferred[None]:
        """Keep a text so long, in place of the one that was there."""
        ends_at = instant_of(self._clock.seconds()) + milliseconds
        self._kept.put(name, (text, ends_at, milliseconds))
        return succeed(None)

    def acquire(self, work: Key, milliseconds: int) -> Deferred[bool]:
        """Take work on: there is nobody else."""
        return succeed(True)

    def release(self, work: Key) -> Deferred[None]:
        """End a claim early."""
        return succeed(None)


class LocalSelectors:
    """Fills the port `SelectorStore` in memory; a restart forgets."""

    def __init__(self) -> None:
        self._kept: LruCache[str, LruCache[str, None]] = LruCache(KNOWN_DOMAINS)

    def note_selectors(self, pairs: Sequence[tuple[str, str]]) -> Deferred[bool]:
        """Note domains and selectors, oldest first."""
        for domain, selector in pairs:
            selectors = self._kept.get(domain)
            if selectors is None:
                selectors = LruCache(KNOWN_SELECTORS)
                self._kept.put(domain, selectors)
            selectors.put(selector, None)
        return succeed(True)

    def selectors_of(self, domain: str) -> Deferred[tuple[str, ...]]:
        """Give the selectors of a domain, the newest first."""
        return succeed(tuple(self._kept.get(domain) or ()))


class LocalNotifications(Generic[Subject]):
    """Fills the port `Notifications` within this process."""

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
        self.memory = LocalMemory(clock)
        self.selectors = LocalSelectors()
        self.own_name = ""

    def note_present(self, names: Collection[str]) -> None:
        """Have nothing to do: there is nobody else."""

    def notifications(self, channel: str) -> LocalNotifications[Any]:
        """Make the wake-ups of one kind."""
        return LocalNotifications()

    def semaphore(self, name: str, per_owner: int) -> FairSemaphore[str]:
        """Make places of which each owner may have so many."""
        return FairSemaphore(self._clock, per_owner=per_owner)

    def when_hints_are_lost(self, look: Callable[[], None]) -> None:
        """Have nothing to do: within a process no hint is lost."""
