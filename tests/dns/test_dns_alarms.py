"""Many timers behind one call of the reactor."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.task import Clock

from mailcheck.dns.alarms import Alarm, Alarms


def test_alarm_goes_off() -> None:
    """An alarm goes off when it is due, once."""
    clock, calls = Clock(), []
    alarms = Alarms(clock)
    alarms.set(1.0, lambda: calls.append(clock.seconds()))
    clock.advance(0.9)
    assert calls == []
    clock.pump([0.1, 5.0])
    assert calls == [1.0]
    assert clock.getDelayedCalls() == []


def test_alarm_cancelled() -> None:
    """A cancelled alarm does not go off, and with nothing to wait for nothing is left."""
    clock, calls = Clock(), []
    alarms = Alarms(clock)
    alarm = alarms.set(1.0, lambda: calls.append("cancelled"))
    alarm.cancel()
    alarm.cancel()
    assert clock.getDelayedCalls() == []
    alarms.set(2.0, lambda: calls.append("due"))
    clock.advance(2.0)
    assert calls == ["due"]
    alarm.cancel()


def test_alarm_one_call() -> None:
    """However many alarms are set, the reactor has one call."""
    clock = Clock()
    alarms = Alarms(clock)
    for delay in (3.0, 1.0, 2.0):
        alarms.set(delay, lambda: None)
    assert [call.getTime() for call in clock.getDelayedCalls()] == [1.0]


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=30))
def test_alarm_order(plan: list[tuple[int, bool]]) -> None:
    """Alarms go off at their time and in order, those of the same moment as they were set."""
    clock = Clock()
    alarms = Alarms(clock)
    calls: list[tuple[float, int]] = []
    kept: list[tuple[float, int]] = []
    cancelled: list[Alarm] = []
    for number, (delay, is_kept) in enumerate(plan):
        alarm = alarms.set(delay, lambda number=number: calls.append((clock.seconds(), number)))  # type: ignore[misc]
        if is_kept:
            kept.append((float(delay), number))
        else:
            cancelled.append(alarm)
    for alarm in cancelled:
        alarm.cancel()
    clock.pump([0.0] + [1.0] * 10)
    assert calls == sorted(kept)
    assert clock.getDelayedCalls() == []


def test_alarm_sets_and_cancels_others() -> None:
    """An alarm that goes off may set alarms and cancel others."""
    clock, calls = Clock(), []
    alarms = Alarms(clock)

    def rearrange() -> None:
        other.cancel()
        alarms.set(1.0, lambda: calls.append("set"))

    alarms.set(1.0, rearrange)
    other = alarms.set(1.0, lambda: calls.append("cancelled"))
    clock.pump([1.0, 1.0])
    assert calls == ["set"]
    assert clock.getDelayedCalls() == []


def test_alarm_that_fails() -> None:
    """An alarm that fails does not silence the others."""
    clock, calls = Clock(), []
    alarms = Alarms(clock)
    alarms.set(1.0, lambda: calls.append(1 // 0))
    alarms.set(2.0, lambda: calls.append(2))
    with pytest.raises(ZeroDivisionError):
        clock.advance(1.0)
    clock.advance(1.0)
    assert calls == [2]
