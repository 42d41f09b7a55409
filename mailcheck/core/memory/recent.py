"""LRU caches, bounded in number or size and in age.

The caches of cachetools do not fit: they read the clock themselves, keep values longer after it
was set back, and raise for a value that is larger than the cache.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from mailcheck.core.instants import Instant

Key = TypeVar("Key")
Value = TypeVar("Value")


class LruCache(Generic[Key, Value]):
    """An LRU cache with a maximum ``size``; the least recently used values are evicted.

    :param weigh: returns the size of a value. By default, each value has size 1.
    """

    def __init__(self, size: int, weigh: Callable[[Value], int] | None = None) -> None:
        self._size = size
        self._weigh = weigh
        self._weight = 0
        self._values: OrderedDict[Key, tuple[Value, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Key]:
        """Iterate over the keys, the most recently used first."""
        return reversed(self._values)

    def get(self, key: Key) -> Value | None:
        """Return a value, or `None`, and mark it as recently used."""
        kept = self._values.get(key)
        if kept is None:
            return None
        self._values.move_to_end(key)
        return kept[0]

    def put(self, key: Key, value: Value) -> None:
        """Store a value in place of any earlier one for the key."""
        self.drop(key)
        weight = 1 if self._weigh is None else self._weigh(value)
        self._values[key] = value, weight
        self._weight += weight
        while self._weight > self._size:
            _, (_, weight) = self._values.popitem(last=False)
            self._weight -= weight

    def drop(self, key: Key) -> None:
        """Remove a value, if it is present."""
        kept = self._values.pop(key, None)
        if kept is not None:
            self._weight -= kept[1]

    def clear(self) -> None:
        """Remove all values."""
        self._values.clear()
        self._weight = 0


class Recent(Generic[Key, Value]):
    """An LRU cache of at most ``size`` values, each valid for ``freshness`` milliseconds."""

    def __init__(self, size: int, freshness: int) -> None:
        self._freshness = freshness
        self._values: LruCache[Key, tuple[Value, int]] = LruCache(size)

    def get(self, key: Key, now: Instant) -> Value | None:
        """Return a value that is still fresh, or `None`."""
        kept = self._values.get(key)
        if kept is None:
            return None
        value, stale_at = kept
        # A clock that was set back must not keep a value forever.
        return value if 0 < stale_at - now <= self._freshness else None

    def put(self, key: Key, value: Value, now: Instant) -> None:
        """Store a value. The least recently used value is evicted if the cache is full."""
        self._values.put(key, (value, now + self._freshness))

    def clear(self) -> None:
        """Remove all values."""
        self._values.clear()
