"""Rate limits: fixed windows, the clock minute and the UTC day (SPEC.md section 8).

Pure arithmetic over counts that a `RateCounters` port keeps. A request over a
limit is refused, and a refused request is not counted again: the numbers in
the headers say what was really left.
"""

from dataclasses import dataclass

from mailcheck.core.accounts import RequestLimits
from mailcheck.core.instants import DAY, MINUTE, SECOND, Instant


@dataclass(frozen=True, slots=True)
class Window:
    """One fixed window: its number since the epoch, and when it ends."""

    name: str
    length: int

    def index(self, now: Instant) -> int:
        """Number the window that ``now`` lies in."""
        return now // self.length

    def seconds_left(self, now: Instant) -> int:
        """Whole seconds until the window ends, at least 1 (RFC 9110 10.2.3)."""
        return max(1, -(-(self.length - now % self.length) // SECOND))

    def reset_at(self, now: Instant) -> Instant:
        """Give the moment at which the next window begins."""
        return Instant((self.index(now) + 1) * self.length)


MINUTE_WINDOW = Window("minute", MINUTE)
DAY_WINDOW = Window("day", DAY)


@dataclass(frozen=True, slots=True)
class Usage:
    """Requests left in both windows after this one; ``exhausted`` has refused it, uncounted."""

    remaining: int
    daily_remaining: int
    exhausted: Window | None


def judge_usage(minute_count: int, day_count: int, limits: RequestLimits) -> Usage:
    """Judge a request that would be the ``minute_count``-th and ``day_count``-th of its windows.

    The day is named first where both are exhausted: waiting for the next
    minute would not help.
    """
    exhausted = None
    if day_count > limits.per_day:
        exhausted = DAY_WINDOW
    elif minute_count > limits.per_minute:
        exhausted = MINUTE_WINDOW
    uncounted = 0 if exhausted is None else 1
    return Usage(
        remaining=max(0, limits.per_minute - minute_count + uncounted),
        daily_remaining=max(0, limits.per_day - day_count + uncounted),
        exhausted=exhausted,
    )
