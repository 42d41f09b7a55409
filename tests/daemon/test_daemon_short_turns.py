"""A reactor for sockets with a bounded time in each iteration of the main reactor."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from twisted.internet.abstract import FileDescriptor
from twisted.internet.main import CONNECTION_DONE
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from mailcheck.daemon.short_turns import AT_A_TIME, TURN, ShortTurns

CROWD = 50


class MainReactor(Clock):
    """A main reactor with a clock and one descriptor."""

    watched: Any = None

    def addReader(self, descriptor: Any) -> None:
        """Record the descriptor."""
        self.watched = descriptor


class Ready(FileDescriptor):
    """A socket that is always ready and takes time when it is served."""

    def __init__(
        self, number: int, pair: socket.socket, turns: ShortTurns, clock: Clock, served: list[int]
    ) -> None:
        super().__init__(turns)
        self.clock = clock
        self._number = number
        self._served = served
        self._pair = pair
        self.lost = 0

    def fileno(self) -> int:
        """Return its descriptor."""
        return self._pair.fileno()

    def doRead(self) -> None:
        """Record the call."""
        self._served.append(self._number)
        self.clock.advance(TURN)

    def connectionLost(self, reason: Failure) -> None:
        """Record the call."""
        self.lost += 1


@pytest.fixture
def main() -> MainReactor:
    """The main reactor."""
    return MainReactor()


@pytest.fixture
def turns(main: MainReactor) -> Iterator[ShortTurns]:
    """The bounded reactor."""
    turns = ShortTurns(main)
    yield turns
    turns._poller.close()


@pytest.fixture
def served() -> list[int]:
    """The numbers of the sockets in the order in which they are served."""
    return []


@pytest.fixture
def crowd(main: MainReactor, turns: ShortTurns, served: list[int]) -> Iterator[list[Ready]]:
    """Sockets that are all ready to be read."""
    with ExitStack() as stack:
        crowd = []
        for number in range(CROWD):
            ours, theirs = map(stack.enter_context, socket.socketpair())
            theirs.send(b"x")
            crowd.append(Ready(number, ours, turns, main, served))
            turns.addReader(crowd[-1])
        yield crowd
        for one in crowd:
            turns.removeReader(one)


@pytest.mark.usefixtures("crowd")
def test_a_turn_serves_a_few_however_many_are_ready(
    main: MainReactor, turns: ShortTurns, served: list[int]
) -> None:
    """An iteration ends after its time, and all sockets are served before any is again."""
    assert main.watched is turns
    for turn in range(1, CROWD // AT_A_TIME + 1):
        main.watched.doRead()
        assert len(served) == turn * AT_A_TIME
    main.watched.doRead()
    assert sorted(served[:CROWD]) == list(range(CROWD))


def test_one_that_is_closed_by_another_is_not_served(
    main: MainReactor, turns: ShortTurns, served: list[int], crowd: list[Ready]
) -> None:
    """A ready socket that was closed meanwhile is skipped."""
    first, *others = crowd

    def close_others() -> None:
        main.advance(TURN)
        for one in others:
            turns.removeReader(one)

    first.doRead = close_others  # type: ignore[method-assign]
    main.watched.doRead()
    assert served == []


def test_nothing_ready_is_no_work(main: MainReactor, served: list[int]) -> None:
    """An iteration without ready sockets ends at once."""
    turns = ShortTurns(main)
    turns.doRead()
    turns._poller.close()
    assert main.seconds() == 0
    assert served == []


def test_it_ends_with_the_main_reactor(main: MainReactor, crowd: list[Ready]) -> None:
    """When the main reactor ends, each socket is closed once."""
    main.watched.connectionLost(Failure(CONNECTION_DONE))
    assert [one.lost for one in crowd] == [1] * CROWD


def test_time_and_threads_are_those_of_the_main_reactor(main: MainReactor) -> None:
    """Delayed calls run in the main reactor."""
    turns = ShortTurns(main)
    called: list[object] = []
    turns.callLater(2, called.append, "now")
    main.advance(1)
    assert called == []
    main.advance(1)
    turns._poller.close()
    assert called == ["now"]
    assert turns.seconds() == 2
