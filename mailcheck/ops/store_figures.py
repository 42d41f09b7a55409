"""Figures of the store, read now and then: its size, its mail, its age and its quotas."""

from collections.abc import Callable

from twisted.internet.defer import Deferred

from mailcheck.core.accounts import Quota
from mailcheck.store.figures import FigureStore, StoreFigures

INTERVAL = 60.0
"""Seconds between two readings."""


class StoreLook:
    """The last figures, and the bytes of the database. Both are `None` before the first reading."""

    def __init__(
        self, store: FigureStore, size: Callable[[], Deferred[int]], quota: Callable[[], Quota]
    ) -> None:
        self._store = store
        self._size = size
        self._quota = quota
        self.figures: StoreFigures | None = None
        self.size: int | None = None

    async def look(self) -> None:
        """Read the figures."""
        self.figures = await self._store.figures(self._quota())
        self.size = await self._size()
