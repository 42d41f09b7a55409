"""Counting requests against their limits."""

import pytest
from twisted.internet.task import Clock

from mailcheck.cluster.local import LocalRateCounters
from mailcheck.core.accounts import RequestLimits
from mailcheck.core.memory.client_limits import DAY_WINDOW, MINUTE_WINDOW, Usage
from mailcheck.core.memory.keys import key_of
from mailcheck.operations.accounts.authenticate import RequestMeter
from tests.fakes.clock_and_randomness import TEST_START, clock_and_randomness_of
from tests.house import run

LIMITS = RequestLimits(per_minute=3, per_day=5)


class Metered:
    """A request counter with a clock."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.clock.advance(TEST_START)
        self.meter = RequestMeter(LocalRateCounters(), clock_and_randomness_of(self.clock).now)

    def count(self, times: int = 1, limits: RequestLimits = LIMITS, subject: str = "key") -> Usage:
        """Count some requests, and return the usage after the last one."""
        for _ in range(times):
            usage: Usage = run(self.meter.count(key_of(subject), limits))
        return usage


@pytest.fixture
def metered() -> Metered:
    """A counter at the beginning of a minute, in the middle of a day."""
    return Metered()


def test_what_is_left(metered: Metered) -> None:
    """Each request reduces what is left in both windows. Subjects are counted separately."""
    assert metered.count() == Usage(2, 4, None)
    assert metered.count(2) == Usage(0, 2, None)
    assert metered.count(subject="other") == Usage(2, 4, None)


def test_the_minute_is_used_up(metered: Metered) -> None:
    """A request over the minute's limit is rejected and not counted. The next minute is new."""
    metered.count(3)
    assert metered.count(9) == Usage(0, 2, MINUTE_WINDOW)
    metered.clock.advance(60)
    assert metered.count() == Usage(2, 1, None)


def test_the_day_is_used_up(metered: Metered) -> None:
    """If the daily limit is reached, requests are rejected until the next day."""
    metered.count(3)
    metered.clock.advance(60)
    metered.count(2)
    assert metered.count() == Usage(1, 0, DAY_WINDOW)
    metered.clock.advance(60)
    assert metered.count() == Usage(3, 0, DAY_WINDOW)
    metered.clock.advance(12 * 3600)
    assert metered.count() == Usage(2, 4, None)


def test_reading_the_usage_costs_nothing(metered: Metered) -> None:
    """Reading the usage does not count a request."""
    for _ in range(3):
        assert run(metered.meter.peek(key_of("key"), LIMITS)) == Usage(3, 5, None)
    metered.count(2)
    assert run(metered.meter.peek(key_of("key"), LIMITS)) == Usage(1, 3, None)
    metered.count(2)
    assert run(metered.meter.peek(key_of("key"), LIMITS)) == Usage(0, 2, None)


@pytest.mark.parametrize(
    ("seconds", "exhausted", "words", "retry_after"),
    [
        (
            0,
            MINUTE_WINDOW,
            "3 requests per minute of your address is reached; it resets at 2026-11-21T12:01:",
            60,
        ),
        (59.5, MINUTE_WINDOW, "3 requests per minute", 1),
        (
            0,
            DAY_WINDOW,
            "5 requests per day of your address is reached; it resets at 2026-11-22T00:00:",
            43_200,
        ),
    ],
)
def test_refusals(
    metered: Metered, seconds: float, exhausted: object, words: str, retry_after: int
) -> None:
    """A rejection names the limit, its value and its reset, and the seconds until then."""
    metered.clock.advance(seconds)
    usage = Usage(0, 0, MINUTE_WINDOW if exhausted is MINUTE_WINDOW else DAY_WINDOW)
    refusal = metered.meter.refusal(usage, LIMITS)
    assert words in str(refusal)
    assert refusal.retry_after == retry_after
