"""A small memory of recent look-ups, bounded in number and age."""

from typing import Generic, TypeVar

from mailcheck.core.instants import Instant

Key = TypeVar("Key")
Value = TypeVar("Value")


class Recent(Generic[Key, Value]):
    """Keeps at most ``size`` values, each for ``freshness`` milliseconds."""

    def __init__(self, size: int, freshness: int) -> None:
        self._size = size
        self._freshness = freshness
        self._values: dict[Key, tuple[Value, int]] = {}

    def get(self, key: Key, now: Instant) -> Value | None:
        """Give a value that is still fresh."""
        kept = self._values.get(key)
        if kept is None:
            return None
        value, stale_at = kept
        # A clock that was set back must not keep a value for ever.
        return value if 0 < stale_at - now <= self._freshness else None

    def put(self, key: Key, value: Value, now: Instant) -> None:
        """Keep a value; the oldest gives way when there are too many."""
        if key not in self._values and len(self._values) >= self._size:
            del self._values[next(iter(self._values))]
        self._values[key] = (value, now + self._freshness)

    def clear(self) -> None:
        """Forget everything."""
        self._values.clear()
