"""Sockets that have a short time in each turn of the reactor."""

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
    """A clock that has one descriptor to watch."""

    watched: Any = None

    def addReader(self, descriptor: Any) -> None:
        """Watch it."""
        self.watched = descriptor


class Ready(FileDescriptor):
    """A socket that stays ready; each time it is served takes a turn."""

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
        """Give its descriptor."""
        return self._pair.fileno()

    def doRead(self) -> None:
        """Note it."""
        self._served.append(self._number)
        self.clock.advance(TURN)

    def connectionLost(self, reason: Failure) -> None:
        """Count it."""
        self.lost += 1


@pytest.fixture
def main() -> MainReactor:
    """Give the main reactor."""
    return MainReactor()


@pytest.fixture
def turns(main: MainReactor) -> Iterator[ShortTurns]:
    """Give the reactor beside it."""
    turns = ShortTurns(main)
    yield turns
    turns._poller.close()


@pytest.fixture
def served() -> list[int]:
    """Give the numbers of the sockets in the order in which they are served."""
    return []


@pytest.fixture
def crowd(main: MainReactor, turns: ShortTurns, served: list[int]) -> Iterator[list[Ready]]:
    """Give sockets that are all ready to be read."""
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
    """A turn ends when its time is over, and each socket has its own before any has a second."""
    assert main.watched is turns
    for turn in range(1, CROWD // AT_A_TIME + 1):
        main.watched.doRead()
        assert len(served) == turn * AT_A_TIME
    main.watched.doRead()
    assert sorted(served[:CROWD]) == list(range(CROWD))


def test_one_that_is_closed_by_another_is_not_served(
    main: MainReactor, turns: ShortTurns, served: list[int], crowd: list[Ready]
) -> None:
    """A socket that was ready and has been closed since is left alone."""
    first, *others = crowd

    def close_others() -> None:
        main.advance(TURN)
        for one in others:
            turns.removeReader(one)

    first.doRead = close_others  # type: ignore[method-assign]
    main.watched.doRead()
    assert served == []


def test_nothing_ready_is_no_work(main: MainReactor, served: list[int]) -> None:
    """A turn in which nothing is ready ends at once."""
    turns = ShortTurns(main)
    turns.doRead()
    turns._poller.close()
    assert main.seconds() == 0
    assert served == []


def test_it_ends_with_the_main_reactor(main: MainReactor, crowd: list[Ready]) -> None:
    """When the main reactor ends, each socket is told so once."""
    main.watched.connectionLost(Failure(CONNECTION_DONE))
    assert [one.lost for one in crowd] == [1] * CROWD


def test_time_and_threads_are_those_of_the_main_reactor(main: MainReactor) -> None:
    """What is called later, by time, is called by the main reactor."""
    turns = ShortTurns(main)
    called: list[object] = []
    turns.callLater(2, called.append, "now")
    main.advance(1)
    assert called == []
    main.advance(1)
    turns._poller.close()
    assert called == ["now"]
    assert turns.seconds() == 2
