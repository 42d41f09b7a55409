"""Notices when nothing happens for too long."""

import math
from collections.abc import Callable

from twisted.internet.interfaces import IDelayedCall, IReactorTime


class Watchdog:
    """Calls ``on_silence`` once, when `pat` has not been called for some seconds.

    A pat only notes the time: the timer looks when it goes off whether it was
    patted, and goes on.
    """

    __slots__ = ("_call", "_clock", "_due", "_on_silence", "_seconds")

    def __init__(self, clock: IReactorTime, on_silence: Callable[[], None]) -> None:
        self._clock = clock
        self._on_silence = on_silence
        self._seconds = 0.0
        self._due = 0.0
        self._call: IDelayedCall | None = None

    def watch(self, seconds: float) -> None:
        """Start to watch, or watch with another patience."""
        self.stop()
        self._seconds = seconds
        self._due = self._clock.seconds() + seconds
        self._call = self._clock.callLater(seconds, self._look)

    def pat(self, deadline: float = math.inf) -> None:
        """Note that something happened; it must be over by the deadline nevertheless."""
        self._due = min(self._clock.seconds() + self._seconds, deadline)

    def stop(self) -> None:
        """Watch no more."""
        if self._call is not None:
            self._call.cancel()
            self._call = None

    def _look(self) -> None:
        left = self._due - self._clock.seconds()
        if left > 0:
            self._call = self._clock.callLater(left, self._look)
        else:
            self._call = None
            self._on_silence()
