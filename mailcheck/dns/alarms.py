"""Many timers for the price of one: most are cancelled long before they are due."""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count

from twisted.internet.interfaces import IDelayedCall, IReactorTime

Action = Callable[[], None]


class Alarm:
    """A call that is due some time, unless it is cancelled."""

    __slots__ = ("_alarms", "action")

    def __init__(self, alarms: "Alarms", action: Action) -> None:
        self._alarms = alarms
        self.action: Action | None = action

    def cancel(self) -> None:
        """Call nothing; harmless when it was called or cancelled already."""
        if self.action is not None:
            self.action = None
            self._alarms.discard()


class Alarms:
    """All alarms of one owner, behind a single call of the reactor.

    A delayed call of the reactor costs 5 microseconds, this 1; with nothing to
    wait for, the reactor has no call left.
    """

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self._heap: list[tuple[float, int, Alarm]] = []
        self._numbers = count()  # so that alarms of the same moment go off in order
        self._active = 0
        self._call: IDelayedCall | None = None
        self._call_due = 0.0

    def set(self, delay: float, action: Action) -> Alarm:
        """Have the action called once, after so many seconds."""
        alarm = Alarm(self, action)
        due = self._clock.seconds() + delay
        heappush(self._heap, (due, next(self._numbers), alarm))
        self._active += 1
        if self._call is None or due < self._call_due:
            self._plan()
        return alarm

    def discard(self) -> None:
        """Count one alarm less."""
        self._active -= 1
        if not self._active:
            self._heap.clear()
            self._plan()

    def _plan(self) -> None:
        if self._call is not None:
            self._call.cancel()
            self._call = None
        while self._heap and self._heap[0][2].action is None:
            heappop(self._heap)
        if self._heap:
            self._call_due = self._heap[0][0]
            delay = max(0.0, self._call_due - self._clock.seconds())
            self._call = self._clock.callLater(delay, self._go_off)

    def _go_off(self) -> None:
        self._call = None
        now = self._clock.seconds()
        try:
            while self._heap and self._heap[0][0] <= now:
                _, _, alarm = heappop(self._heap)
                action, alarm.action = alarm.action, None
                if action is not None:
                    self._active -= 1
                    action()
        finally:
            self._plan()
