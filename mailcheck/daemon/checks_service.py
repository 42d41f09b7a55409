"""The life of the domain checks in a daemon: ends what is under way before it stops."""

from collections.abc import Callable
from typing import Any

from twisted.application.service import Service
from twisted.internet.defer import Deferred


class ChecksService(Service):
    """Closes resolvers and probes; what waits for them gets "could not be determined"."""

    def __init__(self, close: Callable[[], Deferred[Any]]) -> None:
        self._close = close

    def stopService(self) -> Deferred[Any]:
        """Fires when all sockets are closed."""
        super().stopService()
        return self._close()
