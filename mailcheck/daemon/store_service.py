"""The store, open while the daemon runs: started first, stopped last."""

from collections.abc import Sequence
from typing import Protocol

from twisted.application.service import Service

from mailcheck.core.errors import ExpectedFailure
from mailcheck.daemon.listening import CannotStart


class Opened(Protocol):
    """Something to open and close: the engine."""

    def open(self) -> None:
        """Make it ready."""

    def close(self) -> None:
        """Finish and close it."""


class Lane(Protocol):
    """Something to start and stop: worker threads."""

    def start(self) -> None:
        """Start it."""

    def stop(self) -> None:
        """Stop it."""


class StoreService(Service):
    """Opens the database and starts the threads that work for it."""

    def __init__(self, engine: Opened, lanes: Sequence[Lane]) -> None:
        self._engine = engine
        self._lanes = lanes

    def startService(self) -> None:
        """Open the database.

        :raises CannotStart: it can't be opened; the message says why.
        """
        try:
            self._engine.open()
        except ExpectedFailure as failure:
            raise CannotStart(f"mailcheck: {failure}") from failure
        for lane in self._lanes:
            lane.start()
        super().startService()

    def stopService(self) -> None:
        """Finish what was begun and close the database."""
        super().stopService()
        for lane in self._lanes:
            lane.stop()
        self._engine.close()
