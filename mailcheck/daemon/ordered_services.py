"""A tree of services that stops in order: what others stand on goes last."""

from twisted.application.service import IService, IServiceCollection, MultiService
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.logger import ILogObserver, Logger
from twisted.python.components import Componentized


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
