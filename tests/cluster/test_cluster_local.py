"""Counters in memory: their cost, and the deletion of old counters."""

import weakref

from mailcheck.cluster.local import SWEEP_AT, LocalRateCounters
from mailcheck.core.memory.client_limits import DAY_WINDOW, MINUTE_WINDOW
from mailcheck.core.memory.keys import key_of
from mailcheck.ports.cluster import Hit
from tests.house import result_of


class Mark:
    """A set of live indexes."""


class WindowIndex(int):
    """The index of a window that counts comparisons with the newest window."""

    comparisons = 0
    mark: Mark

    def __ge__(self, other: int) -> bool:
        WindowIndex.comparisons += 1
        return super().__ge__(other)


def test_counters_of_past_windows_are_forgotten() -> None:
    """The number of counters stays bounded: those of past windows are deleted."""
    counters = LocalRateCounters()
    kept: weakref.WeakSet[Mark] = weakref.WeakSet()
    for minute in range(15):
        for client in range(SWEEP_AT // 5):
            index = WindowIndex(minute)
            index.mark = Mark()
            kept.add(index.mark)
            subject = key_of(f"client {client} of {minute}")
            result_of(counters.hit(Hit(subject, ((MINUTE_WINDOW, index, 60),))))
    assert len(kept) <= 2 * SWEEP_AT


def test_many_clients_cost_no_more_each() -> None:
    """The cost of a request does not depend on the number of clients."""
    counters = LocalRateCounters()
    today = WindowIndex(0)
    before = WindowIndex.comparisons
    clients = 2 * SWEEP_AT
    for client in range(clients):
        result_of(counters.hit(Hit(key_of(f"client {client}"), ((DAY_WINDOW, today, 1000),))))
    assert WindowIndex.comparisons - before <= 2 * clients
    assert result_of(counters.hit(Hit(key_of("client 0"), ((DAY_WINDOW, 0, 1000),)))) == [[2]]
