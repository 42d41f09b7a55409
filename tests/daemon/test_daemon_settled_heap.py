"""The garbage collector of a daemon that is ready."""

from twisted.internet.task import Clock

from mailcheck.daemon.settled_heap import SETTLED_AFTER, THRESHOLDS, SettledHeap


class ScriptedCollector:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def collect(self) -> int:
        """Note it."""
        self.told.append("collect")
        return 0

    def freeze(self) -> None:
        """Note it."""
        self.told.append("freeze")

    def unfreeze(self) -> None:
        """Note it."""
        self.told.append("unfreeze")

    def set_threshold(self, *thresholds: int) -> None:
        """Note it."""
        self.told.append(thresholds)


def test_what_is_there_when_ready_is_set_aside() -> None:
    """Garbage, of the start too, is collected once, the rest set aside, collections are rarer."""
    clock, collector = Clock(), ScriptedCollector()
    SettledHeap(clock, collector).startService()
    clock.advance(SETTLED_AFTER - 0.1)
    assert collector.told == []
    clock.advance(1_000)
    assert collector.told == ["unfreeze", "collect", "freeze", THRESHOLDS]


def test_a_daemon_that_stops_at_once() -> None:
    """Whoever is stopped before leaves no call behind."""
    clock, collector = Clock(), ScriptedCollector()
    heap = SettledHeap(clock, collector)
    heap.startService()
    heap.stopService()
    assert clock.getDelayedCalls() == []
    assert collector.told == []
