"""State in the memory of one process, for a single daemon or while Redis is unavailable."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, Generic

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure

from mailcheck.core.instants import instant_of
from mailcheck.core.memory.client_limits import Window
from mailcheck.core.memory.keys import Key
from mailcheck.core.memory.recent import LruCache
from mailcheck.operations.semaphores import FairSemaphore
from mailcheck.ports.cluster import KNOWN_DOMAINS, KNOWN_SELECTORS, Hit, RateCounters, Subject

KEPT_CHARACTERS = 32 * 2**20
"""Maximum characters of all stored texts: some thousand reputations, or many more probes."""

SWEEP_AT = 10_000
"""Number of counters above which counters of past windows are deleted."""


class LocalRateCounters:
    """Implements the port `RateCounters` in memory. A restart resets the counters."""

    def __init__(self) -> None:
        self._counts: dict[tuple[Key, Window], tuple[int, int]] = {}
        self._newest: dict[Window, int] = {}
        self._sweep_at = SWEEP_AT

    def hit(self, *hits: Hit) -> Deferred[list[list[int]]]:
        """Count requests if no window exceeds its limit. Fires with the counts after them."""
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
        # All counters left may be of current windows. Without a higher threshold the next
        # sweep would follow at once, at a cost that grows with the number of clients.
        self._sweep_at = max(SWEEP_AT, 2 * len(self._counts))


class CountersOrAlone:
    """Implements `RateCounters` by other counters, and in memory while they raise ``trouble``."""

    def __init__(self, counters: RateCounters, trouble: type[Exception]) -> None:
        self._counters = counters
        self._trouble = trouble
        self._alone = LocalRateCounters()

    def hit(self, *hits: Hit) -> Deferred[list[list[int]]]:
        """Count requests if no window exceeds its limit. Fires with the counts after them."""

        def count_alone(failure: Failure) -> Deferred[list[list[int]]]:
            failure.trap(self._trouble)
            return self._alone.hit(*hits)

        return self._counters.hit(*hits).addErrback(count_alone)


class LocalMemory:
    """Implements the port `Memory` in memory. A restart deletes all texts."""

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self._kept: LruCache[Key, tuple[str, int, int]] = LruCache(
            KEPT_CHARACTERS, lambda kept: len(kept[0])
        )

    def recall(self, name: Key) -> Deferred[str | None]:
        """Return the text for a name, or `None`."""
        kept = self._kept.get(name)
        if kept is None:
            return succeed(None)
        text, ends_at, milliseconds = kept
        # A clock that was set back must not keep a text forever.
        is_kept = 0 < ends_at - instant_of(self._clock.seconds()) <= milliseconds
        return succeed(text if is_kept else None)

    def keep(self, name: Key, text: str, milliseconds: int) -> Deferred[bool]:
        """Store a text for a time, in place of any earlier one."""
        ends_at = instant_of(self._clock.seconds()) + milliseconds
        self._kept.put(name, (text, ends_at, milliseconds))
        return succeed(True)

    def acquire(self, work: Key, milliseconds: int) -> Deferred[bool]:
        """Acquire the lock. It always succeeds for a single daemon."""
        return succeed(True)

    def release(self, work: Key) -> Deferred[None]:
        """Release the lock. Has no effect for a single daemon."""
        return succeed(None)


class LocalSelectors:
    """Implements the port `SelectorStore` in memory. A restart deletes all selectors."""

    def __init__(self) -> None:
        self._kept: LruCache[str, LruCache[str, None]] = LruCache(KNOWN_DOMAINS)

    def note_selectors(self, pairs: Sequence[tuple[str, str]]) -> Deferred[bool]:
        """Store domains and selectors, oldest first."""
        for domain, selector in pairs:
            selectors = self._kept.get(domain)
            if selectors is None:
                selectors = LruCache(KNOWN_SELECTORS)
                self._kept.put(domain, selectors)
            selectors.put(selector, None)
        return succeed(True)

    def selectors_of(self, domain: str) -> Deferred[tuple[str, ...]]:
        """Return the selectors of a domain, the newest first."""
        return succeed(tuple(self._kept.get(domain) or ()))


class LocalNotifications(Generic[Subject]):
    """Implements the port `Notifications` within this process."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[Subject], None]] = []

    def publish(self, subject: Subject) -> None:
        """Call the listeners at once."""
        for heard in self._listeners:
            heard(subject)

    def listen(self, heard: Callable[[Subject], None]) -> None:
        """Call ``heard`` for every notification from now on."""
        self._listeners.append(heard)


class LocalCluster:
    """The state of a single daemon, in place of state that several daemons share."""

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self.counters = LocalRateCounters()
        self.memory = LocalMemory(clock)
        self.selectors = LocalSelectors()
        self.own_name = ""

    def note_present(self, names: Collection[str]) -> None:
        """Ignore the names, since a single daemon has no peers."""

    def notifications(self, channel: str) -> LocalNotifications[Any]:
        """Return the notifications of one channel."""
        return LocalNotifications()

    def semaphore(self, name: str, per_owner: int) -> FairSemaphore[str]:
        """Return a semaphore with ``per_owner`` permits for each owner."""
        return FairSemaphore(self._clock, per_owner=per_owner)

    def when_hints_are_lost(self, look: Callable[[], None]) -> None:
        """Ignore the listener, since notifications within a process are never lost."""
