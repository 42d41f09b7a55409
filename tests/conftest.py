"""What every test runs under: nothing may be left behind, and nothing left out where CI says so."""

import gc
import importlib.metadata
import os
import signal
import socket
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from functools import cache
from importlib import import_module
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from twisted.logger import ILogObserver, LogEvent, LogLevel, globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer

from mailcheck.assembly.workers import FIRST_MAIL
from mailcheck.checks.dkim.dkimpy_verify import patch_dkimpy
from mailcheck.operations.lazy_functions import derive_content

patch_dkimpy()

# Pytest asks for Twisted's version before each test, and each house for our own: both are read
# from a file of some kilobytes, each time.
pytest.MonkeyPatch().setattr(importlib.metadata, "version", cache(importlib.metadata.version))

pytest_plugins = ["tests.house", "tests.databases", "tests.servers.redis"]

# How long an example takes says something about the machine alone. `make soak` tries many more.
settings.register_profile(
    "untimed",
    settings(),
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("thorough", settings.get_profile("untimed"), max_examples=1000)
settings.load_profile("untimed")

UNTRACED = frozenset(("hypothesis", "untraced"))
"""Markers of tests that go through lines that others cover, megabytes or hundreds of times: traced
they take three times as long. So do those that look at pages with a browser. Attacks that take
long are marked so; the others are traced, since some lines are there for nobody else."""

WEIGHTS = {"long": 2_000, "end_to_end": 50, "browser": 50, "untraced": 50, "hypothesis": 10}
"""How many ordinary tests take as long as one with such a marker, or of such a folder: roughly."""


@implementer(ILogObserver)
class FailureObserver:
    """Collects what is logged as a failure or as critical."""

    def __init__(self) -> None:
        self.failures: list[LogEvent] = []

    def __call__(self, event: LogEvent) -> None:
        """Take an event."""
        if event.get("log_level") is LogLevel.critical or "log_failure" in event:
            self.failures.append(event)


def collect_garbage() -> None:
    """Collect what was dropped, and set the rest aside: the next collection is cheap then."""
    gc.collect()
    gc.freeze()


def pytest_configure() -> None:
    """Let Ctrl-C reach what tests start, also where the caller (nohup, a job) ignores it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Let each process of xdist tell at once which tests it runs.

    Where tests may be run once more, each is told of in two pieces, over TCP: the second would wait
    40 ms for the first to be acknowledged (Nagle's algorithm), longer than most tests take.
    """
    told = getattr(getattr(session.config, "failures_db", None), "sock", None)
    if told is not None and hasattr(session.config, "workerinput"):
        told.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


@pytest.hookimpl(trylast=True)  # the plugin of Hypothesis marks its tests in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take longest: no process is to have one of them for itself last."""
    weights: Counter[str] = Counter()
    for item in items:
        names = {marker.name for marker in item.iter_markers()} | {item.path.parent.name}
        weights[str(item.path)] += max(WEIGHTS.get(name, 1) for name in names)
    items.sort(key=lambda item: (-weights[str(item.path)], str(item.path)))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Look at what is covered where that is told by few examples.

    The marker ``no_cover`` does nothing in processes of xdist: each has a coverage too many, which
    goes on when the other is stopped.
    """
    tracer = sys.gettrace()
    names = {marker.name for marker in item.iter_markers()}
    if tracer is None or not (names & UNTRACED or item.path.parent.name == "browser"):
        return (yield)
    sys.settrace(None)
    try:
        return (yield)
    finally:
        sys.settrace(tracer)


def pytest_collection_finish() -> None:
    """Make what is made once in a process, and set aside what the modules hold.

    Where a test that is not traced were the first to need it, it would pass for untried.
    """
    if sys.gettrace() is not None:
        derive_content(FIRST_MAIL)
        import_module("mailcheck.checks.spf.pyspf_query")
    collect_garbage()


@pytest.fixture
def logged_failures() -> Iterator[list[LogEvent]]:
    """Collect the failures that a test provokes, instead of failing it."""
    observer = FailureObserver()
    globalLogPublisher.addObserver(observer)
    yield observer.failures
    globalLogPublisher.removeObserver(observer)


@pytest.fixture(autouse=True)
def nothing_left_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that logs a failure, drops one unhandled, or leaves a call in the reactor.

    pytest-twisted alone reports none of these. A test that provokes a failure
    on purpose takes it with the fixture ``logged_failures``; a test case of
    trial with ``flushLoggedErrors``, since trial looks after it by itself.
    """
    reactor = _the_reactor()
    observer = FailureObserver()
    globalLogPublisher.addObserver(observer)
    before = set(reactor.getDelayedCalls())
    try:
        yield
        collect_garbage()  # an unhandled failure is logged when its Deferred goes
    finally:
        globalLogPublisher.removeObserver(observer)
    left = [call for call in reactor.getDelayedCalls() if call not in before and call.active()]
    assert not left, f"calls were left in the reactor: {left}"
    looks_itself = "logged_failures" in request.fixturenames or isinstance(
        request.instance, SynchronousTestCase
    )
    shown = [] if looks_itself else [_shown(event) for event in observer.failures]
    assert not shown, f"failures were logged: {shown}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With CI set, a skipped test counts as failed: nothing may be left out there."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("CI"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped in CI: {report.longrepr}"
    return report


def _the_reactor() -> Any:
    from twisted.internet import reactor

    return reactor


def _shown(event: LogEvent) -> str:
    failure = event.get("log_failure")
    return failure.getTraceback() if failure else str(event.get("log_format"))
