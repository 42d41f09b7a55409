"""Listening ports of the daemon, the limit of open files, and the file with the daemon's URL.

Ports are bound before privileges are dropped.
"""

import math
import os
import resource
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from twisted.application.service import Service
from twisted.internet.defer import Deferred, gatherResults, maybeDeferred
from twisted.internet.endpoints import AdoptedStreamServerEndpoint, serverFromString
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import (
    IAddress,
    IListeningPort,
    IProtocolFactory,
    IStreamServerEndpoint,
)
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from mailcheck.core.network_addresses import ListenAddress

SYSTEMD = "systemd:"
"""The beginning of endpoints that are sockets of systemd."""


def real_address(address: ListenAddress) -> ListenAddress:
    """Return the address with host and port of a socket from systemd; others unchanged."""
    if not address.endpoint.startswith(SYSTEMD):
        return address
    try:
        # Twisted removes the descriptors from the environment when it is imported.
        endpoint: AdoptedStreamServerEndpoint = serverFromString(None, address.endpoint)
        with socket.socket(fileno=os.dup(endpoint.fileno)) as ours:
            host, port = ours.getsockname()[:2]
    except (KeyError, IndexError, ValueError, TypeError, OSError):
        return address  # missing, or not a network socket: listening reports it
    return replace(address, host=host, port=port)


class CannotStart(SystemExit):
    """The daemon cannot start. The message tells the operator what to change."""


class ListeningService(Service):
    """Accepts connections for one purpose on a list of addresses."""

    _log = Logger()

    def __init__(
        self,
        reactor: object,
        purpose: str,
        addresses: Sequence[ListenAddress],
        factory: Any,
        drain: Callable[[], Deferred[None]] | None = None,
        *,
        is_needed: bool = True,
        inherited: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """Prepare to listen. If ``is_needed`` is false, a port that cannot be bound is only logged.

        ``factory`` may be `None` if there are no addresses.
        ``inherited`` has descriptors by endpoint, of ports that the parent process has opened.

        :raises CannotStart: Twisted does not understand the endpoint, which the message names.
        """
        self.factory = factory
        self._purpose = purpose
        self._inherited = inherited
        self._listen = [
            (address, partial(self._endpoint(reactor, address).listen, _guarded(factory, address)))
            for address in addresses
        ]
        self._drain = drain
        self._is_needed = is_needed
        self.ports: list[IListeningPort] = []

    @property
    def addresses(self) -> list[str]:
        """The bound addresses, as ``host:port`` or the path of a UNIX socket."""
        return [_written(port.getHost()) for port in self.ports]

    def privilegedStartService(self) -> None:
        """Bind the ports.

        :raises CannotStart: an address cannot be bound; the message names it.
        """
        for address, listen in self._listen:
            problems: list[Failure] = []
            maybeDeferred(listen).addCallbacks(self.ports.append, problems.append)
            if problems:
                problem = cannot_listen(self._purpose, address, problems[0].value)
                if self._is_needed:
                    raise problem
                self._log.error("{problem}; the daemon runs without it", problem=problem)

    def stopService(self) -> Deferred[None]:
        """Stop listening, and drain the open connections."""
        super().stopService()
        return Deferred.fromCoroutine(self._stop())

    async def _stop(self) -> None:
        ports, self.ports = self.ports, []
        try:
            await gatherResults(
                [maybeDeferred(port.stopListening) for port in ports], consumeErrors=True
            )
        finally:
            if self._drain is not None:
                await self._drain()

    def _endpoint(self, reactor: object, address: ListenAddress) -> IStreamServerEndpoint:
        if address.endpoint in self._inherited:
            return _adopted(reactor, self._inherited[address.endpoint])
        try:
            endpoint: IStreamServerEndpoint = serverFromString(reactor, address.endpoint)
        except Exception as error:  # each kind of endpoint raises its own exceptions
            raise cannot_listen(self._purpose, address, error) from error
        return endpoint


OUTERMOST = ("tcp:", "tcp6:", "unix:", SYSTEMD)
"""The beginnings of endpoints on which a factory gets the connections themselves. Others wrap them,
for example in TLS, and would keep a connection open that has no protocol."""


def _guarded(factory: Any, address: ListenAddress) -> Any:
    """Return a factory whose connections are closed at once while it has too many."""
    is_outermost = address.endpoint.startswith(OUTERMOST)
    return CrowdGuard(factory) if is_outermost and hasattr(factory, "is_crowded") else factory


@implementer(IProtocolFactory)
class CrowdGuard(Struct, frozen=True, eq=False):
    """Closes connections without a protocol while a factory is crowded.

    Twisted accepts up to a hundred connections at a time, and closes an aborted one later. A crowd
    would use all open files before the first of its connections is closed.
    """

    factory: Any

    def doStart(self) -> None:
        """Start the factory."""
        self.factory.doStart()

    def doStop(self) -> None:
        """Stop the factory."""
        self.factory.doStop()

    def buildProtocol(self, addr: IAddress) -> Any:
        """Return the protocol of a connection, or `None`: Twisted closes its socket."""
        return None if self.factory.is_crowded else self.factory.buildProtocol(addr)


def cannot_listen(purpose: str, address: ListenAddress, error: object) -> CannotStart:
    """Return the error for an address that cannot be bound."""
    if isinstance(error, CannotListenError):
        error = error.socketError
    reason = getattr(error, "strerror", None) or str(error)
    where = address.endpoint if address.host is None else f"{address.host}:{address.port}"
    instead = f"; choose another address with {address.setting}" if address.setting else ""
    return CannotStart(f"mailcheck: cannot listen for {purpose} on {where}: {reason}{instead}")


def _adopted(reactor: Any, descriptor: int) -> IStreamServerEndpoint:
    """Return an endpoint for a port that another process has opened."""
    with socket.socket(fileno=os.dup(descriptor)) as one:
        return AdoptedStreamServerEndpoint(reactor, descriptor, one.family)


def _written(host: Any) -> str:
    name = getattr(host, "host", None)
    if name is None:
        return os.fsdecode(host.name)
    return f"[{name}]:{host.port}" if ":" in name else f"{name}:{host.port}"


_log = Logger()


def raise_file_limit() -> None:
    """Raise the soft limit of open files to the hard one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError) as error:  # macOS reports "unlimited" but accepts less
        _log.info("open files stay limited to {soft}: {error}", soft=soft, error=error)


RESERVED_FILES = 160
"""Open files for everything but connections of clients: the store with its readers, pipes of child
processes, ports, DNS, probes and health. An idle daemon has 40."""


def files_for_connections() -> float:
    """Return how many open files connections of clients may use together."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return math.inf if soft == resource.RLIM_INFINITY else max(soft - RESERVED_FILES, soft // 4)


class AddressFile(Service):
    """Maintains a file with the URL while the daemon runs. After a crash, the file remains.

    :param url: returns the URL of pages and API, once the daemon listens.
    """

    _log = Logger()

    def __init__(self, path: Path, url: Callable[[], str]) -> None:
        self._path = path
        self._url = url

    def startService(self) -> None:
        """Write the file. If that fails, commands use the address in the configuration."""
        super().startService()
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_text(f"{self._url()}\n", "utf-8")
        except OSError as error:
            self._log.warn("{path} cannot be written: {why}", path=self._path, why=error.strerror)

    def stopService(self) -> None:
        """Delete the file, unless another daemon has overwritten it."""
        super().stopService()
        with suppress(OSError):
            if self._path.read_text("utf-8").strip() == self._url():
                self._path.unlink()
