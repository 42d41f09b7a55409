"""What a supervisor and the daemon say to each other: systemd's notifications, and SIGHUP.

The protocol is that of sd_notify(3): datagrams to the socket that the environment names.
Without one nobody listens, and nothing is said. A parent of several processes hears through a pipe
that each of them is ready.
"""

import os
import signal
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

SOCKET = "NOTIFY_SOCKET"
WATCHDOG_MICROSECONDS = "WATCHDOG_USEC"
WATCHDOG_PID = "WATCHDOG_PID"
READY_FD = "READY_FD"
"""The descriptor of a parent's pipe."""

PATIENCE = 60.0
"""Seconds that a supervisor is asked to wait for the next word of a daemon that starts."""

READY = "READY=1"
STOPPING = "STOPPING=1"
RELOADING = "RELOADING=1"
ALIVE = "WATCHDOG=1"


class Supervisor:
    """Whoever has started the daemon, as its environment tells."""

    _log = Logger()

    def __init__(self, environment: Mapping[str, str]) -> None:
        address = environment.get(SOCKET, "")
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self.watchdog_seconds = _watchdog_seconds(environment)
        descriptor = environment.get(READY_FD, "")
        self._pipe = int(descriptor) if descriptor.isdigit() else None

    def pause(self, seconds: float, why: str) -> None:
        """Wait before the daemon is ready, and ask for so much more time to start."""
        micros = int((seconds + PATIENCE) * 1_000_000)
        self.tell(f"STATUS={why}", f"EXTEND_TIMEOUT_USEC={micros}")
        time.sleep(seconds)

    def tell(self, *words: str) -> None:
        """Say something; one who has gone away does not hear it."""
        if READY in words and self._pipe is not None:
            with suppress(OSError):
                os.write(self._pipe, READY.encode())
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                sender.setblocking(False)
                sender.connect(self._address)
                sender.send("\n".join(words).encode())
        except OSError as error:
            self._log.warn("the supervisor does not listen: {error}", error=error)


def _watchdog_seconds(environment: Mapping[str, str]) -> float | None:
    """Give after how many seconds of silence we are killed, where it is we who are watched."""
    microseconds = environment.get(WATCHDOG_MICROSECONDS, "")
    is_meant = environment.get(WATCHDOG_PID, str(os.getpid())) == str(os.getpid())
    return int(microseconds) / 1e6 if microseconds.isdigit() and is_meant else None


class SupervisedService(Service):
    """Says when the daemon is ready, alive, reloading and stopping; reloads on SIGHUP.

    It is started last and stopped first. Feeding the watchdog is work of the
    reactor: where that hangs, nobody does it.
    """

    _log = Logger()

    def __init__(
        self,
        supervisor: Supervisor,
        reload: Callable[[], None],
        status: Callable[[], str],
        when_ready: Callable[[], Deferred[None]],
        reactor: Any,
    ) -> None:
        """Prepare.

        :param reload: reads again what may change.
        :param status: gives a line for people.
        :param when_ready: fires when all is there that the daemon makes at its start.
        """
        self._supervisor = supervisor
        self._reload = reload
        self._status = status
        self._when_ready = when_ready
        self._reactor = reactor
        self._watchdog = LoopingCall(supervisor.tell, ALIVE)
        self._watchdog.clock = reactor
        self._before: Any = None
        self._is_ready = False

    def privilegedStartService(self) -> None:
        """Take SIGHUP, from now on: it would end the process."""
        self._before = signal.signal(
            signal.SIGHUP, lambda *_: self._reactor.callFromThread(self._read_again)
        )
        super().privilegedStartService()

    def startService(self) -> None:
        """Say that we are ready once the reactor runs, and all is there that is made at the start.

        The store is open then, and the ports are.
        """
        super().startService()
        self._reactor.callWhenRunning(self._begin)

    def stopService(self) -> None:
        """Say that we stop."""
        super().stopService()
        if self._watchdog.running:
            self._watchdog.stop()
        self._supervisor.tell(STOPPING)
        if self._before is not None:
            # Not what was before: a reload that comes late must not end a mail under way.
            signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def _begin(self) -> None:
        def tell_ready(_: None) -> None:
            if self.running:
                self._is_ready = True
                self._supervisor.tell(READY, f"STATUS={self._status()}")

        self._when_ready().addCallback(tell_ready)
        seconds = self._supervisor.watchdog_seconds
        if seconds is not None:
            self._watchdog.start(seconds / 2)

    def _read_again(self) -> None:
        # Before the daemon is ready, systemd must not hear that it is.
        if self._is_ready:
            self._supervisor.tell(RELOADING, f"MONOTONIC_USEC={time.monotonic_ns() // 1_000}")
        try:
            self._reload()
        except Exception:
            self._log.failure("reloading failed")
        if self._is_ready:
            self._supervisor.tell(READY)
