"""What a daemon says to its supervisor, and what it does when that says SIGHUP."""

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


class Reactor(Clock):
    """A reactor that runs; what came from a signal is called when the test looks."""

    def __init__(self) -> None:
        super().__init__()
        self._signalled: list[Callable[[], None]] = []

    def callWhenRunning(self, work: Callable[[], None]) -> None:
        """Call it at once."""
        work()

    def callFromThread(self, work: Callable[[], None]) -> None:
        """Call it later."""
        self._signalled.append(work)

    def look(self) -> None:
        """Call what has come."""
        while self._signalled:
            self._signalled.pop(0)()


class Listener:
    """The supervisor's end of the socket."""

    def __init__(self, address: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(address)
        self._socket.setblocking(False)

    def heard(self) -> list[list[str]]:
        """Give what was said since the last time, each in its lines."""
        said = []
        while True:
            try:
                said.append(self._socket.recv(4_096).decode().splitlines())
            except BlockingIOError:
                return said

    def close(self) -> None:
        """Go away."""
        self._socket.close()


@pytest.fixture(params=["a file", "an abstract name"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give where the supervisor listens."""
    is_file = request.param == "a file"
    return str(tmp_path / "notify") if is_file else f"\0mailcheck-test-{os.getpid()}"


@pytest.fixture
def listener(address: str) -> Iterator[Listener]:
    """Give a supervisor."""
    listening = Listener(address)
    yield listening
    listening.close()


@pytest.fixture
def before() -> Iterator[Any]:
    """Put SIGHUP's handler back."""
    handler = signal.getsignal(signal.SIGHUP)
    yield handler
    signal.signal(signal.SIGHUP, handler)


def environment_of(address: str, **more: str) -> dict[str, str]:
    """Give what systemd puts into the environment."""
    return {SOCKET: address.replace("\0", "@"), **more}


def supervised(
    supervisor: Supervisor,
    reload: Callable[[], None],
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
    """It says that it is ready, shows twice in each span that it lives, and says that it stops."""
    reactor = Reactor()
    watched = {WATCHDOG_MICROSECONDS: "20000000", WATCHDOG_PID: str(os.getpid())}
    service = supervised(Supervisor(environment_of(address, **watched)), lambda: None, reactor)
    assert listener.heard() == [[READY, "STATUS=all is well"], [ALIVE]]
    reactor.pump([10, 10])
    assert listener.heard() == [[ALIVE], [ALIVE]]
    service.stopService()
    assert listener.heard() == [[STOPPING]]
    assert not reactor.getDelayedCalls()


@pytest.mark.usefixtures("before")
def test_ready_when_all_is_made(address: str, listener: Listener) -> None:
    """It says that it is ready when all is there that it makes, and not when SIGHUP comes before.

    The watchdog is fed from the beginning.
    """
    made: Deferred[None] = Deferred()
    reactor, read = Reactor(), []
    reading, writing = os.pipe()
    environment = environment_of(
        address, **{WATCHDOG_MICROSECONDS: "20000000", READY_FD: str(writing)}
    )
    service = supervised(Supervisor(environment), lambda: read.append(1), reactor, lambda: made)
    signal.raise_signal(signal.SIGHUP)
    reactor.look()
    assert read == [1]
    assert listener.heard() == [[ALIVE]]
    made.callback(None)
    assert listener.heard() == [[READY, "STATUS=all is well"]]
    service.stopService()
    os.close(writing)
    with os.fdopen(reading) as pipe:
        assert pipe.read() == READY


@pytest.mark.usefixtures("before")
def test_sighup_reads_again(address: str, listener: Listener) -> None:
    """It says when it begins, on the monotonic clock, and when it is ready again."""
    reactor, read = Reactor(), []
    service = supervised(Supervisor(environment_of(address)), lambda: read.append(1), reactor)
    listener.heard()
    signal.raise_signal(signal.SIGHUP)
    assert read == []  # not in the midst of what is done
    reactor.look()
    assert read == [1]
    (begun, (ready,)) = listener.heard()
    assert begun[0] == RELOADING
    assert begun[1].startswith("MONOTONIC_USEC=")
    assert ready == READY
    service.stopService()
    signal.raise_signal(signal.SIGHUP)  # one that comes late ends nothing
    reactor.look()
    assert read == [1]


@pytest.mark.usefixtures("before")
def test_reading_again_may_fail(
    address: str, listener: Listener, logged_failures: list[LogEvent]
) -> None:
    """It is logged, and the daemon goes on and says so."""

    def reload() -> None:
        raise ValueError("no such file")

    reactor = Reactor()
    service = supervised(Supervisor(environment_of(address)), reload, reactor)
    listener.heard()
    signal.raise_signal(signal.SIGHUP)
    reactor.look()
    assert listener.heard()[-1] == [READY]
    assert len(logged_failures) == 1
    service.stopService()


def test_nobody_listens(tmp_path: Path) -> None:
    """Without a supervisor nothing is said; one that has gone away is told of, and no more."""
    with capturedLogs() as events:
        Supervisor({}).tell(READY)
        assert events == []
        Supervisor(environment_of(str(tmp_path / "gone"))).tell(READY)
    assert [event["log_format"] for event in events] == ["the supervisor does not listen: {error}"]


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ({}, None),
        ({WATCHDOG_MICROSECONDS: "30000000"}, 30.0),
        ({WATCHDOG_MICROSECONDS: "30000000", WATCHDOG_PID: "1"}, None),
        ({WATCHDOG_MICROSECONDS: "soon"}, None),
    ],
)
def test_who_is_watched(words: dict[str, str], seconds: float | None) -> None:
    """Only the process that is meant feeds the watchdog."""
    assert Supervisor(words).watchdog_seconds == seconds
