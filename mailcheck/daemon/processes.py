"""Several daemon processes of one machine on the same ports, supervised by a parent process.

The parent opens the ports and the processes inherit them. Each connection is accepted by a free
process, and none is lost in the accept queue of a process that died.
"""

import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from twisted.application.service import Service
from twisted.internet.defer import Deferred, DeferredList, maybeDeferred
from twisted.internet.endpoints import serverFromString
from twisted.internet.interfaces import IDelayedCall
from twisted.internet.protocol import Factory, ProcessProtocol
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailcheck.core.network_addresses import ListenAddress
from mailcheck.daemon.listening import cannot_listen
from mailcheck.operations.concurrency import stop_timer
from mailcheck.operations.reloads import RELOADED, ReloadReport, parse_report

SHORTEST_PAUSE = 1.0
LONGEST_PAUSE = 30.0
"""Seconds until a process that has ended is restarted. Doubled while restarts do not last."""

LASTING = 10.0
"""Seconds after which a process counts as started successfully."""

PATIENCE = 40.0
"""Seconds to wait for processes to end. Draining mail takes up to half of it."""

ANSWER = 30.0
"""Seconds to wait for the report of each process after a reload."""

FIRST_DESCRIPTOR = 3

_TWISTD = "from twisted.scripts.twistd import run; run()"


class Processes(Service):
    """Runs the same daemon in several processes.

    :param addresses: the ports that all processes share.
    :param options: command line options of ``twistd mailcheck``.
    :param environments: the environment of each process.
    :param variable: environment variable with the descriptor that a process writes to when ready.
    :param first_alone: start the others when the first is ready, since it initialises shared state.
    """

    _log = Logger()

    def __init__(
        self,
        reactor: Any,
        addresses: Sequence[ListenAddress],
        options: Sequence[str],
        environments: Sequence[Mapping[str, str]],
        variable: str,
        *,
        first_alone: bool,
    ) -> None:
        self._reactor = reactor
        self._addresses = addresses
        self._options = options
        self._environments = environments
        self._variable = variable
        self._first_alone = first_alone
        self._unready = set(range(len(environments)))
        self._ready: Deferred[None] = Deferred()
        self._ports: list[Any] = []
        self._running: dict[int, _Child] = {}
        self._pauses: dict[int, Any] = {}

    def privilegedStartService(self) -> None:
        """Open the ports.

        :raises CannotStart: an address cannot be bound; the message names it.
        """
        for address in self._addresses:
            problems: list[Failure] = []
            endpoint = serverFromString(self._reactor, address.endpoint)
            opened = maybeDeferred(endpoint.listen, Factory())
            opened.addCallbacks(self._ports.append, problems.append)
            if problems:
                raise cannot_listen("all processes", address, problems[0].value)
        for port in self._ports:
            port.stopReading()

    def startService(self) -> None:
        """Start the processes once the reactor runs."""
        super().startService()
        self._reactor.callWhenRunning(self._start_all)

    def stopService(self) -> Deferred[Any]:
        """End all processes. Fires when they have ended."""
        super().stopService()
        for pause in self._pauses.values():
            pause.cancel()
        self._pauses.clear()
        ended = DeferredList([child.when_ended for child in self._running.values()])
        self._signal("TERM")
        too_late = self._reactor.callLater(PATIENCE, self._signal, "KILL")
        return ended.addCallback(self._close, too_late)

    def when_ready(self) -> Deferred[None]:
        """Fire when all processes have been ready."""
        return self._ready

    async def reload(self) -> str:
        """Let each process reload its configuration. Return the problem of the first that failed.

        A process that is not ready yet reloads when it is, since it may have read the file before
        the change.
        """
        asked = [
            (number, child.reload(self._reactor)) for number, child in sorted(self._running.items())
        ]
        reports = [(number, await answer) for number, answer in asked]
        problems = [
            f"process {number + 1}: {report.problem}"
            for number, report in reports
            if report.problem
        ]
        return next(iter(problems), "")

    def _signal(self, name: str) -> None:
        for child in list(self._running.values()):
            child.transport.signalProcess(name)

    def _start_all(self) -> None:
        count = len(self._environments)
        for number in range(1 if self._first_alone else count):
            self._start(number, SHORTEST_PAUSE)

    def _note_ready(self, number: int) -> None:
        if number not in self._unready:
            return
        self._unready.discard(number)
        if not number and self._first_alone and self.running:
            for other in range(1, len(self._environments)):
                self._start(other, SHORTEST_PAUSE)
        if not self._unready:
            self._ready.callback(None)

    def _start(self, number: int, pause: float) -> None:
        self._pauses.pop(number, None)
        descriptors = [port.fileno() for port in self._ports]
        inherited = range(FIRST_DESCRIPTOR, FIRST_DESCRIPTOR + len(descriptors))
        command = [sys.executable, "-c", _TWISTD, "--nodaemon", "--pidfile=", "mailcheck"]
        command += [*self._options, "--inherited", ",".join(map(str, inherited))]
        pipe = inherited.stop
        child = self._running[number] = _Child(
            self._reactor.seconds(), partial(self._note_ready, number)
        )
        self._reactor.spawnProcess(
            child,
            sys.executable,
            command,
            env={**self._environments[number], self._variable: str(pipe)},
            childFDs={
                0: 0,
                1: 1,
                2: 2,
                pipe: "r",
                **dict(zip(inherited, descriptors, strict=True)),
            },
        )
        self._log.info("Process {number} is {pid}", number=number + 1, pid=child.transport.pid)
        child.when_ended.addCallback(self._start_again, number, child, pause)

    def _start_again(self, status: str, number: int, child: "_Child", pause: float) -> None:
        del self._running[number]
        if not self.running:
            return
        has_lasted = self._reactor.seconds() >= child.began + LASTING
        pause = SHORTEST_PAUSE if has_lasted else pause
        self._log.warn(
            "Process {number} has ended ({status}); it is started again in {pause} s",
            number=number + 1,
            status=status,
            pause=pause,
        )
        longer = min(LONGEST_PAUSE, 2 * pause)
        self._pauses[number] = self._reactor.callLater(pause, self._start, number, longer)

    def _close(self, _: object, too_late: IDelayedCall) -> Deferred[Any]:
        stop_timer(too_late)
        return DeferredList([maybeDeferred(port.stopListening) for port in self._ports])


class _Child(ProcessProtocol):
    """The protocol of one process. Its output goes to the output of this process."""

    transport: Any

    def __init__(self, began: float, note_ready: Callable[[], None]) -> None:
        self.began = began
        self._note_ready = note_ready
        self._is_ready = False
        self._received = b""
        self._reports: list[Deferred[ReloadReport]] = []
        self.when_ended: Deferred[str] = Deferred()

    def reload(self, clock: Any) -> Deferred[ReloadReport]:
        """Let the process reload its configuration. Fires with its report, or after `ANSWER`."""

        def give_up(_: object, seconds: float) -> ReloadReport:
            self._reports.remove(report)
            return ReloadReport(problem=f"no answer within {seconds:g} seconds")

        report: Deferred[ReloadReport] = Deferred()
        self._reports.append(report)
        if self._is_ready:
            self.transport.signalProcess("HUP")
        return report.addTimeout(ANSWER, clock, give_up)

    def childDataReceived(self, childFD: int, data: bytes) -> None:
        """Handle the lines on the pipe: the process is ready, or has reloaded."""
        *lines, self._received = (self._received + data).split(b"\n")
        for line in lines:
            if line.startswith(RELOADED):
                self._answer(parse_report(line.removeprefix(RELOADED)))
                continue
            if not self._is_ready and self._reports:
                self.transport.signalProcess("HUP")
            self._is_ready = True
            self._note_ready()

    def _answer(self, report: ReloadReport) -> None:
        if self._reports:
            self._reports.pop(0).callback(report)

    def processEnded(self, reason: Failure) -> None:
        """Report how the process ended. It reads the configuration when it is started again."""
        while self._reports:
            self._answer(ReloadReport(problem="it ended meanwhile"))
        number = getattr(reason.value, "signal", None)
        status = getattr(reason.value, "exitCode", None)
        self.when_ended.callback(signal.Signals(number).name if number else f"exit status {status}")
