"""Whether mail is coming in, on a clock that tests turn."""

from functools import partial

import pytest
from twisted.internet.task import Clock

from mailcheck.operations.concurrency import GATHERING, QUIET, MailTraffic
from mailcheck.storage.group_commit import at_once


@pytest.fixture
def clock() -> Clock:
    """A clock at some moment."""
    clock = Clock()
    clock.advance(1_000)
    return clock


def test_silence(clock: Clock) -> None:
    """Before any mail, and a moment after one, the machine counts as idle."""
    traffic = MailTraffic(clock, at_once)
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
    traffic = MailTraffic(clock, at_once)
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
    traffic = MailTraffic(clock, at_once)
    traffic.note()
    clock.rightNow -= 3_600
    assert not traffic.is_flowing
    traffic.note()
    assert traffic.seconds_until_quiet(1.0) == pytest.approx(QUIET)


def test_alone_nothing_waits(clock: Clock) -> None:
    """Where no mail is coming in, what is to be written is not put off."""
    traffic = MailTraffic(clock, at_once)
    called: list[str] = []
    traffic.gather(lambda: called.append("first"))
    assert called == ["first"]
    assert clock.getDelayedCalls() == []


def test_those_that_come_together_are_gathered(clock: Clock) -> None:
    """What asks while mails are coming in is called when the last of them is there, in order."""
    traffic = MailTraffic(clock, at_once)
    called: list[str] = []
    for mail in ("a", "b", "c"):
        traffic.begun(mail)
    for mail in ("a", "b"):
        traffic.gather(partial(called.append, mail))
        traffic.ended(mail)
        assert called == []
    traffic.ended("c")
    assert called == ["a", "b"]
    assert clock.getDelayedCalls() == []


def test_no_mail_is_waited_for_that_takes_its_time(clock: Clock) -> None:
    """Who holds his mail back, for whatever reason, keeps nobody waiting but for a moment."""
    traffic = MailTraffic(clock, at_once)
    called: list[str] = []
    traffic.begun("slow")
    traffic.gather(lambda: called.append("first"))
    assert called == []
    clock.advance(GATHERING)
    assert called == ["first"]
    traffic.gather(lambda: called.append("second"))
    traffic.begun("quick")
    traffic.gather(lambda: called.append("third"))
    traffic.ended("quick")
    assert called == ["first", "second", "third"]
    traffic.ended("slow")
    assert clock.getDelayedCalls() == []
