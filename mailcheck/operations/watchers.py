"""Watchers of objects: waits, streams and connections that a hint lets look again."""

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Watcher = TypeVar("Watcher")


class Watchers(Generic[Key, Watcher]):
    """Watchers by the key of what they watch."""

    def __init__(self) -> None:
        self._groups: dict[Key, dict[object, Watcher]] = {}

    @contextmanager
    def joined(self, key: Key, watcher: Watcher) -> Iterator[None]:
        """Add a watcher while the block runs."""
        group, place = self._groups.setdefault(key, {}), object()
        group[place] = watcher
        try:
            yield
        finally:
            group.pop(place, None)
            if not group and self._groups.get(key) is group:
                del self._groups[key]

    def of(self, key: Key) -> tuple[Watcher, ...]:
        """Return the watchers of a key, in the order in which they were added."""
        return tuple(self._groups.get(key, {}).values())

    def take(self, key: Key) -> tuple[Watcher, ...]:
        """Remove and return the watchers of a key."""
        return tuple(self._groups.pop(key, {}).values())

    def watched(self) -> tuple[Key, ...]:
        """Return the keys that have watchers."""
        return tuple(self._groups)

    def __len__(self) -> int:
        """Return the number of watchers."""
        return sum(map(len, self._groups.values()))
