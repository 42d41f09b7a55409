"""Counters in this process: what they cost, and what they forget."""

import weakref

from mailcheck.cluster.local import SWEEP_AT, LocalRateCounters
from mailcheck.core.client_limits import DAY_WINDOW, MINUTE_WINDOW
from mailcheck.core.keys import key_of
from mailcheck.ports.cluster import Hit
from tests.house import result_of


class Mark:
    """What is there as long as its index is."""


class WindowIndex(int):
    """The index of a window; counts how often a counter is compared with the newest window."""

    comparisons = 0
    mark: Mark

    def __ge__(self, other: int) -> bool:
        WindowIndex.comparisons += 1
        return super().__ge__(other)


def test_counters_of_past_windows_are_forgotten() -> None:
    """A daemon that runs for months keeps counters of the windows under way, and little else."""
    counters = LocalRateCounters()
    kept: weakref.WeakSet[Mark] = weakref.WeakSet()
    for minute in range(100):
        for client in range(SWEEP_AT // 10):
            index = WindowIndex(minute)
            index.mark = Mark()
            kept.add(index.mark)
            subject = key_of(f"client {client} of {minute}")
            result_of(counters.hit(Hit(subject, ((MINUTE_WINDOW, index, 60),))))
    assert len(kept) <= 2 * SWEEP_AT


def test_many_clients_cost_no_more_each() -> None:
    """However many clients the day brings, a request looks at its own counters only."""
    counters = LocalRateCounters()
    today = WindowIndex(0)
    before = WindowIndex.comparisons
    clients = 8 * SWEEP_AT
    for client in range(clients):
        result_of(counters.hit(Hit(key_of(f"client {client}"), ((DAY_WINDOW, today, 1000),))))
    assert WindowIndex.comparisons - before <= 2 * clients
    assert result_of(counters.hit(Hit(key_of("client 0"), ((DAY_WINDOW, 0, 1000),)))) == [[2]]
