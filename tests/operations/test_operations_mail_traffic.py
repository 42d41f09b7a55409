"""Whether mail is coming in, on a clock that tests turn."""

import pytest
from twisted.internet.task import Clock

from mailcheck.operations.concurrency import QUIET, MailTraffic


@pytest.fixture
def clock() -> Clock:
    """A clock at some moment."""
    clock = Clock()
    clock.advance(1_000)
    return clock


def test_silence(clock: Clock) -> None:
    """Before any mail, and a moment after one, the machine counts as idle."""
    traffic = MailTraffic(clock)
    assert not traffic.is_flowing
    traffic.note()
    assert traffic.is_flowing
    assert traffic.seconds_until_quiet() == pytest.approx(QUIET)
    clock.advance(QUIET / 2)
    assert traffic.seconds_until_quiet() == pytest.approx(QUIET / 2)
    clock.advance(QUIET)
    assert not traffic.is_flowing


def test_a_long_burst(clock: Clock) -> None:
    """Who waits for a burst to end need not wait for ever; a pause begins another burst."""
    traffic = MailTraffic(clock)
    for _ in range(9):
        traffic.note()
        assert traffic.seconds_until_quiet(QUIET * 4) > 0 or clock.seconds() >= 1_000 + QUIET * 4
        clock.advance(QUIET / 2)
    traffic.note()
    assert traffic.seconds_until_quiet(QUIET * 4) == 0
    assert traffic.is_flowing
    clock.advance(QUIET * 2)
    traffic.note()
    assert traffic.seconds_until_quiet(QUIET * 4) > 0


def test_a_clock_set_back(clock: Clock) -> None:
    """A clock that was set back ends the burst: nothing waits until it has caught up."""
    traffic = MailTraffic(clock)
    traffic.note()
    clock.rightNow -= 3_600
    assert not traffic.is_flowing
    traffic.note()
    assert traffic.seconds_until_quiet(1.0) == pytest.approx(QUIET)
