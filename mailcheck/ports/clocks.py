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
"""``now()`` reads the injected clock."""


class ClockAndRandomness(Struct, frozen=True):
    """What no two runs have alike: whoever needs more than one of it takes it as a whole.

    :param now: gives the time of day, which may be set.
    :param expiry_now: gives the moment up to which things have expired: they are kept no shorter
        for the time of day being set.
    :param clock: nobody sets it: time-outs and periodic work run on it.
    :param random_bytes: is fit for secrets.
    """

    now: Now
    expiry_now: Now
    clock: IReactorTime
    random_bytes: RandomBytes


CallSoon = Callable[[Callable[[], object]], object]
"""Calls what it is given as soon as what is being done now is done, in the order of the asking."""
