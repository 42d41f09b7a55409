"""Services of the daemon, and the tree that starts them in order and stops them in reverse."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from twisted.application.service import IService, IServiceCollection, MultiService, Service
from twisted.internet.defer import Deferred, maybeDeferred, succeed
from twisted.logger import ILogObserver, Logger
from twisted.python.components import Componentized

from mailcheck.core.errors import ExpectedFailure
from mailcheck.daemon.listening import CannotStart
from mailcheck.ports.workers import Worker


class OrderedServices(MultiService):
    """Starts services in order, and stops them one after the other in reverse order.

    `MultiService` stops all services at once, which would close the store while a mail
    is being written.
    """

    _log = Logger()

    def stopService(self) -> Deferred[None]:
        """Stop all services. A failure of one does not prevent the others from stopping."""
        self.running = False
        return Deferred.fromCoroutine(self._stop_each())

    async def _stop_each(self) -> None:
        services: list[IService] = list(self)
        for service in reversed(services):
            try:
                await maybeDeferred(service.stopService)
            except Exception:
                self._log.failure("{service} did not stop well", service=service)


class DaemonServices(OrderedServices):
    """All services of a daemon. It sets the log observer of its application."""

    def __init__(self, log: ILogObserver | None) -> None:
        """Prepare. If ``log`` is `None`, the application keeps its own log."""
        super().__init__()
        self._log_writer = log

    def setServiceParent(self, parent: IServiceCollection | Componentized) -> None:  # noqa: N802
        """Attach to an application (twistd's, or a collection of services)."""
        if self._log_writer is not None and isinstance(parent, Componentized):
            parent.setComponent(ILogObserver, self._log_writer)
        super().setServiceParent(parent)


class Opened(Protocol):
    """An object that is opened and closed, such as the database engine."""

    def open(self) -> None:
        """Open it."""

    def close(self) -> Deferred[None]:
        """Finish pending work and close it."""


class StoreService(Service):
    """Opens the database and starts its workers."""

    def __init__(self, engine: Opened, workers: Sequence[Worker]) -> None:
        self._engine = engine
        self._workers = workers

    def startService(self) -> None:
        """Open the database.

        :raises CannotStart: it cannot be opened; the message says why.
        """
        try:
            self._engine.open()
        except ExpectedFailure as failure:
            raise CannotStart(f"mailcheck: {failure}") from failure
        for worker in self._workers:
            worker.start()
        super().startService()

    def stopService(self) -> Deferred[None]:
        """Finish pending work and close the database."""
        super().stopService()
        return Deferred.fromCoroutine(self._stop())

    async def _stop(self) -> None:
        for worker in self._workers:
            await maybeDeferred(worker.stop)
        await self._engine.close()


class ChecksService(Service):
    """Closes resolvers and probes. Checks under way get "could not be determined"."""

    def __init__(self, close: Callable[[], Deferred[Any]]) -> None:
        self._close = close

    def stopService(self) -> Deferred[Any]:
        """Close. Fires when all sockets are closed."""
        super().stopService()
        return self._close()


class LeasedWork(Protocol):
    """Work that one of several daemons does at a time, guarded by a lease."""

    async def start(self) -> None:
        """Start with the work that an earlier run left."""

    async def stop(self) -> None:
        """Abandon the current work, so that another daemon can take it over."""


class LeasedWorkService(Service):
    """Runs leased work while the daemon runs."""

    def __init__(self, work: LeasedWork) -> None:
        self._work = work
        self._started: Deferred[None] = succeed(None)

    def startService(self) -> None:
        """Start with the work that an earlier run left."""
        super().startService()
        self._started = Deferred.fromCoroutine(self._work.start())

    def stopService(self) -> Deferred[None]:
        """Abandon the current work. Fires when another daemon can take it over."""
        super().stopService()
        return Deferred.fromCoroutine(self._stop())

    async def _stop(self) -> None:
        await self._started
        await self._work.stop()


class Feeds(Protocol):
    """The waits of one kind."""

    def close(self) -> None:
        """End all waits, and reject new ones."""


class ParkedWaits(Service):
    """Ends all waits when the daemon stops, so that clients can continue elsewhere."""

    def __init__(self, *feeds: Feeds) -> None:
        self._feeds = feeds

    def stopService(self) -> None:
        """Answer all waits with 503 and a cursor."""
        super().stopService()
        for feeds in self._feeds:
            feeds.close()
