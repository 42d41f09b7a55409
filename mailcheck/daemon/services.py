"""What lives as long as a daemon, and the tree that starts it in order and stops it in reverse."""

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
    """Starts its services in order and stops them, one after the other, in reverse.

    Twisted's own stops all at once: the store would be closed under a mail
    that is being written.
    """

    _log = Logger()

    def stopService(self) -> Deferred[None]:
        """Stop all services; one that fails does not keep the others from stopping."""
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
    """All of a daemon; it brings the application that it becomes a part of its log."""

    def __init__(self, log: ILogObserver | None) -> None:
        """Prepare; without a log, whoever runs the application has one."""
        super().__init__()
        self._log_writer = log

    def setServiceParent(self, parent: IServiceCollection | Componentized) -> None:  # noqa: N802
        """Become a part of an application (twistd's, or a collection of services)."""
        if self._log_writer is not None and isinstance(parent, Componentized):
            parent.setComponent(ILogObserver, self._log_writer)
        super().setServiceParent(parent)


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


class ChecksService(Service):
    """Closes resolvers and probes; what waits for them gets "could not be determined"."""

    def __init__(self, close: Callable[[], Deferred[Any]]) -> None:
        self._close = close

    def stopService(self) -> Deferred[Any]:
        """Fires when all sockets are closed."""
        super().stopService()
        return self._close()


class LeasedWork(Protocol):
    """Work that one daemon does at a time for all, by a lease that is renewed beside it."""

    async def start(self) -> None:
        """Begin with what an earlier run left behind."""

    async def stop(self) -> None:
        """Drop what is under way, so that another can take it up."""


class LeasedWorkService(Service):
    """Does the work while the daemon runs."""

    def __init__(self, work: LeasedWork) -> None:
        self._work = work
        self._started: Deferred[None] = succeed(None)

    def startService(self) -> None:
        """Begin with what an earlier run left behind."""
        super().startService()
        self._started = Deferred.fromCoroutine(self._work.start())

    def stopService(self) -> Deferred[None]:
        """Drop what is under way; fires when it can be taken up by another."""
        super().stopService()
        return Deferred.fromCoroutine(self._stop())

    async def _stop(self) -> None:
        await self._started
        await self._work.stop()


class Feeds(Protocol):
    """Whoever knows the waits of one kind."""

    def close(self) -> None:
        """End all waits, and take no more."""


class ParkedWaits(Service):
    """Answers all waits when the daemon stops, so that clients go on elsewhere."""

    def __init__(self, *feeds: Feeds) -> None:
        self._feeds = feeds

    def stopService(self) -> None:
        """End all waits with 503 and a cursor."""
        super().stopService()
        for feeds in self._feeds:
            feeds.close()
