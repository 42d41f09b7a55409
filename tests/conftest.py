"""What every test runs under: nothing may be left behind, and HTTP keeps to SPEC.md."""

import os
from collections.abc import Iterator

import pytest
from twisted.logger import LogEvent, LogLevel, globalLogPublisher

pytest_plugins = ["tests.house"]


@pytest.fixture(autouse=True)
def nothing_left_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that logs a failure or leaves a call in the reactor.

    pytest-twisted alone reports neither. A test that provokes a failure on
    purpose takes it with the fixture ``logged_failures``.
    """
    from twisted.internet import reactor

    failures: list[LogEvent] = []

    def observe(event: LogEvent) -> None:
        if event.get("log_level") is LogLevel.critical or "log_failure" in event:
            failures.append(event)

    globalLogPublisher.addObserver(observe)
    before = set(reactor.getDelayedCalls())  # type: ignore[attr-defined]
    try:
        yield
    finally:
        globalLogPublisher.removeObserver(observe)
    expected = getattr(request.node, "expected_failures", [])
    unexpected = [event for event in failures if event not in expected]
    assert not unexpected, f"failures were logged: {[_shown(event) for event in unexpected]}"
    left = [
        call
        for call in reactor.getDelayedCalls()  # type: ignore[attr-defined]
        if call not in before and call.active()
    ]
    assert not left, f"calls were left in the reactor: {left}"


@pytest.fixture
def logged_failures(request: pytest.FixtureRequest) -> Iterator[list[LogEvent]]:
    """Collect the failures that a test provokes, instead of failing it."""
    collected: list[LogEvent] = []

    def observe(event: LogEvent) -> None:
        if event.get("log_level") is LogLevel.critical or "log_failure" in event:
            collected.append(event)

    globalLogPublisher.addObserver(observe)
    request.node.expected_failures = collected
    yield collected
    globalLogPublisher.removeObserver(observe)


def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """With CI set, a skipped test counts as failed: nothing may be left out there."""
    if os.environ.get("CI") and call.excinfo is not None:
        if call.excinfo.errisinstance(pytest.skip.Exception):
            pytest.fail(f"skipped in CI: {call.excinfo.value}")


def _shown(event: LogEvent) -> str:
    failure = event.get("log_failure")
    return failure.getTraceback() if failure else str(event.get("log_format"))
