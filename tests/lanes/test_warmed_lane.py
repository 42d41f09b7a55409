"""A lane that is warmed up runs one call by itself, and is an ordinary lane."""

from twisted.internet.task import Clock

from mailcheck.lanes.direct import DirectLane
from mailcheck.lanes.warmed import WarmedLane
from tests.house import result_of


def test_the_first_call_runs_some_seconds_after_the_start() -> None:
    """Nothing runs while the daemon gets ready; then the first call does, once."""
    ran: list[int] = []
    clock = Clock()
    lane = WarmedLane(DirectLane(), lambda: ran.append(1), clock, 2)
    lane.start()
    clock.advance(1.9)
    assert ran == []
    clock.advance(0.1)
    assert ran == [1]
    clock.advance(10)
    assert ran == [1]
    assert lane.stop() is None


def test_calls_do_not_wait_for_it() -> None:
    """A call that comes earlier is run at once."""
    lane = WarmedLane(DirectLane(), lambda: None, Clock(), 2)
    lane.start()
    assert result_of(lane.run(lambda: 2)) == 2
    lane.stop()


def test_a_lane_that_is_stopped_before_runs_nothing_more() -> None:
    """Stopping leaves no timer behind."""
    clock = Clock()
    lane = WarmedLane(DirectLane(), lambda: None, clock, 2)
    lane.start()
    lane.stop()
    assert clock.getDelayedCalls() == []


def test_a_first_call_that_fails_stops_nobody() -> None:
    """A failing first call is noted, and the lane works."""

    def fail() -> None:
        raise ValueError("not now")

    clock = Clock()
    lane = WarmedLane(DirectLane(), fail, clock, 2)
    lane.start()
    clock.advance(2)
    assert result_of(lane.run(lambda: 2)) == 2
