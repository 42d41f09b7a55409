"""Messages from the daemon to its supervisor, and the reload at SIGHUP."""

import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock
from twisted.logger import LogEvent, capturedLogs

from mailcheck.operations.reloads import ReloadReport
from mailcheck.ops.supervision import (
    ALIVE,
    READY,
    READY_FD,
    RELOADING,
    SOCKET,
    STOPPING,
    WATCHDOG_MICROSECONDS,
    WATCHDOG_PID,
    SupervisedService,
    Supervisor,
)
from tests.table import rows


class Reactor(Clock):
    """A running reactor. Calls from a signal are made when the test runs them."""

    def __init__(self) -> None:
        super().__init__()
        self._signalled: list[Callable[[], None]] = []

    def callWhenRunning(self, work: Callable[[], None]) -> None:
        """Make the call at once."""
        work()

    def callFromThread(self, work: Callable[[], None]) -> None:
        """Record the call for later."""
        self._signalled.append(work)

    def look(self) -> None:
        """Make the recorded calls."""
        while self._signalled:
            self._signalled.pop(0)()


class Listener:
    """The supervisor's end of the socket."""

    def __init__(self, address: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(address)
        self._socket.setblocking(False)

    def heard(self) -> list[list[str]]:
        """Return the messages since the last call, each as a list of lines."""
        said = []
        while True:
            try:
                said.append(self._socket.recv(4_096).decode().splitlines())
            except BlockingIOError:
                return said

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


@pytest.fixture(params=["a file", "an abstract name"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of the supervisor's socket."""
    is_file = request.param == "a file"
    return str(tmp_path / "notify") if is_file else f"\0mailcheck-test-{os.getpid()}"


@pytest.fixture
def listener(address: str) -> Iterator[Listener]:
    """Return a supervisor."""
    listening = Listener(address)
    yield listening
    listening.close()


@pytest.fixture
def before() -> Iterator[Any]:
    """Restore the handler of SIGHUP after the test."""
    handler = signal.getsignal(signal.SIGHUP)
    yield handler
    signal.signal(signal.SIGHUP, handler)


def environment_of(address: str, **more: str) -> dict[str, str]:
    """Return the environment that systemd sets."""
    return {SOCKET: address.replace("\0", "@"), **more}


def no_reload() -> Deferred[ReloadReport]:
    """Fail, since the test does not reload."""
    raise AssertionError("no reload was requested")


def recorded(read: list[int]) -> Callable[[], Deferred[ReloadReport]]:
    """Return a reload that changes one option and records its call."""

    def reload() -> Deferred[ReloadReport]:
        read.append(1)
        return succeed(ReloadReport(("[ops] log",)))

    return reload


def supervised(
    supervisor: Supervisor,
    reload: Callable[[], Deferred[ReloadReport]],
    reactor: Reactor,
    when_ready: Callable[[], Deferred[None]] | None = None,
) -> Any:
    """Start the service."""
    service = SupervisedService(
        supervisor, reload, lambda: "all is well", when_ready or (lambda: succeed(None)), reactor
    )
    service.privilegedStartService()
    service.startService()
    return service


@pytest.mark.usefixtures("before")
def test_ready_alive_and_stopping(address: str, listener: Listener) -> None:
    """The service reports ready and stopping, and feeds the watchdog twice in each interval."""
    reactor = Reactor()
    watched = {WATCHDOG_MICROSECONDS: "20000000", WATCHDOG_PID: str(os.getpid())}
    service = supervised(Supervisor(environment_of(address, **watched)), no_reload, reactor)
    assert listener.heard() == [[READY, "STATUS=all is well"], [ALIVE]]
    reactor.pump([10, 10])
    assert listener.heard() == [[ALIVE], [ALIVE]]
    service.stopService()
    assert listener.heard() == [[STOPPING]]
    assert not reactor.getDelayedCalls()


@pytest.mark.usefixtures("before")
def test_ready_when_all_is_made(address: str, listener: Listener) -> None:
    """The service reports ready when the start is complete, and not at an earlier SIGHUP.

    The parent of several processes gets the report of the reload. The watchdog is fed from the
    beginning.
    """
    made: Deferred[None] = Deferred()
    reactor = Reactor()
    read: list[int] = []
    reading, writing = os.pipe()
    environment = environment_of(
        address, **{WATCHDOG_MICROSECONDS: "20000000", READY_FD: str(writing)}
    )
    service = supervised(Supervisor(environment), recorded(read), reactor, lambda: made)
    signal.raise_signal(signal.SIGHUP)
    reactor.look()
    assert read == [1]
    assert listener.heard() == [[ALIVE]]
    made.callback(None)
    assert listener.heard() == [[READY, "STATUS=all is well"]]
    service.stopService()
    os.close(writing)
    with os.fdopen(reading) as pipe:
        assert pipe.readlines() == [
            'RELOADED={"applied":["[ops] log"],"waiting":[],"problem":""}\n',
            f"{READY}\n",
        ]


@pytest.mark.usefixtures("before")
def test_sighup_reads_again(address: str, listener: Listener) -> None:
    """A reload reports its start, with the monotonic time, and then ready."""
    reactor = Reactor()
    read: list[int] = []
    service = supervised(Supervisor(environment_of(address)), recorded(read), reactor)
    listener.heard()
    signal.raise_signal(signal.SIGHUP)
    assert read == []  # a signal does not interrupt running code
    reactor.look()
    assert read == [1]
    (begun, (ready,)) = listener.heard()
    assert begun[0] == RELOADING
    assert begun[1].startswith("MONOTONIC_USEC=")
    assert ready == READY
    service.stopService()
    signal.raise_signal(signal.SIGHUP)  # a late signal does not end the process
    reactor.look()
    assert read == [1]


@pytest.mark.usefixtures("before")
def test_reading_again_may_fail(
    address: str, listener: Listener, logged_failures: list[LogEvent]
) -> None:
    """A failed reload is logged, and the daemon reports ready again."""

    def reload() -> Deferred[ReloadReport]:
        raise ValueError("no such file")

    reactor = Reactor()
    service = supervised(Supervisor(environment_of(address)), reload, reactor)
    listener.heard()
    signal.raise_signal(signal.SIGHUP)
    reactor.look()
    assert listener.heard()[-1] == [READY]
    assert len(logged_failures) == 1
    reports: list[ReloadReport] = []
    service.reload().addCallback(reports.append)
    assert reports == [ReloadReport(problem="internal error; the log of the daemon has the cause")]
    assert len(logged_failures) == 2
    service.stopService()


def test_nobody_listens(tmp_path: Path) -> None:
    """Without a supervisor no message is sent; a vanished supervisor is logged once."""
    with capturedLogs() as events:
        Supervisor({}).tell(READY)
        assert events == []
        Supervisor(environment_of(str(tmp_path / "gone"))).tell(READY)
    assert [event["log_format"] for event in events] == ["the supervisor does not listen: {error}"]


@rows(
    ({}, None),
    ({WATCHDOG_MICROSECONDS: "30000000"}, 30.0),
    ({WATCHDOG_MICROSECONDS: "30000000", WATCHDOG_PID: "1"}, None),
    ({WATCHDOG_MICROSECONDS: "soon"}, None),
)
def test_who_is_watched(words: dict[str, str], seconds: float | None) -> None:
    """Only the process named in the environment feeds the watchdog."""
    assert Supervisor(words).watchdog_seconds == seconds
