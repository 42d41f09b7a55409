"""Time and randomness that a test turns by hand, and that are the same each time."""

from hashlib import shake_128
from itertools import count
from typing import Any

from twisted.internet.interfaces import IReactorTime

from mailcheck.core.instants import Instant, instant_of
from mailcheck.ports.clocks import TimeAndChance

TEST_START = 1_795_262_400.0
"""Seconds since the epoch at which tests begin: 2026-11-21T12:00:00Z."""


def repeatable_bytes() -> Any:
    """Make a source of randomness that repeats itself from test to test."""
    numbers = count(1)
    # Hashed, since ids are cut: the last bytes alone must not make the difference.
    return lambda length: shake_128(b"%d" % next(numbers)).digest(length)


def clock_and_randomness_of(clock: IReactorTime) -> TimeAndChance:
    """Give the time that a clock shows, and randomness that repeats itself from test to test."""

    def now() -> Instant:
        return instant_of(clock.seconds())

    return TimeAndChance(now, now, clock, repeatable_bytes())
