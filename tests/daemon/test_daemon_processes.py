"""Several processes on the same ports: listening, inheritance and restarts."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.error import CannotListenError, ProcessDone, ProcessTerminated
from twisted.internet.task import Clock
from twisted.logger import LogLevel, capturedLogs
from twisted.python.failure import Failure

from mailcheck.assembly.ops import Environment
from mailcheck.assembly.running.processes import (
    inherited_ports,
    metrics_addresses,
    parent_of_processes,
    shared_addresses,
)
from mailcheck.config.options import (
    Config,
    DaemonOptions,
    OpsOptions,
    SmtpOptions,
    StorageOptions,
    WebOptions,
)
from mailcheck.core.instants import Instant
from mailcheck.core.network_addresses import parse_listen_address
from mailcheck.daemon.listening import CannotStart
from mailcheck.daemon.processes import (
    ANSWER,
    LASTING,
    LONGEST_PAUSE,
    PATIENCE,
    SHORTEST_PAUSE,
    Processes,
)
from mailcheck.operations.reloads import RELOADED, ReloadReport, dump_report
from mailcheck.ops.supervision import SOCKET
from tests.table import rows

ADDRESSES = [parse_listen_address(text) for text in ("127.0.0.1:25", "127.0.0.1:80")]
DESCRIPTORS = {25: 71, 80: 72}


class Port:
    """A listening port that accepts no connections here."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.is_read = True
        self.is_open = True

    def fileno(self) -> int:
        """Return its descriptor."""
        return DESCRIPTORS[self.number]

    def stopReading(self) -> None:
        """Stop accepting connections."""
        self.is_read = False

    def stopListening(self) -> None:
        """Close it."""
        self.is_open = False


class Child:
    """A started process; the test ends it."""

    def __init__(self, protocol: Any, arguments: Sequence[str], env: Mapping[str, str]) -> None:
        self.protocol = protocol
        self.arguments = list(arguments)
        self.environment = env
        self.descriptors: dict[int, int | str] = {}
        self.heard: list[str] = []
        self.pid = 4711
        protocol.transport = self

    def signalProcess(self, name: str) -> None:
        """Record a signal."""
        self.heard.append(name)

    def end(self, status: int = 0, signal: int | None = None) -> None:
        """End the process."""
        well = status == 0 and signal is None
        why: Exception = ProcessDone(0) if well else ProcessTerminated(status, signal)
        self.protocol.processEnded(Failure(why))


class Machine(Clock):
    """A reactor with simulated ports and processes."""

    def __init__(self, taken: Sequence[int] = ()) -> None:
        super().__init__()
        self.ports: list[Port] = []
        self.children: list[Child] = []
        self._taken = taken

    def listenTCP(self, port: int, _: object, **__: object) -> Port:
        """Open a port, unless it is in use."""
        if port in self._taken:
            raise CannotListenError("127.0.0.1", port, OSError(98, "Address already in use"))
        self.ports.append(Port(port))
        return self.ports[-1]

    def callWhenRunning(self, work: Any) -> None:
        """Call the function at once."""
        work()

    def spawnProcess(
        self,
        protocol: Any,
        _: str,
        arguments: Sequence[str],
        env: Mapping[str, str],
        childFDs: dict[int, int | str],  # noqa: N803
    ) -> None:
        """Record a process."""
        self.children.append(Child(protocol, arguments, env))
        self.children[-1].descriptors = childFDs


def started(machine: Machine, count: int = 2, *, first_alone: bool = False) -> Processes:
    """Start a number of processes."""
    environments = [{"NUMBER": str(number)} for number in range(count)]
    processes = Processes(
        machine, ADDRESSES, ["--config=a.toml"], environments, "PIPE", first_alone=first_alone
    )
    processes.privilegedStartService()
    processes.startService()
    return processes


def stopped(processes: Processes) -> list[Any]:
    """Stop them. Return a list that is filled when all have ended."""
    ended: list[Any] = []
    stopping: Deferred[Any] = processes.stopService()
    stopping.addBoth(ended.append)
    return ended


def end_all(machine: Machine, processes: Processes) -> None:
    """Stop them, and end each."""
    ended = stopped(processes)
    for child in machine.children:
        child.end()
    assert ended


def test_each_process_gets_the_open_ports() -> None:
    """The parent opens the ports once, accepts no connection, and passes them on."""
    machine = Machine()
    processes = started(machine)
    assert [port.number for port in machine.ports] == [25, 80]
    assert not any(port.is_read for port in machine.ports)
    for number, child in enumerate(machine.children):
        assert child.descriptors == {0: 0, 1: 1, 2: 2, 3: 71, 4: 72, 5: "r"}
        assert child.arguments[-3:] == ["--config=a.toml", "--inherited", "3,4"]
        assert child.environment == {"NUMBER": str(number), "PIPE": "5"}
    end_all(machine, processes)
    assert not any(port.is_open for port in machine.ports)


@rows(True, False)
def test_ready_when_all_are(first_alone: bool) -> None:
    """The parent is ready when all processes are. The first can be started alone."""
    machine = Machine()
    processes = started(machine, 3, first_alone=first_alone)
    ready = processes.when_ready()
    assert len(machine.children) == (1 if first_alone else 3)
    for _ in range(2):  # a process says so again after a reload
        machine.children[0].protocol.childDataReceived(5, b"READY=1\n")
        assert len(machine.children) == 3
    machine.children[1].protocol.childDataReceived(5, b"READY=1\n")
    assert not ready.called
    machine.children[2].end(status=1)
    machine.advance(SHORTEST_PAUSE)
    machine.children[3].protocol.childDataReceived(5, b"READY=1\n")
    assert ready.called
    stopped(processes)
    for child in machine.children[:2] + machine.children[3:]:
        child.end()


def test_a_port_that_is_taken() -> None:
    """A port in use is reported, and no process is started."""
    machine = Machine(taken=[80])
    with pytest.raises(CannotStart, match=r"127\.0\.0\.1:80"):
        started(machine)
    assert machine.children == []


def test_a_process_that_ends_is_started_again() -> None:
    """A process is restarted after a second, and after longer pauses if it keeps ending."""
    machine = Machine()
    processes = started(machine, count=1)
    for pause in (1.0, 2.0, 4.0, 8.0, 16.0, LONGEST_PAUSE, LONGEST_PAUSE):
        count = len(machine.children)
        machine.children[-1].end(signal=9)
        machine.advance(pause - 0.1)
        assert len(machine.children) == count
        machine.advance(0.1)
        assert len(machine.children) == count + 1
    machine.advance(LASTING)
    with capturedLogs() as events:
        machine.children[-1].end(status=1)
    (told,) = [event for event in events if event["log_level"] is LogLevel.warn]
    assert (told["status"], told["pause"]) == ("exit status 1", SHORTEST_PAUSE)
    ended = stopped(processes)
    assert ended
    assert not machine.getDelayedCalls()


def test_processes_that_do_not_end_are_killed() -> None:
    """Processes get SIGTERM and time to receive the current mail."""
    machine = Machine()
    processes = started(machine)
    ended = stopped(processes)
    machine.children[0].end()
    machine.advance(PATIENCE - 1)
    assert [child.heard for child in machine.children] == [["TERM"], ["TERM"]]
    assert not ended
    machine.advance(1)
    assert machine.children[1].heard == ["TERM", "KILL"]
    machine.children[1].end(signal=9)
    assert ended
    assert len(machine.children) == 2


def report_line(**parts: Any) -> bytes:
    """Return what a process writes after a reload."""
    return RELOADED + dump_report(ReloadReport(**parts)) + b"\n"


def test_all_are_told_to_read_again() -> None:
    """SIGHUP is passed on, to a process that is still starting when it is ready.

    The reload ends with the last report, or after a time. The problem of the first process that
    failed is its result.
    """
    machine = Machine()
    processes = started(machine, 3)
    first, second, third = (child.protocol for child in machine.children)
    for protocol in (first, second):
        protocol.childDataReceived(5, b"READY=1\n")

    def heard() -> list[list[str]]:
        return [child.heard for child in machine.children]

    done: list[str] = []
    Deferred.fromCoroutine(processes.reload()).addCallback(done.append)
    assert heard() == [["HUP"], ["HUP"], []]
    third.childDataReceived(5, b"READY=1\n")
    assert heard() == [["HUP"], ["HUP"], ["HUP"]]
    for protocol in (first, second, third):
        line = report_line()
        protocol.childDataReceived(5, line[:9])
        assert done == []
        protocol.childDataReceived(5, line[9:])
    assert done == [""]

    Deferred.fromCoroutine(processes.reload()).addCallback(done.append)
    first.childDataReceived(5, report_line(applied=("[ops] log",)))
    second.childDataReceived(5, report_line(problem="line 3: no"))
    machine.advance(ANSWER)
    assert done[1:] == ["process 2: line 3: no"]

    Deferred.fromCoroutine(processes.reload()).addCallback(done.append)
    machine.children[0].end(status=1)
    for protocol in (second, third):
        protocol.childDataReceived(5, report_line())
    assert done[2:] == ["process 1: it ended meanwhile"]
    del machine.children[0]
    end_all(machine, processes)


def config_of(folder: Path) -> Config:
    """Return the configuration of two processes."""
    return Config(
        smtp=SmtpOptions(listen=("127.0.0.1:25",), submission_listen=()),
        web=WebOptions(listen=("127.0.0.1:80",)),
        ops=OpsOptions(listen=("127.0.0.1:9000", "unix:/run/metrics")),
        daemon=DaemonOptions(processes=2),
        storage=StorageOptions(state_directory=str(folder)),
    )


def test_what_each_process_has_for_itself(tmp_path: Path) -> None:
    """Each process has a port for metrics; the first creates the account."""
    machine = Machine()
    config = config_of(tmp_path)
    variables = {SOCKET: "/run/notify", "HOME": "/root"}
    environment = Environment(io.StringIO(), variables, None, lambda: config, {})
    tree = parent_of_processes(config, ["-n"], environment, machine, Instant(0))
    (processes,) = [one for one in tree if isinstance(one, Processes)]
    processes.privilegedStartService()
    processes.startService()
    first, second = (child.environment for child in machine.children)
    assert SOCKET not in first
    assert first["HOME"] == "/root"
    assert first["MAILCHECK_DAEMON_PROCESSES"] == second["MAILCHECK_DAEMON_PROCESSES"] == "1"
    assert "MAILCHECK_ACCOUNTS_BOOTSTRAP" not in first
    assert second["MAILCHECK_ACCOUNTS_BOOTSTRAP"] == "false"
    assert first["MAILCHECK_OPS_LISTEN"] == "127.0.0.1:9000,unix:/run/metrics"
    assert second["MAILCHECK_OPS_LISTEN"] == "127.0.0.1:9001"
    assert metrics_addresses(config, 1) == ["127.0.0.1:9001"]
    end_all(machine, processes)


def test_a_process_finds_the_ports_that_it_was_given(tmp_path: Path) -> None:
    """Inherited descriptors are in the order of the options. Without them, ports are opened."""
    config = config_of(tmp_path)
    endpoints = [address.endpoint for address in shared_addresses(config)]
    assert inherited_ports(config, "3,4") == dict(zip(endpoints, (3, 4), strict=True))
    assert inherited_ports(config, "") == {}
