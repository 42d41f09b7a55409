"""Whether mail is coming in: its senders wait for a reply, and other work can wait for them."""

import math

from twisted.internet.interfaces import IReactorTime

QUIET = 0.05
"""Seconds without new mail after which the machine counts as idle."""


class MailTraffic:
    """Remembers when mail came in last, and since when without a pause."""

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self._newest_at = -math.inf
        self._burst_began_at = -math.inf

    def note(self) -> None:
        """Take note of a mail that has just been stored."""
        if not self.is_flowing:
            self._burst_began_at = self._clock.seconds()
        self._newest_at = self._clock.seconds()

    @property
    def is_flowing(self) -> bool:
        """Tell whether mail is coming in."""
        return self.seconds_until_quiet() > 0

    def seconds_until_quiet(self, longest: float = math.inf) -> float:
        """Say when the machine counts as idle unless more comes in: 0 is now.

        A burst that lasts for ``longest`` seconds is waited for no more. A
        clock that was set back ends it, too.
        """
        now = self._clock.seconds()
        # Compared as moments: of a difference of large numbers there may be a rest for ever.
        quiet_at = min(self._newest_at + QUIET, self._burst_began_at + longest)
        return quiet_at - now if self._newest_at <= now < quiet_at else 0.0
