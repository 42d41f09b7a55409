"""Tuning of the garbage collector after startup."""

from twisted.internet.task import Clock

from mailcheck.daemon.settled_heap import SETTLED_AFTER, THRESHOLDS, SettledHeap


class ScriptedCollector:
    """Records its calls."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def collect(self) -> int:
        """Record the call."""
        self.told.append("collect")
        return 0

    def freeze(self) -> None:
        """Record the call."""
        self.told.append("freeze")

    def unfreeze(self) -> None:
        """Record the call."""
        self.told.append("unfreeze")

    def set_threshold(self, *thresholds: int) -> None:
        """Record the call."""
        self.told.append(thresholds)


def test_what_is_there_when_ready_is_set_aside() -> None:
    """Garbage is collected once, the other objects are excluded, and thresholds are raised."""
    clock, collector = Clock(), ScriptedCollector()
    SettledHeap(clock, collector).startService()
    clock.advance(SETTLED_AFTER - 0.1)
    assert collector.told == []
    clock.advance(1_000)
    assert collector.told == ["unfreeze", "collect", "freeze", THRESHOLDS]


def test_a_daemon_that_stops_at_once() -> None:
    """A service that is stopped early leaves no delayed call."""
    clock, collector = Clock(), ScriptedCollector()
    heap = SettledHeap(clock, collector)
    heap.startService()
    heap.stopService()
    assert clock.getDelayedCalls() == []
    assert collector.told == []
