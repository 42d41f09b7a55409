"""Time and randomness under the control of a test, reproducible in each run."""

from hashlib import shake_128
from itertools import count
from typing import Any

from twisted.internet.interfaces import IReactorTime

from mailcheck.core.instants import Instant, instant_of
from mailcheck.ports.clocks import ClockAndRandomness

TEST_START = 1_795_262_400.0
"""Start of all tests in seconds since the epoch: 2026-11-21T12:00:00Z."""


def repeatable_bytes() -> Any:
    """Return a source of random bytes with the same sequence in each test."""
    numbers = count(1)
    # Hashed, since ids are truncated and must not differ in their last bytes only.
    return lambda length: shake_128(b"%d" % next(numbers)).digest(length)


def clock_and_randomness_of(clock: IReactorTime) -> ClockAndRandomness:
    """Return the time of a clock, and reproducible randomness."""

    def now() -> Instant:
        return instant_of(clock.seconds())

    return ClockAndRandomness(now, now, clock, repeatable_bytes())
