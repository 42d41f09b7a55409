"""Runs the tests of one collection in several processes: ``pytest --jobs=3``.

The processes are forked after the collection, so that test modules are imported once. Each takes
the next file of a queue until none is left, and sends its reports to the first process.
"""

import contextlib
import itertools
import os
import selectors
import shutil
import signal
import struct
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, Pipe
from typing import Any

import pytest
import pytest_twisted
from twisted.internet.main import installReactor

try:
    from twisted.internet.epollreactor import EPollReactor as Reactor
except ImportError:  # the default elsewhere
    from twisted.internet.pollreactor import PollReactor as Reactor  # type: ignore[assignment]

SECONDS_PER_LINE = 15.0
"""How often a run prints how far it is."""

_NUMBER = struct.Struct("i")


def _install_unprepared_reactor() -> Reactor:
    reactor = Reactor.__new__(Reactor)
    installReactor(reactor)
    return reactor


REACTOR = _install_unprepared_reactor()
"""The global reactor. Modules may import it, but no process may use the file descriptors of another
one. So it is initialised after the fork, and pytest-twisted is registered then."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the number of processes."""
    parser.addoption("--jobs", type=int, default=0, help="run the tests in so many processes")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Install the reactor, or run the tests in processes that each install their own."""
    jobs = config.getoption("jobs")
    if jobs and not config.option.collectonly:
        config.pluginmanager.register(Jobs(config, jobs), "jobs")
    else:
        _install_reactor(config)


def _install_reactor(config: pytest.Config) -> None:
    REACTOR.__init__()  # type: ignore[misc]
    config.option.reactor = "default"
    config.pluginmanager.register(pytest_twisted, "reactor")


class Jobs:
    """The plugin of the first process."""

    def __init__(self, config: pytest.Config, jobs: int) -> None:
        self._config = config
        self._jobs = jobs
        self._progress = Progress(config)

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Count a test without printing a letter."""
        if report.failed:
            return ("failed" if report.when == "call" else "error", "", "FAILED")
        return ("passed", "", "") if report.passed and report.when == "call" else None

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run all tests."""
        if session.testsfailed and not session.config.option.continue_on_collection_errors:
            raise session.Interrupted(f"{session.testsfailed} errors during collection")
        files = [list(items) for _, items in itertools.groupby(session.items, _file_of)]
        self._progress.begin(len(session.items), len(files), self._jobs)
        # Where tests have their folders: one for the run, since its processes share servers.
        os.environ["PYTEST_DEBUG_TEMPROOT"] = folder = tempfile.mkdtemp(prefix="mailcheck-")
        workers = []
        try:
            queue = _queue_of(len(files))
            workers = [Worker(session, number, queue, files) for number in range(self._jobs)]
            os.close(queue)
            self._collect_reports(session, workers)
        finally:
            for worker in workers:
                worker.end()
        if not session.testsfailed:
            shutil.rmtree(folder, ignore_errors=True)
        return True

    def _collect_reports(self, session: pytest.Session, workers: "Sequence[Worker]") -> None:
        hook = self._config.hook
        with selectors.DefaultSelector() as selector:
            for worker in workers:
                selector.register(worker.reports, selectors.EVENT_READ, worker)
            while selector.get_map():
                for ready, _ in selector.select(SECONDS_PER_LINE):
                    worker = ready.data
                    try:
                        told = worker.reports.recv()
                    except EOFError:
                        selector.unregister(worker.reports)
                        worker.require_clean_end()
                        continue
                    if isinstance(told, str):
                        worker.test = told
                        continue
                    report = hook.pytest_report_from_serializable(config=self._config, data=told)
                    hook.pytest_runtest_logreport(report=report)
                    self._progress.count(report)
                    if session.shouldfail or session.shouldstop:
                        raise session.Failed(session.shouldfail or session.shouldstop)
                self._progress.show()


class Progress:
    """Prints how far a run is."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def begin(self, tests: int, files: int, jobs: int) -> None:
        """Start to count."""
        self._tests = tests
        self._ended = self._failed = 0
        self._began = self._shown = time.monotonic()
        seed = self._config.getoption("randomly_seed", "none")
        self._print(f"{tests:,} tests in {files:,} files, {jobs} processes, --randomly-seed={seed}")

    def count(self, report: pytest.TestReport) -> None:
        """Count a report."""
        self._ended += report.when == "teardown"
        if report.failed:
            self._failed += 1
            self._print(f"FAILED {report.nodeid}")

    def show(self) -> None:
        """Print a line, unless one was printed a short time ago."""
        now = time.monotonic()
        if now < self._shown + SECONDS_PER_LINE:
            return
        self._shown = now
        failed = f", {self._failed} failed" if self._failed else ""
        self._print(f"{self._ended:,} of {self._tests:,} tests{failed}, {now - self._began:.0f} s")

    def _print(self, line: str) -> None:
        terminal: Any = self._config.pluginmanager.getplugin("terminalreporter")
        terminal.write_line(line)
        terminal.flush()


class Worker:
    """A process that runs tests, as the first process sees it."""

    def __init__(
        self, session: pytest.Session, number: int, queue: int, files: Sequence[list[pytest.Item]]
    ) -> None:
        self.test = ""
        """The test that it runs."""
        self.reports, reports = Pipe(duplex=False)
        self._status: int | None = None
        self._pid = os.fork()
        if self._pid == 0:
            status = 1
            try:
                self.reports.close()
                _run_files(session, number, queue, files, reports)
                status = 0
            finally:
                os._exit(status)
        reports.close()

    def require_clean_end(self) -> None:
        """Fail the run if the process has ended before its tests."""
        _, self._status = os.waitpid(self._pid, 0)
        if self._status:
            pytest.exit(f"a process ended with {self._status} in {self.test}", 1)

    def end(self) -> None:
        """Stop the process, if it runs."""
        if self._status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGINT)  # its reactor handles SIGTERM
            os.waitpid(self._pid, 0)


def _run_files(
    session: pytest.Session,
    number: int,
    queue: int,
    files: Sequence[list[pytest.Item]],
    reports: Connection,
) -> None:
    config = session.config
    plugins = config.pluginmanager
    for name in ("jobs", "terminalreporter"):
        plugins.unregister(name=name)
    # By this attribute, plugins know the processes of pytest-xdist.
    config.workerinput = {"workerid": f"job{number}"}  # type: ignore[attr-defined]
    capture: Any = plugins.getplugin("capturemanager")
    capture.stop_global_capturing()  # its files are those of the first process
    capture.start_global_capturing()
    _install_reactor(config)
    plugins.register(Reporter(config, reports))
    status = pytest.ExitCode.INTERNAL_ERROR
    try:
        tests = itertools.chain.from_iterable(_take(queue, files))
        item = next(tests, None)
        while item is not None:
            # The fixtures that the next test uses, too, stay.
            following = next(tests, None)
            config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            item = following
        status = pytest.ExitCode.OK
    except BaseException:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # fixtures stop their servers
        capture.stop_global_capturing()
        traceback.print_exc()
        raise
    finally:
        config.hook.pytest_sessionfinish(session=session, exitstatus=status)


class Reporter:
    """The plugin that sends the reports of a process to the first one."""

    def __init__(self, config: pytest.Config, reports: Connection) -> None:
        self._config = config
        self._reports = reports

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Name the test that begins."""
        self._reports.send(nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Send a report."""
        hook = self._config.hook
        self._reports.send(hook.pytest_report_to_serializable(config=self._config, report=report))


def _queue_of(count: int) -> int:
    """Return a descriptor from which each process reads the number of the next file."""
    reading, writing = os.pipe()
    os.write(writing, b"".join(_NUMBER.pack(number) for number in range(count)))
    os.close(writing)
    return reading


def _take(queue: int, files: Sequence[list[pytest.Item]]) -> Iterator[list[pytest.Item]]:
    while packed := os.read(queue, _NUMBER.size):
        yield files[_NUMBER.unpack(packed)[0]]


def _file_of(item: pytest.Item) -> str:
    return str(item.path)
