"""The socket on which a daemon answers ``mailcheck reload``.

It is a UNIX socket in the state directory, which only the daemon's user can open. A signal could
not report that the configuration is invalid.
"""

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from twisted.application.service import Service
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import Factory
from twisted.logger import Logger
from twisted.protocols.basic import LineOnlyReceiver

from mailcheck.operations.reloads import (
    RELOAD,
    ReloadReport,
    control_socket,
    control_sockets,
    dump_report,
)

OWNER_ONLY = 0o600

Reload = Callable[[], Deferred[ReloadReport]]


class _Control(LineOnlyReceiver):
    """A connection with one request and one answer."""

    delimiter = b"\n"
    transport: Any

    def __init__(self, reload: Reload) -> None:
        self._reload = reload

    def lineReceived(self, line: bytes) -> None:
        """Reload the configuration, and answer with the report."""
        if line.strip() != RELOAD:
            self.transport.loseConnection()
        else:
            self._reload().addCallback(self._answer)

    def _answer(self, report: ReloadReport) -> None:
        self.transport.write(dump_report(report) + b"\n")
        self.transport.loseConnection()


class ControlService(Service):
    """Listens on the socket while the daemon runs. A killed daemon leaves its socket behind.

    Without the socket, the daemon still reloads on SIGHUP.
    """

    _log = Logger()

    def __init__(self, folder: Path, reload: Reload, reactor: Any) -> None:
        """``folder`` is the state directory."""
        self._folder = folder
        self._reload = reload
        self._reactor = reactor
        self._port: Any = None

    def startService(self) -> None:
        """Listen, after deleting the sockets of killed daemons."""
        super().startService()
        path = control_socket(self._folder, os.getpid())
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            for other in control_sockets(self._folder):
                if not _is_answered(other):
                    other.unlink(missing_ok=True)
            self._port = self._reactor.listenUNIX(
                str(path), _Controls(self._reload), mode=OWNER_ONLY
            )
        except (OSError, CannotListenError) as error:
            self._log.warn(
                "`mailcheck reload` cannot reach this daemon, only SIGHUP: {path}: {error}",
                path=path,
                error=getattr(error, "socketError", error),
            )

    def stopService(self) -> Deferred[Any]:
        """Close and delete the socket."""
        super().stopService()
        port, self._port = self._port, None
        return maybeDeferred(lambda: None if port is None else port.stopListening())


class _Controls(Factory):
    noisy = False

    def __init__(self, reload: Reload) -> None:
        self._reload = reload

    def buildProtocol(self, addr: IAddress | None) -> Any:
        """Return the protocol of a new connection."""
        return _Control(self._reload)


def _is_answered(path: Path) -> bool:
    """Return whether a process listens on a socket."""
    with socket.socket(socket.AF_UNIX) as client:
        client.setblocking(False)
        try:
            client.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:  # such as a full queue
            return True
    return True
