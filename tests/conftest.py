"""Hooks and fixtures of all tests: checks for leftovers, the order of tests, and tracing."""

import gc
import importlib.metadata
import os
import signal
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
from mailcheck.daemon.listening import raise_file_limit
from mailcheck.operations.worker_calls import derive_content

patch_dkimpy()

# With this package, each process that imports jsonschema compiles 39 grammars of formats that no
# schema here has, for more than a second.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

# Pytest reads Twisted's version before each test, and each `House` reads that of mailcheck. Without
# a cache, each call parses a file of some kilobytes.
pytest.MonkeyPatch().setattr(importlib.metadata, "version", cache(importlib.metadata.version))

pytest_plugins = ["tests.house", "tests.databases", "tests.servers.redis"]

# Deadlines of Hypothesis would measure the machine. `make soak` uses more examples.
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
"""Markers of tests that run without coverage tracing, like all browser tests.

They repeat lines that other tests cover, with megabytes of input or hundreds of times. Tracing
would triple their duration. Only slow attack tests have the marker, since some lines are covered by
attack tests alone.
"""

WEIGHTS = {"long": 2_000, "end_to_end": 50, "browser": 50, "untraced": 50, "hypothesis": 10}
"""Approximate duration of a test with a marker, or in a folder, in units of an ordinary test."""


@implementer(ILogObserver)
class FailureObserver:
    """Collects the events that are logged as failures or as critical."""

    def __init__(self) -> None:
        self.failures: list[LogEvent] = []

    def __call__(self, event: LogEvent) -> None:
        """Record an event if it is a failure."""
        if event.get("log_level") is LogLevel.critical or "log_failure" in event:
            self.failures.append(event)


def collect_garbage() -> None:
    """Collect garbage, and exclude the remaining objects from later collections."""
    gc.collect()
    gc.freeze()


def pytest_configure() -> None:
    """Let Ctrl-C reach child processes, even if the caller (nohup, a job) ignores SIGINT.

    The limit of open files is raised as each daemon raises it: its connections depend on it, and
    most shells begin with 1,024.
    """
    raise_file_limit()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests of the folders for foreign programs."""
    if not {"browser", "interop"}.isdisjoint(item.path.parts):
        item.add_marker("interop")


@pytest.hookimpl(trylast=True)  # the plugin of Hypothesis marks its tests in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the slowest files first, so that all processes finish at the same time."""
    weights: Counter[str] = Counter()
    for item in items:
        names = {marker.name for marker in item.iter_markers()} | {item.path.parent.name}
        weights[str(item.path)] += max(WEIGHTS.get(name, 1) for name in names)
    items.sort(key=lambda item: (-weights[str(item.path)], str(item.path)))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Disable tracing for tests whose lines other tests cover.

    The marker ``no_cover`` has no effect in processes of xdist: each has a second coverage
    collector, which continues when the first is stopped.
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
    """Initialize what each process caches, then exclude the modules from garbage collection.

    If an untraced test were the first to use a cache, coverage would not record the lines that fill
    it. Each test ends with a collection, so nearly all others would be for nothing.
    """
    if sys.gettrace() is not None:
        derive_content(FIRST_MAIL)
        import_module("mailcheck.checks.spf.pyspf_query")
    gc.set_threshold(100_000)
    collect_garbage()


@pytest.fixture
def logged_failures() -> Iterator[list[LogEvent]]:
    """Collect the failures that a test provokes. The test does not fail because of them."""
    observer = FailureObserver()
    globalLogPublisher.addObserver(observer)
    yield observer.failures
    globalLogPublisher.removeObserver(observer)


@pytest.fixture(autouse=True)
def nothing_left_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that logs a failure, drops one unhandled, or leaves a call in the reactor.

    pytest-twisted alone reports none of these. A test that provokes a failure on purpose uses the
    fixture ``logged_failures``. A test case of trial uses ``flushLoggedErrors``, since trial itself
    checks for logged failures.
    """
    reactor = _the_reactor()
    observer = FailureObserver()
    globalLogPublisher.addObserver(observer)
    before = set(reactor.getDelayedCalls())
    try:
        yield
        collect_garbage()  # an unhandled failure is logged when its Deferred is collected
    finally:
        globalLogPublisher.removeObserver(observer)
    left = [call for call in reactor.getDelayedCalls() if call not in before and call.active()]
    assert not left, f"calls were left in the reactor: {left}"
    is_checked_elsewhere = "logged_failures" in request.fixturenames or isinstance(
        request.instance, SynchronousTestCase
    )
    shown = [] if is_checked_elsewhere else [_shown(event) for event in observer.failures]
    assert not shown, f"failures were logged: {shown}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Count a skipped test as failed in CI, where every test must run."""
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
