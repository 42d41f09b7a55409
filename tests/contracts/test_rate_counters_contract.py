"""What every `RateCounters` promises."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailcheck.cluster.local import LocalRateCounters
from mailcheck.operations.ports import RateCounters
from tests.house import result_of

IMPLEMENTATIONS: dict[str, Callable[[], RateCounters]] = {"in this process": LocalRateCounters}


@pytest.fixture(params=list(IMPLEMENTATIONS))
def make(request: pytest.FixtureRequest) -> Callable[[], RateCounters]:
    """Give what makes each implementation."""
    return IMPLEMENTATIONS[request.param]


def hit(
    counters: RateCounters,
    subject: str = "key",
    minute: int = 0,
    day: int = 0,
    limits: tuple[int, int] = (60, 1000),
) -> list[int]:
    """Count a request."""
    windows = [("minute", minute, limits[0]), ("day", day, limits[1])]
    counts: list[int] = result_of(counters.hit(subject, windows))
    return counts


def test_counters_count(make: Callable[[], RateCounters]) -> None:
    """Each request is one more, in every window it is counted in."""
    counters = make()
    assert [hit(counters) for _ in range(3)] == [[1, 1], [2, 2], [3, 3]]


def test_counters_of_subjects(make: Callable[[], RateCounters]) -> None:
    """Subjects do not take from each other."""
    counters = make()
    hit(counters, "one")
    assert hit(counters, "other") == [1, 1]


def test_counters_begin_anew(make: Callable[[], RateCounters]) -> None:
    """A new window begins at nothing while the longer one goes on."""
    counters = make()
    hit(counters, minute=7)
    assert hit(counters, minute=8) == [1, 2]
    assert hit(counters, minute=8, day=1) == [2, 1]


def test_counters_over_a_limit(make: Callable[[], RateCounters]) -> None:
    """A request over the limit of one window is counted in none, and is told what it would be."""
    counters = make()
    assert [hit(counters, limits=(2, 9)) for _ in range(4)] == [[1, 1], [2, 2], [3, 3], [3, 3]]
    assert hit(counters, minute=1, limits=(2, 3)) == [1, 3]
    assert hit(counters, minute=1, limits=(2, 3)) == [2, 4]
    assert hit(counters, minute=1, limits=(2, 4)) == [2, 4]


def test_counters_of_a_limit_that_was_raised(make: Callable[[], RateCounters]) -> None:
    """Limits come with each request: a raised one takes effect at once."""
    counters = make()
    hit(counters, limits=(1, 9))
    assert hit(counters, limits=(1, 9)) == [2, 2]
    assert hit(counters, limits=(2, 9)) == [2, 2]
    assert hit(counters, limits=(0, 0)) == [3, 3]


def test_counters_of_many_subjects(make: Callable[[], RateCounters]) -> None:
    """However many subjects there are, none is forgotten within its window."""
    counters = make()
    for number in range(12_000):
        hit(counters, f"subject {number}", minute=number // 4_000)
    assert hit(counters, "subject 11999", minute=2) == [2, 2]
    assert hit(counters, "subject 8000", minute=2) == [2, 2]
    assert hit(counters, "subject 0", minute=3) == [1, 2]


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.integers(0, 2), st.integers(0, 1)), max_size=40
    ).map(lambda hits: sorted(hits, key=lambda one: (one[2], one[1])))
)
def test_counters_never_grant_more(hits: list[tuple[str, int, int]]) -> None:
    """In no window more requests are granted than its limit, and none is refused below it."""
    for make in IMPLEMENTATIONS.values():
        counters = make()
        granted: dict[tuple[str, str, int], int] = {}
        for subject, minute, day in hits:
            minute += 10 * day
            counts = hit(counters, subject, minute, day, (3, 5))
            keys = [(subject, "minute", minute), (subject, "day", day)]
            assert counts == [granted.get(one, 0) + 1 for one in keys]
            if counts[0] <= 3 and counts[1] <= 5:
                for one in keys:
                    granted[one] = granted.get(one, 0) + 1
