"""A lane that is warmed up runs one call first, and is an ordinary lane then."""

from mailcheck.lanes.direct import DirectLane
from mailcheck.lanes.warmed import WarmedLane
from tests.house import result_of


def test_the_first_call_comes_before_all_others() -> None:
    """Starting the lane runs the first call; later calls give their own results."""
    ran: list[int] = []
    lane = WarmedLane(DirectLane(), lambda: ran.append(1))
    assert ran == []
    lane.start()
    assert ran == [1]
    assert result_of(lane.run(lambda: 2)) == 2
    assert lane.stop() is None
    assert ran == [1]


def test_a_first_call_that_fails_stops_nobody() -> None:
    """A failing first call is noted, and the lane works."""

    def fail() -> None:
        raise ValueError("not now")

    lane = WarmedLane(DirectLane(), fail)
    lane.start()
    assert result_of(lane.run(lambda: 2)) == 2
