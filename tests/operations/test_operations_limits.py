"""Counting requests against the limit of the day."""

from twisted.internet.task import Clock

from mailcheck.cluster.local import LocalRateCounters
from mailcheck.core.accounts import RequestLimits
from mailcheck.core.memory.client_limits import DAY_WINDOW, Usage
from mailcheck.core.memory.keys import key_of
from mailcheck.operations.accounts.authenticate import RequestMeter
from tests.fakes.clock_and_randomness import TEST_START, clock_and_randomness_of
from tests.house import run


def test_the_day_is_used_up() -> None:
    """If the daily limit is reached, requests are rejected until the next day."""
    clock = Clock()
    clock.advance(TEST_START)
    meter = RequestMeter(LocalRateCounters(), clock_and_randomness_of(clock).now)
    for seconds, times, usage in (
        (0, 3, Usage(0, 2, None)),
        (60, 2, Usage(1, 0, None)),
        (0, 1, Usage(1, 0, DAY_WINDOW)),
        (60, 1, Usage(3, 0, DAY_WINDOW)),
        (12 * 3600, 1, Usage(2, 4, None)),
    ):
        clock.advance(seconds)
        for _ in range(times):
            used = run(meter.count(key_of("key"), RequestLimits(per_minute=3, per_day=5)))
        assert used == usage
