"""Detection of bursts of mail, with a clock that tests advance."""

from collections.abc import Callable
from functools import partial

import pytest
from twisted.internet.task import Clock

from mailcheck.engines.database import call_immediately
from mailcheck.operations.concurrency import GATHERING, QUIET, STEP, MailTraffic


@pytest.fixture
def clock() -> Clock:
    """A clock at some moment."""
    clock = Clock()
    clock.advance(1_000)
    return clock


def test_silence(clock: Clock) -> None:
    """Before any mail, and some time after one, the machine counts as idle."""
    traffic = MailTraffic(clock, call_immediately)
    assert not traffic.is_busy
    traffic.note_stored()
    assert traffic.is_busy
    assert traffic.seconds_until_idle() == pytest.approx(QUIET)
    clock.advance(QUIET / 2)
    assert traffic.seconds_until_idle() == pytest.approx(QUIET / 2)
    clock.advance(QUIET)
    assert not traffic.is_busy


def test_a_long_burst(clock: Clock) -> None:
    """The wait for the end of a burst is limited. After a pause, another burst begins."""
    traffic = MailTraffic(clock, call_immediately)
    for _ in range(9):
        traffic.note_stored()
        assert traffic.seconds_until_idle(QUIET * 4) > 0 or clock.seconds() >= 1_000 + QUIET * 4
        clock.advance(QUIET / 2)
    traffic.note_stored()
    assert traffic.seconds_until_idle(QUIET * 4) == 0
    assert traffic.is_busy
    clock.advance(QUIET * 2)
    traffic.note_stored()
    assert traffic.seconds_until_idle(QUIET * 4) > 0


def test_a_clock_set_back(clock: Clock) -> None:
    """Setting the clock back ends the burst."""
    traffic = MailTraffic(clock, call_immediately)
    traffic.note_stored()
    clock.rightNow -= 3_600
    assert not traffic.is_busy
    traffic.note_stored()
    assert traffic.seconds_until_idle(1.0) == pytest.approx(QUIET)


class PacedQueue:
    """A queue and a simulated reactor, which runs scheduled calls in its next iteration."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.traffic = MailTraffic(clock, self._call_soon)
        self.called: list[str] = []
        self._calls: list[Callable[[], object]] = []

    def _call_soon(self, call: Callable[[], object]) -> None:
        self._calls.append(call)

    def gather(self, name: str) -> None:
        """Request a call, identified by a name."""
        self.traffic.call_batched(partial(self.called.append, name))

    def take(self) -> list[str]:
        """Run one iteration, and return the names of the calls so far."""
        calls, self._calls = self._calls, []
        for call in calls:
            call()
        return self.called


def test_without_mail_calls_run_at_once(clock: Clock) -> None:
    """Without incoming mail, a requested call runs in the next iteration."""
    turns = PacedQueue(clock)
    turns.traffic.note_progress("a")
    turns.traffic.note_end("a")
    turns.gather("first")
    assert turns.take() == ["first"]


def test_calls_of_a_burst_are_gathered(clock: Clock) -> None:
    """Calls during a burst run once, when its last mail has arrived."""
    turns = PacedQueue(clock)
    for mail in ("a", "b", "c"):
        turns.traffic.note_progress(mail)
    for mail in ("a", "b"):
        turns.gather(mail)
        turns.traffic.note_end(mail)
        assert turns.take() == []
    turns.gather("c")
    turns.traffic.note_end("c")
    assert turns.take() == ["a", "b", "c"]


def test_a_stalled_mail_delays_briefly(clock: Clock) -> None:
    """A stalled mail delays calls by at most one step."""
    turns = PacedQueue(clock)
    turns.traffic.note_progress("slow")
    turns.gather("first")
    assert turns.take() == []
    clock.advance(STEP)
    assert turns.called == ["first"]
    turns.gather("second")
    assert turns.take() == ["first", "second"]
    assert clock.getDelayedCalls() == []


def test_a_mail_that_is_rejected_ends_the_wait(clock: Clock) -> None:
    """When the last expected mail is rejected or aborted, the others are written at once."""
    turns = PacedQueue(clock)
    turns.traffic.note_progress("refused")
    turns.gather("first")
    assert turns.take() == []
    turns.traffic.note_end("refused")
    assert turns.take() == ["first"]
    clock.advance(STEP)
    assert turns.take() == ["first"]
    assert clock.getDelayedCalls() == []


def test_a_steady_stream_is_bounded(clock: Clock) -> None:
    """If every step brings more mail, a call waits for a limited time only."""
    turns = PacedQueue(clock)
    turns.traffic.note_progress("a")
    turns.gather("first")
    assert turns.take() == []
    waited = 0.0
    while not turns.called:
        assert waited < 2 * GATHERING
        clock.advance(STEP / 2)
        waited += STEP / 2
        turns.traffic.note_progress("a")
    assert waited == pytest.approx(GATHERING, abs=1.5 * STEP)


def test_a_flush_ends_the_wait(clock: Clock) -> None:
    """A flush ends the wait for further mails."""
    turns = PacedQueue(clock)
    for mail in ("a", "b"):
        turns.traffic.note_progress(mail)
    turns.gather("a")
    turns.traffic.note_end("a")
    turns.traffic.flush()
    assert turns.take() == ["a"]
