"""What every `WakeUps` promises."""

from collections.abc import AsyncIterator

import pytest
from pytest_twisted import async_yield_fixture, ensureDeferred
from twisted.internet.task import Clock

from mailcheck.assembly.cluster import share_work
from mailcheck.cluster.local import LocalCluster
from mailcheck.cluster.shared import RedisCluster
from mailcheck.ports.cluster import WakeUps
from tests.servers.redis import RedisServer, connected, connected_twice, running_redis, until

LOCAL, SHARED = "in this process", "on Redis"


@async_yield_fixture(params=[LOCAL, SHARED])
async def wake_ups(
    request: pytest.FixtureRequest, redis_server: RedisServer
) -> AsyncIterator[WakeUps[str]]:
    """Give each implementation."""
    if request.param == LOCAL:
        yield LocalCluster(Clock()).wake_ups("inboxes")
        return
    async with connected(redis_server) as redis:
        from twisted.internet import reactor

        yield RedisCluster(redis, reactor).wake_ups("inboxes")


def test_everyone_hears(wake_ups: WakeUps[str]) -> None:
    """Whoever listens here hears at once of all that is published from then on."""
    heard: list[tuple[str, str]] = []
    wake_ups.publish("ann")
    wake_ups.listen(lambda subject: heard.append(("one", subject)))
    wake_ups.publish("ann")
    wake_ups.listen(lambda subject: heard.append(("two", subject)))
    wake_ups.publish("bob")
    assert heard == [("one", "ann"), ("one", "bob"), ("two", "bob")]


def test_nobody_listens(wake_ups: WakeUps[str]) -> None:
    """A hint that nobody listens to is lost without harm."""
    wake_ups.publish("ann")


@ensureDeferred
async def test_other_daemons_hear(redis_server: RedisServer) -> None:
    """Each other daemon hears each hint once, on its channel; the one that tells it once, too."""
    from twisted.internet import reactor

    async with (
        connected_twice(redis_server) as (here, there),
        connected(redis_server) as elsewhere,
    ):
        heard: dict[str, list[str]] = {"here": [], "there": [], "elsewhere": [], "tests": []}
        one = RedisCluster(here, reactor).wake_ups("inboxes")
        other = RedisCluster(there, reactor)
        two, tests = other.wake_ups("inboxes"), other.wake_ups("tests")
        three = RedisCluster(elsewhere, reactor).wake_ups("inboxes")
        one.listen(heard["here"].append)
        two.listen(heard["there"].append)
        three.listen(heard["elsewhere"].append)
        tests.listen(heard["tests"].append)
        for subject in ("ann", "bob", "ann"):
            one.publish(subject)
        await until(lambda: len(heard["there"]) >= 2)
        two.publish("end")
        await until(lambda: "end" in heard["here"])
        assert heard == {
            "here": ["ann", "bob", "ann", "end"],
            "there": ["ann", "bob", "end"],
            "elsewhere": [],
            "tests": [],
        }


@ensureDeferred
async def test_work_is_looked_for_everywhere() -> None:
    """All daemons look when one says that work waits, and while such words may be lost."""
    from twisted.internet import reactor

    with running_redis() as server:
        async with connected_twice(server) as (here, there):
            looks: list[str] = []
            say = share_work(RedisCluster(here, reactor), "due", lambda: looks.append("here"))
            share_work(RedisCluster(there, reactor), "due", lambda: looks.append("there"))
            share_work(RedisCluster(there, reactor), "other", lambda: looks.append("other"))
            say()
            await until(lambda: len(looks) == 2)
            assert set(looks) == {"here", "there"}
            server.kill()
            await until(lambda: set(looks[2:]) == {"here", "there", "other"})
