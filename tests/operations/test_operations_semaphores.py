"""The semaphore: limits for all and per owner, and fair turns for waiting tasks."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from mailcheck.operations.semaphores import FairSemaphore, NoPermit
from tests.house import result_of
from tests.table import rows


class Room:
    """A semaphore, and the owners that hold permits."""

    def __init__(self, *, limit: int = 2, per_owner: int = 2, max_waiting: int = 10) -> None:
        self.clock = Clock()
        self.semaphore: FairSemaphore[str] = FairSemaphore(
            self.clock, limit=limit, per_owner=per_owner, max_waiting=max_waiting
        )
        self.inside: list[str] = []
        self.turned_away: list[str] = []

    def come(self, owner: str, patience: float = 1.0) -> Deferred[None]:
        """Request a permit."""
        taking = Deferred.fromCoroutine(self.semaphore.acquire(owner, patience))
        return taking.addCallbacks(
            lambda _: self.inside.append(owner), self._turn_away, errbackArgs=(owner,)
        )

    def go(self, owner: str) -> None:
        """Release a permit."""
        self.inside.remove(owner)
        self.semaphore.release(owner)

    def _turn_away(self, failure: Failure, owner: str) -> None:
        failure.trap(NoPermit, CancelledError)
        self.turned_away.append(owner)


def test_the_longest_waiting_task_is_next() -> None:
    """A released permit goes to the task that has waited longest."""
    room = Room()
    for owner in "abcd":
        room.come(owner)
    assert room.inside == ["a", "b"]
    room.go("a")
    assert room.inside == ["b", "c"]
    room.go("c")
    assert room.inside == ["b", "d"]
    room.go("b")
    room.go("d")
    assert not room.clock.getDelayedCalls()


def test_an_owner_at_its_limit_is_passed_by() -> None:
    """An owner at its limit waits, without blocking the owners behind it."""
    room = Room(limit=3, per_owner=2)
    for owner in "aaab":
        room.come(owner)
    assert room.inside == ["a", "a", "b"]
    room.come("c")
    room.go("b")
    assert room.inside == ["a", "a", "c"]
    room.go("a")
    assert room.inside == ["a", "c", "a"]


def test_a_timeout() -> None:
    """A task that waits longer than its timeout gets no permit, then or later."""
    room = Room(limit=1)
    room.come("a")
    room.come("b", patience=1.0)
    room.come("c", patience=3.0)
    room.clock.advance(1)
    assert room.turned_away == ["b"]
    room.go("a")
    assert room.inside == ["c"]


@rows(0.0, -1.0)
def test_without_patience(patience: float) -> None:
    """Without a timeout, a task gets a free permit or none."""
    room = Room(limit=1)
    room.come("a", patience)
    room.come("b", patience)
    assert (room.inside, room.turned_away) == (["a"], ["b"])


def test_the_queue_is_bounded() -> None:
    """When the queue is full, a task is rejected at once."""
    room = Room(limit=1, max_waiting=1)
    for owner in "abc":
        room.come(owner)
    assert (room.inside, room.turned_away) == (["a"], ["c"])


def test_owners_take_turns() -> None:
    """Owners take turns, so an owner with fifty requests does not delay the others."""
    room = Room(limit=1, per_owner=1, max_waiting=100)
    for owner in ["a"] * 50 + ["b"] * 3 + ["c"]:
        room.come(owner)
    served = []
    while room.inside:
        served += room.inside
        room.go(room.inside[0])
    assert "".join(served[:9]) == "aabcababa"
    assert len(served) == 54


def test_the_owner_with_most_waiting_tasks_makes_room() -> None:
    """In a full queue, the owner with the most waiting tasks loses its newest one to others."""
    room = Room(limit=1, max_waiting=4)
    for owner in "aaaaa":
        room.come(owner)
    for owner in "bbb":
        room.come(owner)
    assert room.turned_away == ["a", "a", "b"]
    served = []
    while room.inside:
        served += room.inside
        room.go(room.inside[0])
    assert "".join(served) == "aabab"


def test_a_cancelled_wait() -> None:
    """A wait that is cancelled leaves the queue."""
    room = Room(limit=1)
    room.come("a")
    room.come("b").cancel()
    room.come("c")
    room.go("a")
    assert (room.inside, room.turned_away) == (["c"], ["b"])


def test_a_long_queue_of_short_tasks() -> None:
    """Hundreds of tasks that end at once are served in order."""
    room = Room(limit=1, max_waiting=500)
    room.come("first")
    done: list[int] = []

    async def come_and_go(number: int) -> None:
        await room.semaphore.acquire("a", 1.0)
        room.semaphore.release("a")
        done.append(number)

    for number in range(500):
        Deferred.fromCoroutine(come_and_go(number))
    room.go("first")
    assert done == list(range(500))
    room.come("last")
    assert room.inside == ["last"]
    assert not room.clock.getDelayedCalls()


def test_the_error_and_the_context_manager() -> None:
    """The error says whether the owner's limit was reached. A block holds one permit."""
    places: FairSemaphore[str] = FairSemaphore(Clock(), limit=2, per_owner=1)

    async def have() -> list[bool]:
        found = []
        async with places.held("a"):
            for owner in "ab":
                with pytest.raises(NoPermit) as caught:
                    async with places.held(owner), places.held("c"):
                        pass
                found.append(caught.value.is_owner_limit)
        async with places.held("a"), places.held("b"):
            return found

    assert result_of(Deferred.fromCoroutine(have())) == [True, False]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=60))
def test_limits_hold_and_no_permit_is_lost(steps: list[tuple[str, bool]]) -> None:
    """In any order of calls, no limit is exceeded and no free permit is left unused."""
    room = Room(limit=3, per_owner=2, max_waiting=5)
    waiting: Counter[str] = Counter()
    for owner, is_coming in steps:
        if is_coming:
            room.come(owner)
            waiting[owner] += 1
        elif owner in room.inside:
            room.go(owner)
            waiting[owner] -= 1
        inside = Counter(room.inside)
        outside = waiting - inside - Counter(room.turned_away)
        assert inside.total() <= 3
        assert max(inside.values(), default=0) <= 2
        if inside.total() < 3:
            assert all(inside[one] == 2 for one in outside)
