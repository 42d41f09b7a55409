"""Counts a request against its limits and says what is left (SPEC.md section 8)."""

from dataclasses import dataclass

from mailcheck.core.accounts import RequestLimits
from mailcheck.core.errors import LimitExceeded
from mailcheck.core.identifiers import KeyId
from mailcheck.core.instants import Instant, format_instant
from mailcheck.core.rate_limits import DAY_WINDOW, MINUTE_WINDOW, Usage, judge_usage
from mailcheck.operations.ports import Hit, Now, RateCounters


def key_subject(key_id: KeyId) -> str:
    """Name a key as the one whose requests are counted."""
    return f"key {key_id}"


@dataclass(frozen=True, slots=True)
class LimitUse:
    """Limits, and what is used of them."""

    limits: RequestLimits
    usage: Usage

    @property
    def used_this_minute(self) -> int:
        """Count the requests of this clock minute."""
        return self.limits.per_minute - self.usage.remaining

    @property
    def used_today(self) -> int:
        """Count the requests of this UTC day."""
        return self.limits.per_day - self.usage.daily_remaining


class RequestMeter:
    """Judges requests of a key, or of an address that has no valid key."""

    def __init__(self, counters: RateCounters, now: Now) -> None:
        self._counters = counters
        self._now = now

    async def count(self, subject: str, limits: RequestLimits) -> Usage:
        """Count a request; a refused one is not counted."""
        minute, day = await self._hit(subject, limits, 1)
        return judge_usage(minute, day, limits)

    async def look(self, subject: str, limits: RequestLimits) -> Usage:
        """Say what is left without counting anything."""
        minute, day = await self._hit(subject, limits, 0)
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

    async def _hit(self, subject: str, limits: RequestLimits, amount: int) -> list[int]:
        now = self._now()
        windows = (
            (MINUTE_WINDOW, MINUTE_WINDOW.index(now), limits.per_minute),
            (DAY_WINDOW, DAY_WINDOW.index(now), limits.per_day),
        )
        (counts,) = await self._counters.hit(Hit(subject, windows, amount))
        return counts
