"""Attempts that are limited: to sign in, and to make accounts."""

from mailcheck.core.accounts import RequestLimits
from mailcheck.core.client_limits import MINUTE_WINDOW
from mailcheck.core.errors import LimitExceeded
from mailcheck.core.keys import Key
from mailcheck.operations.accounts.authenticate import RequestMeter
from mailcheck.ports.clocks import Now


class Attempts:
    """Counts attempts, and refuses those over a limit."""

    def __init__(self, meter: RequestMeter, now: Now) -> None:
        self._meter = meter
        self._now = now

    async def count(self, subject: Key, limits: RequestLimits, what: str) -> None:
        """Count an attempt of a subject; ``what`` there are too many of, for people.

        :raises LimitExceeded: says when it may be tried again.
        """
        usage = await self._meter.count(subject, limits)
        if usage.exhausted is None:
            return
        seconds = usage.exhausted.seconds_left(self._now())
        is_short = usage.exhausted is MINUTE_WINDOW
        when = f"in {seconds} seconds" if is_short else "tomorrow (UTC)"
        raise LimitExceeded(f"{what}: try again {when}", seconds)
