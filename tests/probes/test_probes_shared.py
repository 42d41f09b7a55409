"""Sharing probes: what is not covered by those who use it."""

from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.logger import LogEvent

from mailcheck.probes.shared_probes import Bounds, SharedProbes
from tests.probes.scripted_hosts import collect


class Work:
    """Probes whose results the test gives."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.running: list[Deferred[str]] = []
        self.probes: SharedProbes[str, str] = SharedProbes(
            self.clock,
            Bounds(freshness=1_000, remembered=2, at_once=3),
            self._run,
            is_worth_keeping=lambda result: result != "vague",
            when_busy=lambda key: f"busy: {key}",
        )

    async def _run(self, key: str) -> str:
        result: Deferred[str] = Deferred()
        self.running.append(result)
        return await result


def test_a_crash_is_told_to_all_who_wait() -> None:
    """A fault of ours reaches everybody who asked, and the next one who asks starts anew."""
    work = Work()
    waiting = [collect(work.probes.get("a")) for _ in range(2)]
    work.running[0].errback(ZeroDivisionError())
    assert [results[0].type for results in waiting] == [ZeroDivisionError] * 2
    work.probes.get("a")
    assert len(work.running) == 2


def test_a_crash_that_nobody_waits_for_is_logged(logged_failures: list[LogEvent]) -> None:
    """A fault is never lost because its client has gone."""
    work = Work()
    waiting = work.probes.get("a")
    collect(waiting)
    waiting.cancel()
    work.running[0].errback(ZeroDivisionError())
    assert [event["log_failure"].type for event in logged_failures] == [ZeroDivisionError]


def test_memory_is_bounded() -> None:
    """The oldest result gives way to a new one, and none is kept for longer than allowed."""
    work = Work()
    for key in "abc":
        work.probes.remember(key, key.upper())
    assert [work.probes.remembered(key) for key in "abc"] == [None, "B", "C"]
    work.clock.advance(1)
    assert work.probes.remembered("c") is None


@pytest.mark.parametrize(("result", "kept"), [("vague", None), ("clear", "clear")])
def test_only_what_is_worth_it_is_kept(result: str, kept: Any) -> None:
    """A result that says nothing is given to those who wait and forgotten."""
    work = Work()
    waiting = collect(work.probes.get("a"))
    work.running[0].callback(result)
    assert waiting == [result]
    assert work.probes.remembered("a") == kept


def test_too_many_at_once_are_told_so() -> None:
    """Beyond the bound a probe is not queued; those under way can still be joined."""
    work = Work()
    for key in "abc":
        work.probes.get(key)
    assert collect(work.probes.get("d")) == ["busy: d"]
    joined = collect(work.probes.get("a"))
    work.running[0].callback("A")
    assert joined == ["A"]
