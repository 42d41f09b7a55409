"""Communication with a supervisor: notifications to systemd, and SIGHUP.

The protocol is that of sd_notify(3): datagrams to the socket in the environment variable
`NOTIFY_SOCKET`. Without it, no notification is sent. Each of several daemon processes tells its
parent through a pipe when it is ready, and what a reload did.
"""

import os
import signal
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from twisted.application.service import Service
from twisted.internet.defer import Deferred, DeferredLock
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from mailcheck.operations.reloads import RELOADED, ReloadReport, dump_report

SOCKET = "NOTIFY_SOCKET"
WATCHDOG_MICROSECONDS = "WATCHDOG_USEC"
WATCHDOG_PID = "WATCHDOG_PID"
READY_FD = "READY_FD"
"""Environment variable with the file descriptor of the parent's pipe."""

PATIENCE = 60.0
"""Seconds that a supervisor is asked to wait for the next notification of a starting daemon."""

READY = "READY=1"
STOPPING = "STOPPING=1"
RELOADING = "RELOADING=1"
ALIVE = "WATCHDOG=1"


class Supervisor:
    """The supervisor that started the daemon, according to the environment."""

    _log = Logger()

    def __init__(self, environment: Mapping[str, str]) -> None:
        address = environment.get(SOCKET, "")
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self.watchdog_seconds = _watchdog_seconds(environment)
        descriptor = environment.get(READY_FD, "")
        self._pipe = int(descriptor) if descriptor.isdigit() else None

    def pause(self, seconds: float, why: str) -> None:
        """Wait before the daemon is ready, and ask for that much more time to start."""
        micros = int((seconds + PATIENCE) * 1_000_000)
        self.tell(f"STATUS={why}", f"EXTEND_TIMEOUT_USEC={micros}")
        time.sleep(seconds)

    def tell(self, *words: str) -> None:
        """Send a notification. Log a warning if the supervisor does not listen."""
        if READY in words:
            self._write(READY.encode())
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                sender.setblocking(False)
                sender.connect(self._address)
                sender.send("\n".join(words).encode())
        except OSError as error:
            self._log.warn("the supervisor does not listen: {error}", error=error)

    def answer(self, report: ReloadReport) -> None:
        """Send the report of a reload to the parent of several processes."""
        self._write(RELOADED + dump_report(report))

    def _write(self, line: bytes) -> None:
        if self._pipe is not None:
            with suppress(OSError):
                os.write(self._pipe, line + b"\n")


def _watchdog_seconds(environment: Mapping[str, str]) -> float | None:
    """Return the timeout of the watchdog in seconds, or ``None`` without a watchdog."""
    microseconds = environment.get(WATCHDOG_MICROSECONDS, "")
    is_meant = environment.get(WATCHDOG_PID, str(os.getpid())) == str(os.getpid())
    return int(microseconds) / 1e6 if microseconds.isdigit() and is_meant else None


class SupervisedService(Service):
    """Notifies systemd when the daemon is ready, alive, reloading and stopping; reloads on SIGHUP.

    It is started last and stopped first. The watchdog is notified by the reactor, so a reactor that
    hangs causes a restart.
    """

    _log = Logger()

    def __init__(
        self,
        supervisor: Supervisor,
        reload: Callable[[], Deferred[ReloadReport]],
        status: Callable[[], str],
        when_ready: Callable[[], Deferred[None]],
        reactor: Any,
    ) -> None:
        """Store the parts.

        :param reload: reads the configuration again.
        :param status: returns the status line that ``systemctl status`` shows.
        :param when_ready: fires when the daemon has created all parts that it needs.
        """
        self._supervisor = supervisor
        self._reload = reload
        self._status = status
        self._when_ready = when_ready
        self.reactor = reactor
        self._turns = DeferredLock()
        self._watchdog = LoopingCall(supervisor.tell, ALIVE)
        self._watchdog.clock = reactor
        self._before: Any = None
        self._is_ready = False

    def privilegedStartService(self) -> None:
        """Handle SIGHUP from now on, which would otherwise end the process."""
        self._before = signal.signal(
            signal.SIGHUP, lambda *_: self.reactor.callFromThread(self.reload)
        )
        super().privilegedStartService()

    def startService(self) -> None:
        """Notify that the daemon is ready once the reactor runs and all parts exist.

        The store and the ports are open then.
        """
        super().startService()
        self.reactor.callWhenRunning(self._begin)

    def stopService(self) -> None:
        """Notify that the daemon stops."""
        super().stopService()
        if self._watchdog.running:
            self._watchdog.stop()
        self._supervisor.tell(STOPPING)
        if self._before is not None:
            # Not the previous handler: a late SIGHUP must not interrupt the delivery of a mail.
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

    def reload(self) -> Deferred[ReloadReport]:
        """Reload, after reloads that are running. Fires with the report, also after a failure."""
        return self._turns.run(lambda: Deferred.fromCoroutine(self._read_again()))

    async def _read_again(self) -> ReloadReport:
        # Before the daemon is ready, a reload must not send READY.
        if self._is_ready:
            self._supervisor.tell(RELOADING, f"MONOTONIC_USEC={time.monotonic_ns() // 1_000}")
        try:
            report = await self._reload()
        except Exception:
            self._log.failure("reloading failed")
            report = ReloadReport(problem="internal error; the log of the daemon has the cause")
        self._supervisor.answer(report)
        if self._is_ready:
            self._supervisor.tell(READY)
        return report
