"""Keys that are revoked while something goes on with them: it ends."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mailcheck.core.errors import ExpectedFailure, InvalidCredentials
from mailcheck.core.identifiers import KeyId
from mailcheck.operations.ports import AccountStore

INTERVAL = 5.0
"""Seconds between looks: one question for all keys in use, whoever has revoked them, and where."""

End = Callable[[ExpectedFailure], None]


class RevokedKeys:
    """Knows what goes on with which key, and ends it when that is revoked."""

    def __init__(self, store: AccountStore) -> None:
        self._store = store
        self._watched: dict[KeyId, dict[object, End]] = {}

    @contextmanager
    def watched(self, key_id: KeyId, end: End) -> Iterator[None]:
        """Call ``end`` once, should the key be revoked while the block runs."""
        ticket = object()
        ends = self._watched.setdefault(key_id, {})
        ends[ticket] = end
        try:
            yield
        finally:
            ends.pop(ticket, None)
            if not ends:
                self._watched.pop(key_id, None)

    async def look(self) -> None:
        """End what goes on with keys that have been revoked.

        :raises StoreUnavailable: can't tell now.
        """
        if not self._watched:
            return
        for key_id in await self._store.revoked_of(tuple(self._watched)):
            for end in tuple(self._watched.pop(key_id, {}).values()):
                end(InvalidCredentials("the API key has been revoked"))
