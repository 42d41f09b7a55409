"""Tuning of the garbage collector after startup."""

from typing import Protocol

from twisted.application.service import Service
from twisted.internet.interfaces import IDelayedCall, IReactorTime

from mailcheck.operations.concurrency import stop_timer

SETTLED_AFTER = 3.0
"""Seconds after startup. By then, pages and routes are compiled and the children are warm."""

THRESHOLDS = (5_000, 4, 2_000)
"""Thresholds of the three generations. With Python's defaults (700, 10, 10), a busy daemon runs
several full collections a minute: 94 ms each, 570 ms with 5,000 waits. Higher thresholds make
collections under attack longer: up to 40 ms with a first one of 20,000 or a second one of 40, and
up to 25 ms with a second one of 10."""


class Collector(Protocol):
    """The functions of `gc` that are used."""

    def collect(self) -> int:
        """Run a full collection."""

    def freeze(self) -> None:
        """Exclude all present objects from later collections."""

    def unfreeze(self) -> None:
        """Include the excluded objects again."""

    def set_threshold(self, threshold0: int, threshold1: int, threshold2: int, /) -> None:
        """Set the thresholds of the generations."""


class SettledHeap(Service):
    """Excludes long-lived objects from garbage collection, to keep collections short."""

    def __init__(self, clock: IReactorTime, collector: Collector) -> None:
        self._clock = clock
        self._collector = collector
        self._call: IDelayedCall | None = None

    def startService(self) -> None:
        """Schedule the work for when the daemon has settled."""
        super().startService()
        self._call = self._clock.callLater(SETTLED_AFTER, self._settle)

    def stopService(self) -> None:
        """Cancel the work if it is pending."""
        super().stopService()
        stop_timer(self._call)

    def _settle(self) -> None:
        self._collector.unfreeze()
        self._collector.collect()
        self._collector.freeze()
        self._collector.set_threshold(*THRESHOLDS)
