"""The time of day beside the monotonic clock, which timeouts use.

The time of day may be set and then jumps. Data with a retention of a day must not be
deleted early because of that.
"""

import os
import time
from collections.abc import Callable
from typing import Any

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from mailcheck.core.instants import Instant, instant_of
from mailcheck.ports.clocks import ClockAndRandomness

STEP = 1.0
"""Minimum difference in seconds that counts as a set clock. NTP slews both clocks alike."""


def time_of_day() -> Instant:
    """Return the time of the system's clock."""
    return instant_of(time.time())


def of_the_system(clock: IReactorTime) -> ClockAndRandomness:
    """Return the system's time and randomness, for commands, which store nothing that expires."""
    return ClockAndRandomness(time_of_day, time_of_day, clock, os.urandom)


def run_on_monotonic_clock(reactor: Any) -> None:
    """Let a reactor that does not run yet measure delays by the monotonic clock.

    By default, Twisted uses the time of day. When that is set back, delayed calls are late by the
    same time.
    """
    assert not reactor.getDelayedCalls(), "calls were delayed by another clock"
    reactor.seconds = time.monotonic


class WallClock:
    """The time of day.

    :param seconds: returns the time of day in seconds since 1970.
    :param clock: the monotonic clock.
    :param longest_kept: maximum retention in seconds of data with timestamps.
    """

    _log = Logger()

    def __init__(
        self, seconds: Callable[[], float], clock: IReactorTime, longest_kept: float
    ) -> None:
        self._seconds = seconds
        self._clock = clock
        self._longest_kept = longest_kept
        self._ahead = seconds() - clock.seconds()
        self._earlier: list[tuple[float, float]] = []  # (end of its effect, earlier offset)

    def now(self) -> Instant:
        """Return the time of day."""
        return instant_of(self._seconds())

    def expiry_now(self) -> Instant:
        """Return the time for comparison with expiry times.

        After the clock was set ahead, this time stays behind until all data with earlier
        timestamps has expired. That data is thus kept for its full retention.
        """
        now = self._clock.seconds()
        ahead = self._seconds() - now
        if abs(ahead - self._ahead) >= STEP:
            self._note_step(ahead - self._ahead, now)
            self._ahead = ahead
        if not self._earlier:
            return self.now()
        self._earlier = [step for step in self._earlier if step[0] > now]
        return instant_of(now + min([ahead, *(was_ahead for _, was_ahead in self._earlier)]))

    def _note_step(self, size: float, now: float) -> None:
        self._earlier.append((now + self._longest_kept, self._ahead))
        self._log.warn(
            "the clock was set {direction} by {seconds:.0f} s; mail is kept no shorter for that",
            direction="ahead" if size > 0 else "back",
            seconds=abs(size),
        )
