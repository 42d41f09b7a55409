"""A small memory, bounded in number and age."""

from mailcheck.core.instants import Instant
from mailcheck.operations.recent import Recent


def test_freshness() -> None:
    """A value is given while it is fresh and not a millisecond longer."""
    recent: Recent[str, int] = Recent(10, 2_000)
    recent.put("a", 1, Instant(10_000))
    assert recent.get("a", Instant(10_000)) == 1
    assert recent.get("a", Instant(11_999)) == 1
    assert recent.get("a", Instant(12_000)) is None
    assert recent.get("b", Instant(10_000)) is None


def test_a_clock_that_is_set_back() -> None:
    """A clock that is set back does not keep a value for longer than it is fresh."""
    recent: Recent[str, int] = Recent(10, 2_000)
    recent.put("a", 1, Instant(10_000))
    assert recent.get("a", Instant(9_999)) is None
    assert recent.get("a", Instant(0)) is None


def test_size() -> None:
    """Of more values than it holds the oldest give way."""
    recent: Recent[int, int] = Recent(3, 1_000)
    for number in range(5):
        recent.put(number, number, Instant(0))
    recent.put(4, 44, Instant(0))
    assert [recent.get(number, Instant(0)) for number in range(5)] == [None, None, 2, 3, 44]


def test_clearing() -> None:
    """A cleared memory is empty."""
    recent: Recent[str, int] = Recent(3, 1_000)
    recent.put("a", 1, Instant(0))
    recent.clear()
    assert recent.get("a", Instant(0)) is None
