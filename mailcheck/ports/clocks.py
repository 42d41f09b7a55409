"""Time and randomness, which the assembly injects."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from mailcheck.core.identifiers import RandomBytes
from mailcheck.core.instants import Instant

if TYPE_CHECKING:
    from twisted.internet.interfaces import IReactorTime

Now = Callable[[], Instant]
"""``now()`` returns the current time of the injected clock."""


class ClockAndRandomness(Struct, frozen=True):
    """The sources of time and randomness.

    :param now: returns the time of day, which may be changed.
    :param expiry_now: returns the time for comparison with expiry times. Changes of the time of
        day do not shorten how long things are stored.
    :param clock: the monotonic clock, for timeouts and periodic work.
    :param random_bytes: returns bytes suitable for secrets.
    """

    now: Now
    expiry_now: Now
    clock: IReactorTime
    random_bytes: RandomBytes


CallSoon = Callable[[Callable[[], object]], object]
"""Schedules a call for the end of the current reactor iteration. Calls keep their order."""
