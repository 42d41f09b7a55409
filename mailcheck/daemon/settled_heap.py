"""The garbage collector, once the daemon is ready."""

from typing import Protocol

from twisted.application.service import Service
from twisted.internet.interfaces import IDelayedCall, IReactorTime

SETTLED_AFTER = 3.0
"""Seconds after the start: pages and routes are compiled by then, and children are warm."""

THRESHOLDS = (5_000, 4, 2_000)
"""Of the three generations. With Python's own (700, 10, 10) a busy daemon looks through all that
it holds several times a minute: 94 ms each time, 570 with 5,000 waits parked. A first one of
20,000 lets so much come together under attack that looking through it takes up to 40 ms; a
second one of 40 as well, and one of 10 up to 25 ms."""


class Collector(Protocol):
    """Python's `gc`."""

    def collect(self) -> int:
        """Collect now."""

    def freeze(self) -> None:
        """Set aside what there is: no later collection looks at it."""

    def unfreeze(self) -> None:
        """Take back what was set aside."""

    def set_threshold(self, threshold0: int, threshold1: int, threshold2: int, /) -> None:
        """Say how many new objects, and collections of younger ones, call for the next."""


class SettledHeap(Service):
    """Sets aside what lives as long as the daemon: no answer waits while it is looked through."""

    def __init__(self, clock: IReactorTime, collector: Collector) -> None:
        self._clock = clock
        self._collector = collector
        self._call: IDelayedCall | None = None

    def startService(self) -> None:
        """Wait until the daemon has settled."""
        super().startService()
        self._call = self._clock.callLater(SETTLED_AFTER, self._settle)

    def stopService(self) -> None:
        """Leave the collector alone."""
        super().stopService()
        if self._call is not None and self._call.active():
            self._call.cancel()

    def _settle(self) -> None:
        self._collector.unfreeze()
        self._collector.collect()
        self._collector.freeze()
        self._collector.set_threshold(*THRESHOLDS)
