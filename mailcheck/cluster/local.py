"""Counters and wake-ups for a daemon that is alone."""

from collections.abc import Callable, Sequence

from twisted.internet.defer import Deferred, succeed

from mailcheck.core.identifiers import AccountId, DeliverabilityTestId

SWEEP_AT = 10_000
"""Counters from which on those of past windows are thrown away."""


class LocalRateCounters:
    """Fills the port `RateCounters` in memory; a restart forgets."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], tuple[int, int]] = {}
        self._newest: dict[str, int] = {}
        self._sweep_at = SWEEP_AT

    def hit(self, subject: str, windows: Sequence[tuple[str, int, int]]) -> Deferred[list[int]]:
        """Count a request where no window goes over its limit; gives the counts with it."""
        counts = [self._count(subject, name, index) + 1 for name, index, _ in windows]
        if all(count <= limit for count, (_, _, limit) in zip(counts, windows, strict=True)):
            for count, (name, index, _) in zip(counts, windows, strict=True):
                self._counts[subject, name] = (index, count)
                self._newest[name] = index
            if len(self._counts) > self._sweep_at:
                self._sweep()
        return succeed(counts)

    def _count(self, subject: str, name: str, index: int) -> int:
        counted_index, count = self._counts.get((subject, name), (index, 0))
        return count if counted_index == index else 0

    def _sweep(self) -> None:
        self._counts = {
            (subject, name): (index, count)
            for (subject, name), (index, count) in self._counts.items()
            if index >= self._newest[name]
        }
        # All that is left may be of windows under way: to look at it again for each
        # request would cost more with every client that comes.
        self._sweep_at = max(SWEEP_AT, 2 * len(self._counts))


class LocalWakeUps:
    """Fills the port `WakeUps` within this process."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[AccountId], None]] = []

    def publish(self, account_id: AccountId) -> None:
        """Say that mail has come in and is on disk."""
        for heard in self._listeners:
            heard(account_id)

    def listen(self, heard: Callable[[AccountId], None]) -> None:
        """Call ``heard`` for every hint from now on."""
        self._listeners.append(heard)


class LocalDeliverabilityWakeUps:
    """Fills the port `DeliverabilityWakeUps` within this process."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[DeliverabilityTestId], None]] = []

    def publish(self, test_id: DeliverabilityTestId) -> None:
        """Say that a test has moved, and that this is on disk."""
        for heard in self._listeners:
            heard(test_id)

    def listen(self, heard: Callable[[DeliverabilityTestId], None]) -> None:
        """Call ``heard`` for every hint from now on."""
        self._listeners.append(heard)
