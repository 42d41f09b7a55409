"""The time of day beside the monotonic clock: time-outs run on one, what people read on the other.

A time of day may be set, and then jumps. What was promised to be kept for a day must not go
because of that.
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
"""Seconds from which on a difference is a clock that was set: NTP slews both clocks alike."""


def time_of_day() -> Instant:
    """Read the system's clock."""
    return instant_of(time.time())


def of_the_system(clock: IReactorTime) -> ClockAndRandomness:
    """Give the system's time and randomness, for a command: it keeps nothing that would expire."""
    return ClockAndRandomness(time_of_day, time_of_day, clock, os.urandom)


def run_on_monotonic_clock(reactor: Any) -> None:
    """Have a reactor that does not run yet measure all delays by the monotonic clock.

    Twisted measures them by the time of day. When that is set back, no delayed call is due for as
    long as it was set back.
    """
    assert not reactor.getDelayedCalls(), "calls were delayed by another clock"
    reactor.seconds = time.monotonic


class WallClock:
    """The time of day.

    :param seconds: reads it, in seconds since 1970.
    :param clock: is not set by anybody.
    :param longest_kept: seconds after which nothing is left of what was stamped before.
    """

    _log = Logger()

    def __init__(
        self, seconds: Callable[[], float], clock: IReactorTime, longest_kept: float
    ) -> None:
        self._seconds = seconds
        self._clock = clock
        self._longest_kept = longest_kept
        self._ahead = seconds() - clock.seconds()
        self._earlier: list[tuple[float, float]] = []  # until when it counts, how far ahead

    def now(self) -> Instant:
        """Give the time of day."""
        return instant_of(self._seconds())

    def expiry_now(self) -> Instant:
        """Give the moment up to which things have expired.

        When the clock is set ahead, it stays behind for as long as anything is kept that was
        stamped before: that expires when its time has passed, not when its hour is shown.
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
