"""A small cache with a maximum number of entries and a maximum age."""

from hypothesis import given
from hypothesis import strategies as st

from mailcheck.core.instants import Instant
from mailcheck.core.memory.recent import LruCache, Recent


def test_freshness() -> None:
    """A value is returned until its maximum age, and not a millisecond longer."""
    recent: Recent[str, int] = Recent(10, 2_000)
    recent.put("a", 1, Instant(10_000))
    assert recent.get("a", Instant(10_000)) == 1
    assert recent.get("a", Instant(11_999)) == 1
    assert recent.get("a", Instant(12_000)) is None
    assert recent.get("b", Instant(10_000)) is None


def test_a_clock_that_is_set_back() -> None:
    """Setting the clock back does not extend the age of a value."""
    recent: Recent[str, int] = Recent(10, 2_000)
    recent.put("a", 1, Instant(10_000))
    assert recent.get("a", Instant(9_999)) is None
    assert recent.get("a", Instant(0)) is None


def test_size() -> None:
    """When the cache is full, the oldest values are removed."""
    recent: Recent[int, int] = Recent(3, 1_000)
    for number in range(5):
        recent.put(number, number, Instant(0))
    recent.put(4, 44, Instant(0))
    assert [recent.get(number, Instant(0)) for number in range(5)] == [None, None, 2, 3, 44]


def test_the_least_recently_used_value_is_removed() -> None:
    """The least recently used value is removed for a new one."""
    memory: LruCache[str, int] = LruCache(3)
    for key in "abc":
        memory.put(key, ord(key))
    memory.get("a")
    memory.put("d", 100)
    assert list(memory) == ["d", "a", "c"]
    memory.put("c", 33)
    memory.drop("a")
    memory.drop("nothing")
    assert (list(memory), memory.get("c"), memory.get("b")) == (["c", "d"], 33, None)


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 12)), max_size=40))
def test_the_weight_is_bounded(puts: list[tuple[str, int]]) -> None:
    """The total weight stays within its limit. The last value is kept if it fits."""
    memory: LruCache[str, int] = LruCache(10, lambda value: value)
    for key, value in puts:
        memory.put(key, value)
        assert memory.get(key) == (value if value <= 10 else None)
        assert sum(memory.get(one) or 0 for one in "abcd") <= 10
    memory.clear()
    memory.put("a", 10)
    assert memory.get("a") == 10


def test_clearing() -> None:
    """A cleared cache is empty."""
    recent: Recent[str, int] = Recent(3, 1_000)
    recent.put("a", 1, Instant(0))
    recent.clear()
    assert recent.get("a", Instant(0)) is None
