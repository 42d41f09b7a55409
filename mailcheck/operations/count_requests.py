"""Counts a request against its limits and says what is left (SPEC.md section 8)."""

from mailcheck.core.accounts import RequestLimits
from mailcheck.core.errors import LimitExceeded
from mailcheck.core.instants import Instant, format_instant
from mailcheck.core.rate_limits import DAY_WINDOW, MINUTE_WINDOW, Usage, judge_usage
from mailcheck.operations.ports import Now, RateCounters


class RequestMeter:
    """Judges requests of a key, or of an address that has no valid key."""

    def __init__(self, counters: RateCounters, now: Now) -> None:
        self._counters = counters
        self._now = now

    async def count(self, subject: str, limits: RequestLimits) -> Usage:
        """Count a request; a refused one is not counted."""
        now = self._now()
        minute, day = await self._counters.hit(
            subject,
            [
                (MINUTE_WINDOW.name, MINUTE_WINDOW.index(now), limits.per_minute),
                (DAY_WINDOW.name, DAY_WINDOW.index(now), limits.per_day),
            ],
        )
        return judge_usage(minute, day, limits)

    def refusal(self, usage: Usage, limits: RequestLimits) -> LimitExceeded:
        """Say which limit is exhausted, what it is, and when it is free again."""
        now = self._now()
        window = usage.exhausted or MINUTE_WINDOW
        limit = limits.per_day if window is DAY_WINDOW else limits.per_minute
        reset = format_instant(Instant(window.reset_at(now)))
        return LimitExceeded(
            f"the limit of {limit} requests per {window.name} is reached; it resets at {reset}",
            window.seconds_left(now),
        )
