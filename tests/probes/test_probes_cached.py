"""Shared probes: cases that the tests of their callers do not cover."""

from typing import Any

import pytest
from pytest_twisted import ensureDeferred
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import Clock

from mailcheck.cluster.local import LocalMemory
from mailcheck.cluster.redis import Redis
from mailcheck.cluster.shared import SharedMemory
from mailcheck.core.memory.keys import Key
from mailcheck.operations.cached_values import CachedValues
from mailcheck.ports.cluster import Memory
from mailcheck.probes.cached_probes import PATIENCE, CachedProbes
from tests.probes.scripted_hosts import collect
from tests.servers.redis import RedisServer, connected_twice, until
from tests.table import rows


class Work:
    """Probes whose results the test returns; keys that begin with ``own`` are not shared."""

    def __init__(self, clock: IReactorTime | None = None, memory: Memory | None = None) -> None:
        self.clock: Any = clock or Clock()
        self.running: list[Deferred[str]] = []
        self.probes: CachedProbes[str] = CachedProbes(
            self.clock,
            CachedValues(memory or LocalMemory(self.clock), "work", str),
            self._run,
            freshness=60_000,
            at_once=3,
            is_kept=lambda found: found != "vague",
            is_for_all=lambda found: not found.startswith("own"),
            when_busy=lambda key: f"busy: {key}",
        )

    async def _run(self, key: str) -> str:
        result: Deferred[str] = Deferred()
        self.running.append(result)
        return await result


@rows(("vague", False), ("clear", True), ("own, clear", True))
def test_what_is_kept(result: str, is_kept: bool) -> None:
    """An undetermined result is returned to its callers and not cached; others are cached."""
    work = Work()
    waiting = collect(work.probes.get("a"))
    work.running[0].callback(result)
    assert waiting == [result]
    again = collect(work.probes.get("a"))
    assert again == ([result] if is_kept else [])
    work.clock.advance(60)
    assert collect(work.probes.get("a")) == []
    assert len(work.running) == 2


def test_too_many_at_once_are_told_so() -> None:
    """At the limit a probe is rejected instead of queued; running ones can still be joined."""
    work = Work()
    for key in "abc":
        work.probes.get(key)
    assert collect(work.probes.get("d")) == ["busy: d"]
    joined = collect(work.probes.get("a"))
    work.running[0].callback("A")
    assert joined == ["A"]


class ConnectionsRefused(SharedMemory):
    """Records the keys that another daemon had acquired."""

    def __init__(self, redis: Redis, clock: IReactorTime, version: str) -> None:
        super().__init__(redis, clock, version)
        self.refused: set[str] = set()

    def acquire(self, work: Key, milliseconds: int) -> Deferred[bool]:
        """Record the keys that cannot be acquired."""

        def note(is_claimed: bool) -> bool:
            if not is_claimed:
                self.refused.add(work.removeprefix("work::"))
            return is_claimed

        return super().acquire(work, milliseconds).addCallback(note)


@ensureDeferred
async def test_one_probe_over_all_daemons(redis_server: RedisServer) -> None:
    """While one daemon probes, others wait for its result; when it fails, another one begins."""
    from twisted.internet import reactor

    clock: Any = reactor
    async with connected_twice(redis_server) as (here, there):
        memory = ConnectionsRefused(there, clock, "1")
        one, other = Work(clock, SharedMemory(here, clock, "1")), Work(clock, memory)

        async def both_ask(key: str) -> list[Deferred[str]]:
            asked = [one.probes.get(key)]
            await until(lambda: len(one.running) > 0)
            asked.append(other.probes.get(key))
            await until(lambda: key in memory.refused)
            return asked

        for found in ("clear", "vague"):
            asked = await both_ask(found)
            one.running.pop().callback(found)
            assert [await answer for answer in asked] == [found, found]
            assert other.running == []
        assert await other.probes.get("clear") == "clear"
        for failure in ("own", ZeroDivisionError()):
            asked = await both_ask(str(failure))
            running = one.running.pop()
            if isinstance(failure, str):
                running.callback(failure)
                assert await asked[0] == failure
            else:
                running.errback(failure)
                with pytest.raises(ZeroDivisionError):
                    await asked[0]
            await until(lambda: len(other.running) > 0)
            other.running.pop().callback("clear")
            assert await asked[1] == "clear"


class Taken(LocalMemory):
    """Memory in which another daemon has acquired all keys and never finishes."""

    def acquire(self, work: Key, milliseconds: int) -> Any:
        """Return that the key is taken."""
        return super().acquire(work, milliseconds).addCallback(lambda _: False)


def test_another_daemon_is_not_waited_for_without_end() -> None:
    """A daemon that hangs delays the checks of others by no more than a probe would take."""
    clock = Clock()
    work = Work(clock, Taken(clock))
    answer = collect(work.probes.get("a"))
    clock.pump([0.1] * round(PATIENCE * 10 - 5))
    assert answer == []
    clock.pump([0.1] * 10)
    assert answer == ["busy: a"]
