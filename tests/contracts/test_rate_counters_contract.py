"""The contract of `RateCounters`."""

import random

import pytest
from pytest_twisted import ensureDeferred

from mailcheck.core.memory.client_limits import DAY_WINDOW, MINUTE_WINDOW
from mailcheck.core.memory.keys import key_of
from mailcheck.ports.cluster import Hit, RateCounters
from tests.contracts.conftest import PersistentState
from tests.table import rows


@pytest.fixture
def counters(persistent_state: PersistentState) -> RateCounters:
    """Each implementation, without counts."""
    return persistent_state.counters


def one(
    subject: str = "key",
    minute: int = 0,
    day: int = 0,
    limits: tuple[int, int] = (60, 1000),
    amount: int = 1,
) -> Hit:
    """Return a request."""
    windows = ((MINUTE_WINDOW, minute, limits[0]), (DAY_WINDOW, day, limits[1]))
    return Hit(key_of(subject), windows, amount)


async def hit(counters: RateCounters, *hits: Hit) -> list[list[int]]:
    """Count requests."""
    return await counters.hit(*(hits or (one(),)))


@ensureDeferred
async def test_counters_count(counters: RateCounters) -> None:
    """Each request adds one in each of its windows."""
    assert [await hit(counters) for _ in range(3)] == [[[1, 1]], [[2, 2]], [[3, 3]]]


@ensureDeferred
async def test_counters_of_subjects(counters: RateCounters) -> None:
    """Subjects are counted independently, also in one call."""
    assert await hit(counters, one("a"), one("b"), one("a")) == [[1, 1], [1, 1], [2, 2]]


@ensureDeferred
async def test_a_new_window(counters: RateCounters) -> None:
    """A new window begins at 0 while the longer one continues."""
    assert await hit(counters, one(minute=7), one(minute=8)) == [[1, 1], [1, 2]]
    assert await hit(counters, one(minute=8, day=1)) == [[2, 1]]


@ensureDeferred
async def test_counters_over_a_limit(counters: RateCounters) -> None:
    """A request over the limit of one window is counted in none, and gets the counts with it."""
    over = [await hit(counters, one(limits=(2, 9))) for _ in range(4)]
    assert over == [[[1, 1]], [[2, 2]], [[3, 3]], [[3, 3]]]
    assert await hit(counters, one(minute=1, limits=(2, 3))) == [[1, 3]]
    assert await hit(counters, one(minute=1, limits=(2, 3))) == [[2, 4]]
    assert await hit(counters, one(minute=1, limits=(2, 4))) == [[2, 4]]


@ensureDeferred
async def test_a_raised_limit(counters: RateCounters) -> None:
    """Limits come with each request, so a raised limit takes effect at once."""
    await hit(counters, one(limits=(1, 9)))
    assert await hit(counters, one(limits=(1, 9))) == [[2, 2]]
    assert await hit(counters, one(limits=(2, 9))) == [[2, 2]]
    assert await hit(counters, one(limits=(0, 0))) == [[3, 3]]


@ensureDeferred
async def test_amounts(counters: RateCounters) -> None:
    """Several requests are counted all or not at all; an amount of 0 only reads the counts."""
    assert await hit(counters, one(amount=5, limits=(6, 9))) == [[5, 5]]
    assert await hit(counters, one(amount=2, limits=(6, 9))) == [[7, 7]]
    assert await hit(counters, one(amount=0, limits=(6, 9))) == [[5, 5]]
    assert await hit(counters, one(amount=1, limits=(6, 9))) == [[6, 6]]


@ensureDeferred
async def test_counters_of_many_subjects(counters: RateCounters) -> None:
    """With any number of subjects, none is forgotten within its window."""
    for first in range(0, 12_000, 1_000):
        minute = first // 4_000
        await hit(counters, *(one(f"subject {n}", minute) for n in range(first, first + 1_000)))
    assert await hit(counters, one("subject 11999", 2), one("subject 8000", 2)) == [[2, 2], [2, 2]]
    assert await hit(counters, one("subject 0", 3)) == [[1, 2]]


@ensureDeferred
@rows(*range(10))
async def test_counters_never_grant_more(counters: RateCounters, seed: int) -> None:
    """No window grants more requests than its limit, and none is rejected below it."""
    chance = random.Random(seed)
    granted: dict[tuple[str, str, int], int] = {}
    for minute in sorted(chance.choices([0, 1, 2, 10, 11, 12], k=40)):
        subject = f"{seed} {chance.choice('ab')}"
        day, amount = minute // 10, chance.randrange(3)
        ((counted, today),) = await hit(counters, one(subject, minute, day, (3, 5), amount))
        keys = [(subject, "minute", minute), (subject, "day", day)]
        assert [counted, today] == [granted.get(key, 0) + amount for key in keys]
        if counted <= 3 and today <= 5:
            for key in keys:
                granted[key] = granted.get(key, 0) + amount
