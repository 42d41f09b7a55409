"""Counters in this process: what they cost, and what they forget."""

import sys

from mailcheck.cluster.local import SWEEP_AT, LocalRateCounters
from mailcheck.core.client_limits import DAY_WINDOW, MINUTE_WINDOW
from mailcheck.core.keys import key_of
from mailcheck.ports.cluster import Hit
from tests.house import result_of


class SweepsCounted(LocalRateCounters):
    """Counts how often all counters are looked at."""

    sweeps = 0

    def _sweep(self) -> None:
        self.sweeps += 1
        super()._sweep()


def test_counters_of_past_windows_are_forgotten() -> None:
    """A daemon that runs for months keeps counters of the windows under way, and little else."""
    counters = LocalRateCounters()
    for minute in range(100):
        for client in range(SWEEP_AT // 10):
            result_of(
                counters.hit(
                    Hit(key_of(f"client {client} of {minute}"), ((MINUTE_WINDOW, minute, 60),))
                )
            )
    assert len(counters._counts) <= 2 * SWEEP_AT
    assert sys.getsizeof(counters._counts) < 200 * SWEEP_AT


def test_many_clients_cost_no_more_each() -> None:
    """However many clients the day brings, a request looks at its own counters only."""
    counters = SweepsCounted()
    for client in range(8 * SWEEP_AT):
        result_of(counters.hit(Hit(key_of(f"client {client}"), ((DAY_WINDOW, 0, 1000),))))
    assert counters.sweeps <= 4
    assert result_of(counters.hit(Hit(key_of("client 0"), ((DAY_WINDOW, 0, 1000),)))) == [[2]]
