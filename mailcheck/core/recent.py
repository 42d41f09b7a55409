"""Small memories of what was found out, bounded in number or weight, and in age.

Of our own: the caches of cachetools read the clock themselves, keep what it was set
back for, and raise for a value that is larger than all their room.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from mailcheck.core.instants import Instant

Key = TypeVar("Key")
Value = TypeVar("Value")


class LruCache(Generic[Key, Value]):
    """Keeps values of at most ``size``; those that were not used for longest make room.

    :param weigh: gives what a value takes of the size; without it each takes one.
    """

    def __init__(self, size: int, weigh: Callable[[Value], int] | None = None) -> None:
        self._size = size
        self._weigh = weigh
        self._weight = 0
        self._values: OrderedDict[Key, tuple[Value, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Key]:
        """Give the keys, the one that was used last first."""
        return reversed(self._values)

    def get(self, key: Key) -> Value | None:
        """Give a value, which is used by that."""
        kept = self._values.get(key)
        if kept is None:
            return None
        self._values.move_to_end(key)
        return kept[0]

    def put(self, key: Key, value: Value) -> None:
        """Keep a value, in place of the one that was there."""
        self.drop(key)
        weight = 1 if self._weigh is None else self._weigh(value)
        self._values[key] = value, weight
        self._weight += weight
        while self._weight > self._size:
            _, (_, weight) = self._values.popitem(last=False)
            self._weight -= weight

    def drop(self, key: Key) -> None:
        """Forget a value, if it is there."""
        kept = self._values.pop(key, None)
        if kept is not None:
            self._weight -= kept[1]

    def clear(self) -> None:
        """Forget everything."""
        self._values.clear()
        self._weight = 0


class Recent(Generic[Key, Value]):
    """Keeps at most ``size`` values, each for ``freshness`` milliseconds."""

    def __init__(self, size: int, freshness: int) -> None:
        self._freshness = freshness
        self._values: LruCache[Key, tuple[Value, int]] = LruCache(size)

    def get(self, key: Key, now: Instant) -> Value | None:
        """Give a value that is still fresh."""
        kept = self._values.get(key)
        if kept is None:
            return None
        value, stale_at = kept
        # A clock that was set back must not keep a value for ever.
        return value if 0 < stale_at - now <= self._freshness else None

    def put(self, key: Key, value: Value, now: Instant) -> None:
        """Keep a value; one that was not used for longest gives way when there are too many."""
        self._values.put(key, (value, now + self._freshness))

    def clear(self) -> None:
        """Forget everything."""
        self._values.clear()
