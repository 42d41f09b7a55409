"""The store, open while the daemon runs: started first, stopped last."""

from collections.abc import Sequence
from typing import Protocol

from twisted.application.service import Service
from twisted.internet.defer import Deferred, maybeDeferred

from mailcheck.core.errors import ExpectedFailure
from mailcheck.daemon.listening import CannotStart
from mailcheck.operations.ports import Worker


class Opened(Protocol):
    """Something to open and close: the engine."""

    def open(self) -> None:
        """Make it ready."""

    def close(self) -> Deferred[None]:
        """Finish and close it."""


class StoreService(Service):
    """Opens the database and starts the workers that work for it."""

    def __init__(self, engine: Opened, workers: Sequence[Worker]) -> None:
        self._engine = engine
        self._workers = workers

    def startService(self) -> None:
        """Open the database.

        :raises CannotStart: it can't be opened; the message says why.
        """
        try:
            self._engine.open()
        except ExpectedFailure as failure:
            raise CannotStart(f"mailcheck: {failure}") from failure
        for worker in self._workers:
            worker.start()
        super().startService()

    def stopService(self) -> Deferred[None]:
        """Finish what was begun and close the database."""
        super().stopService()
        return Deferred.fromCoroutine(self._stop())

    async def _stop(self) -> None:
        for worker in self._workers:
            await maybeDeferred(worker.stop)
        await self._engine.close()
