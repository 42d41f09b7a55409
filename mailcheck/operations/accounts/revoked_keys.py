"""Keys that are revoked while something goes on with them: it ends."""

from collections.abc import Callable

from mailcheck.core.errors import ExpectedFailure, InvalidCredentials
from mailcheck.core.identifiers import KeyId
from mailcheck.store.accounts.account_store import AccountStore

INTERVAL = 5.0
"""Seconds between looks: one question for all keys in use, whoever has revoked them, and where."""

End = Callable[[ExpectedFailure], None]


class RevokedKeys:
    """Knows what goes on with which key, and ends it when that is revoked."""

    def __init__(self, store: AccountStore) -> None:
        self._store = store
        self._watched: dict[KeyId, dict[object, End]] = {}

    def watched(self, key_id: KeyId, end: End) -> "_Watch":
        """Call ``end`` once, should the key be revoked while the block runs."""
        return _Watch(self._watched, key_id, end)

    async def look(self) -> None:
        """End what goes on with keys that have been revoked.

        :raises StoreUnavailable: can't tell now.
        """
        if not self._watched:
            return
        for key_id in await self._store.revoked_of(tuple(self._watched)):
            for end in tuple(self._watched.pop(key_id, {}).values()):
                end(InvalidCredentials("the API key has been revoked"))


class _Watch:
    """Something that goes on with a key; thousands do, so it is no generator."""

    __slots__ = ("_end", "_key_id", "_watched")

    def __init__(self, watched: dict[KeyId, dict[object, End]], key_id: KeyId, end: End) -> None:
        self._watched = watched
        self._key_id = key_id
        self._end = end

    def __enter__(self) -> None:
        self._watched.setdefault(self._key_id, {})[self] = self._end

    def __exit__(self, *_: object) -> None:
        ends = self._watched.get(self._key_id, {})
        ends.pop(self, None)
        if not ends:
            self._watched.pop(self._key_id, None)
