"""The private spamd: start, end, and failures of its processes."""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.error import ProcessDone
from twisted.internet.task import Clock
from twisted.logger import capturedLogs
from twisted.python.failure import Failure
from zope.interface import implementer

from mailcheck.checks.deliverability.content_filter import FilterProblem
from mailcheck.daemon.spamd_folder import SpamdSettings, make_folder
from mailcheck.daemon.spamd_keeper import CANNOT_START
from mailcheck.daemon.spamd_process import KEEPER, SpamdReactor
from mailcheck.daemon.spamd_service import IDLE_SECONDS, MAX_BACK_OFF, START_SECONDS, SpamdService
from mailcheck.ports.probes import FilterFailed
from tests.house import result_of
from tests.probes.scripted_hosts import collect
from tests.servers.clocks import accelerated
from tests.table import rows

HEAD = b"Nov 21 23:30:58.988 [15732] "
STARTED = HEAD + b"info: spamd: server started on UNIX domain socket /x (running version 4.0.1)\n"


class ChildTransport:
    """The pipes of a simulated process."""

    def __init__(self, protocol: Any) -> None:
        self.protocol = protocol
        self.is_told_to_end = False
        self.signals: list[str] = []
        self.is_closed = False
        self.has_died = False

    def closeChildFD(self, number: int) -> None:
        """Close the keeper's input."""
        assert number == 0
        self.is_told_to_end = True

    def signalProcess(self, name: str) -> None:
        """Send a signal."""
        self.signals.append(name)

    def loseConnection(self) -> None:
        """Close all pipes."""
        self.is_closed = True


@implementer(SpamdReactor)
class Processes(Clock):
    """A reactor with simulated processes."""

    def __init__(self) -> None:
        super().__init__()
        self.started: list[ChildTransport] = []
        self.commands: list[list[str]] = []
        self.refuses = False

    def spawnProcess(self, protocol: Any, executable: Any, args: Any, **_: Any) -> Any:  # type: ignore[override]
        """Record a process."""
        if self.refuses:
            raise OSError("no more processes")
        transport = ChildTransport(protocol)
        self.started.append(transport)
        self.commands.append(args)
        protocol.makeConnection(transport)
        return transport

    def say(self, line: bytes, index: int = -1) -> None:
        """Simulate output."""
        self.started[index].protocol.childDataReceived(2, line)

    def die(self, index: int = -1) -> None:
        """End a process."""
        self.started[index].has_died = True
        protocol = self.started[index].protocol
        protocol.processExited(Failure(ProcessDone(0)))
        protocol.processEnded(Failure(ProcessDone(0)))


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create directories below the test's own."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def processes() -> Processes:
    """A reactor."""
    return Processes()


def installed() -> str:
    """Find the program."""
    return "/usr/sbin/spamd"


@contextmanager
def serving(
    processes: Processes,
    find: Callable[[], str | None] = installed,
    **settings: Any,
) -> Iterator[SpamdService]:
    """Run a service. No process remains afterwards."""
    service = SpamdService(processes, SpamdSettings(**settings), find)
    service.startService()
    yield service
    stopped = collect(service.stopService())
    for index in range(len(processes.started)):
        if not processes.started[index].has_died:
            processes.die(index)
    assert stopped
    assert processes.getDelayedCalls() == []


@pytest.fixture
def private(processes: Processes) -> Iterator[SpamdService]:
    """A started service with the program installed."""
    with serving(processes) as service:
        yield service


def problem_of(results: list[Any]) -> FilterProblem:
    """Return the reason of the failure."""
    (failure,) = results
    assert failure.check(FilterFailed)
    problem: FilterProblem = failure.value.problem
    return problem


class TestStarting:
    """The start by the first mail."""

    def test_it_starts_when_it_is_needed(self, processes: Processes, private: SpamdService) -> None:
        """No process is started before the first mail, and two mails start one."""
        assert processes.started == []
        assert not private.is_running
        waiting = [collect(private.socket_path()) for _ in range(2)]
        assert private.is_running
        assert not any(waiting)
        processes.say(STARTED[:50])
        processes.say(STARTED[50:])
        (path,) = waiting[0]
        assert path.endswith("/socket")
        assert waiting[1] == [path] == [result_of(private.socket_path())]
        assert len(processes.started) == 1
        assert private.engine == "SpamAssassin 4.0.1"

    def test_how_it_is_started(self, processes: Processes, private: SpamdService) -> None:
        """It runs under a keeper, with local tests only, on its own socket."""
        collect(private.socket_path())
        (command,) = processes.commands
        assert command[1:3] == ["-m", KEEPER]
        assert command[4] == ("nobody" if os.geteuid() == 0 else "")
        assert command[5] == "/usr/sbin/spamd"
        assert {"--local", "--nouser-config", "--socketmode=0600"} <= set(command)

    def test_network_tests(self, processes: Processes) -> None:
        """The operator can enable network tests."""
        with serving(processes, network_tests=True) as service:
            collect(service.socket_path())
        assert "--local" not in processes.commands[0]

    def test_not_installed(self, processes: Processes) -> None:
        """If the program is missing nothing is started. It is searched for again each time."""
        found = [None, None, "/usr/sbin/spamd"]
        with serving(processes, lambda: found.pop(0)) as service:
            for _ in range(2):
                assert problem_of(collect(service.socket_path())) is FilterProblem.NOT_INSTALLED
            assert collect(service.socket_path()) == []

    def test_a_service_that_does_not_run(self, processes: Processes) -> None:
        """Before the start and after the stop of the service it is unavailable."""
        service = SpamdService(processes, SpamdSettings(), installed)
        assert problem_of(collect(service.socket_path())) is FilterProblem.UNREACHABLE
        assert collect(service.stopService()) == [None]
        assert processes.started == []

    def test_no_process_can_be_made(
        self, processes: Processes, private: SpamdService, temporary: Path
    ) -> None:
        """A failure to create a process is reported, and no directory remains."""
        processes.refuses = True
        assert problem_of(collect(private.socket_path())) is FilterProblem.UNREACHABLE
        assert list(temporary.iterdir()) == []

    def test_a_user_that_does_not_exist(self, processes: Processes) -> None:
        """An unknown user is reported if the daemon runs as root."""
        with serving(processes, user="nobody-x") as service:
            results = collect(service.socket_path())
            if os.geteuid() == 0:
                assert problem_of(results) is FilterProblem.UNREACHABLE

    def test_it_does_not_listen(self, processes: Processes, private: SpamdService) -> None:
        """If it does not become ready, it is ended and not restarted at once."""
        waiting = collect(private.socket_path())
        processes.advance(START_SECONDS + 1)
        assert problem_of(waiting) is FilterProblem.UNREACHABLE
        assert processes.started[0].is_told_to_end
        assert problem_of(collect(private.socket_path())) is FilterProblem.UNREACHABLE
        assert len(processes.started) == 1

    def test_who_gives_up_waiting(self, processes: Processes, private: SpamdService) -> None:
        """A cancelled mail does not end the start for others."""
        waiting = private.socket_path()
        others = collect(private.socket_path())
        collect(waiting)
        waiting.cancel()
        processes.say(STARTED)
        assert len(others) == 1


class TestEnding:
    """The end: idle, dead or stopped."""

    def start(self, processes: Processes, private: SpamdService) -> None:
        """Simulate that it listens."""
        waiting = collect(private.socket_path())
        processes.say(STARTED)
        assert isinstance(waiting[0], str)

    def test_idle(self, processes: Processes, private: SpamdService) -> None:
        """It ends after ten minutes without mail, and the next mail starts another."""
        self.start(processes, private)
        processes.advance(IDLE_SECONDS - 1)
        result_of(private.socket_path())
        processes.advance(IDLE_SECONDS - 1)
        assert not processes.started[0].is_told_to_end
        processes.advance(2)
        assert processes.started[0].is_told_to_end
        assert not private.is_running
        self.start(processes, private)
        processes.die(0)
        assert private.is_running
        assert len(processes.started) == 2

    def test_it_dies(self, processes: Processes, private: SpamdService) -> None:
        """After its death, the next mail starts it again."""
        self.start(processes, private)
        processes.die()
        assert not private.is_running
        self.start(processes, private)
        assert len(processes.started) == 2

    def test_it_keeps_dying(self, processes: Processes, private: SpamdService) -> None:
        """If it keeps dying, the delay of restarts grows up to a minute."""
        for seconds in (0, 1, 2, 4, 8, 16, 32, 60, 60):
            if seconds:
                processes.advance(seconds - 0.1)
                assert problem_of(collect(private.socket_path())) is FilterProblem.UNREACHABLE
                processes.advance(0.2)
            waiting = collect(private.socket_path())
            assert not waiting
            if not seconds:  # the first two follow each other at once
                processes.die()
                waiting = collect(private.socket_path())
            processes.die()
            assert problem_of(waiting) is FilterProblem.UNREACHABLE
        assert MAX_BACK_OFF == 60

    def test_a_long_life(self, processes: Processes, private: SpamdService) -> None:
        """Deaths after a long life do not delay restarts."""
        for _ in range(5):
            self.start(processes, private)
            processes.advance(100)
            processes.die()
        self.start(processes, private)

    def test_stopping(self, processes: Processes) -> None:
        """The service stops after the process has ended, and waiting callers fail."""
        service = SpamdService(processes, SpamdSettings(), installed)
        service.startService()
        waiting = collect(service.socket_path())
        stopped = collect(service.stopService())
        assert problem_of(waiting) is FilterProblem.UNREACHABLE
        assert processes.started[0].is_told_to_end
        assert not stopped
        processes.advance(11)
        assert processes.started[0].signals == ["KILL"]
        processes.die()
        assert stopped
        assert processes.getDelayedCalls() == []

    def test_pipes_that_stay_open(self, processes: Processes, private: SpamdService) -> None:
        """Other processes with the pipes of an ended keeper are not waited for."""
        self.start(processes, private)
        processes.started[0].protocol.processExited(Failure(ProcessDone(0)))
        processes.advance(1.1)
        assert processes.started[0].is_closed
        processes.started[0].protocol.processEnded(Failure(ProcessDone(0)))
        processes.started[0].has_died = True
        assert not private.is_running


def test_no_mail_gets_into_the_log(processes: Processes, private: SpamdService) -> None:
    """The output of spamd is logged during the start, later only messages about itself."""
    with capturedLogs() as events:
        collect(private.socket_path())
        processes.say(HEAD + b"warn: config: failed to parse line\n")
        processes.say(STARTED)
        for secret in (
            b"info: spamd: checking message <secret@example.com> for (unknown):65534",
            b"info: spamd: result: . 0 - secret scantime=0.1",
            b"warn: plugin: eval failed: secret",
            b"info: spamd: server started on UNIX domain socket secret (running version 1)",
        ):
            processes.say(HEAD + secret + b"\n")
        processes.say(b"secret\n" + b"secret" * 1_000_000)
        processes.say(b"\n" + HEAD + b"warn: spamd: timeout: (25 second timeout)\n")
    shown = [event["text"] for event in events if "text" in event]
    assert shown == ["config: failed to parse line", "spamd: timeout: (25 second timeout)"]
    assert "secret" not in repr(events)


def test_the_folder(temporary: Path) -> None:
    """The directory is private and has the site's plugins and this configuration."""
    site = temporary / "etc"
    site.mkdir()
    (site / "init.pre").write_text("loadplugin A\n")
    (site / "local.cf").write_text("secret\n")
    folder = make_folder("", [str(temporary / "none"), str(site)])
    assert folder.path.stat().st_mode & 0o777 == 0o700
    names = sorted(path.name for path in (folder.path / "site").iterdir())
    assert names == ["init.pre", "local.cf"]
    assert "use_bayes 0" in (folder.path / "site" / "local.cf").read_text()
    assert f"--siteconfigpath={folder.path / 'site'}" in folder.command("spamd", SpamdSettings())
    assert len(os.fsencode(folder.socket)) <= 103


def test_a_long_way_to_the_temporary_folder(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path that is too long for a socket is not used."""
    long = temporary / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    folder = make_folder("", [])
    assert len(os.fsencode(folder.socket)) <= 103
    folder.remove()
    assert not folder.path.exists()


def test_a_site_in_an_unknown_place(temporary: Path) -> None:
    """If the plugins are not found, SpamAssassin uses its own configuration."""
    command = make_folder("", [str(temporary / "none")]).command("spamd", SpamdSettings())
    assert not any("siteconfigpath" in argument for argument in command)


PROGRAM = """\
import os, signal, sys, time
child = os.fork()
if sys.argv[1] == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if child:
    print("running", os.getpid(), child, sorted(os.environ), os.getcwd(), flush=True)
while sys.argv[1] != "ends":
    time.sleep(0.01)
"""


class Keeper:
    """A real keeper of a test program, whose seconds of patience pass faster."""

    def __init__(self, folder: Path, kind: str = "obedient", program: str = sys.executable) -> None:
        folder.mkdir()
        command = [sys.executable, "-m", KEEPER, str(folder), "", program, "-c", PROGRAM, kind]
        self.folder = folder
        pipe, environment = subprocess.PIPE, accelerated(20)
        self.process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment
        )

    def first_line(self) -> list[bytes]:
        """Return the output of the program."""
        assert self.process.stdout is not None
        assert select.select([self.process.stdout], [], [], 60)[0]
        return self.process.stdout.readline().split(maxsplit=3)

    def pids(self) -> tuple[int, int]:
        """Return the program and the child that it has forked."""
        _, program, child, _ = self.first_line()
        return int(program), int(child)

    def let_go(self) -> tuple[int, bytes]:
        """Close its input as a dying daemon does. Return its status and last output."""
        _, errors = self.process.communicate(timeout=60)
        return self.process.returncode, errors


def is_running(pid: int) -> bool:
    """Return whether a process exists, including zombies."""
    return Path(f"/proc/{pid}").exists() if sys.platform == "linux" else _answers(pid)


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def has_ended(pid: int) -> bool:
    """Return whether a process is gone. On Linux its keeper has reaped it."""
    if sys.platform == "linux":
        return not is_running(pid)
    deadline = time.monotonic() + 60
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not is_running(pid)


class TestKeeper:
    """The process between the daemon and spamd."""

    @rows("obedient", "stubborn")
    def test_the_daemon_is_gone(self, temporary: Path, kind: str) -> None:
        """When its input ends, spamd, its children and the directory are gone."""
        keeper = Keeper(temporary / "run", kind)
        program, child = keeper.pids()
        keeper.let_go()
        assert has_ended(program)
        assert has_ended(child)
        assert not keeper.folder.exists()

    def test_the_environment(self, temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The program does not get the daemon's environment, and runs in its directory."""
        monkeypatch.setenv("MAILCHECK_ACCOUNTS_BOOTSTRAP_KEY", "secret-key-of-the-operator")
        keeper = Keeper(temporary / "run")
        said = keeper.first_line()[3]
        keeper.let_go()
        assert b"'HOME', 'LC_ALL', 'PATH', 'TMPDIR'" in said
        assert b"MAILCHECK" not in said
        assert said.endswith(str(keeper.folder).encode() + b"\n")

    def test_spamd_is_killed(self, temporary: Path) -> None:
        """When spamd dies, its keeper kills the remaining children."""
        keeper = Keeper(temporary / "run")
        program, child = keeper.pids()
        os.kill(program, signal.SIGKILL)
        assert keeper.process.wait(20) == 128 + signal.SIGKILL
        assert has_ended(child)
        assert not keeper.folder.exists()
        keeper.let_go()

    def test_spamd_ends(self, temporary: Path) -> None:
        """When spamd ends by itself, the keeper has the same exit status."""
        keeper = Keeper(temporary / "run", "ends")
        assert keeper.process.wait(20) == 0
        assert keeper.let_go()[1] == b""

    def test_signals(self, temporary: Path) -> None:
        """Ctrl-C or SIGTERM for the process group does not end it before the daemon."""
        keeper = Keeper(temporary / "run")
        program, _ = keeper.pids()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            keeper.process.send_signal(number)
        status, _ = keeper.let_go()
        assert status == 128 + signal.SIGTERM  # of the program, when its keeper ended it
        assert has_ended(program)

    def test_no_such_program(self, temporary: Path) -> None:
        """A program that cannot be started is reported, and no directory remains."""
        keeper = Keeper(temporary / "run", program=str(temporary / "none"))
        status, errors = keeper.let_go()
        assert status == CANNOT_START
        assert b"none" in errors
        assert not keeper.folder.exists()
