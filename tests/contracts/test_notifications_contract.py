"""The contract of notifications between daemons."""

from collections.abc import AsyncIterator

import pytest
from pytest_twisted import async_yield_fixture, ensureDeferred
from twisted.internet.task import Clock

from mailcheck.assembly.cluster import share_work
from mailcheck.cluster.local import LocalCluster
from mailcheck.cluster.shared import RedisCluster
from mailcheck.ports.cluster import Notifications
from tests.servers.redis import RedisServer, connected, connected_twice, running_redis, until

LOCAL, SHARED = "in this process", "on Redis"


@async_yield_fixture(params=[LOCAL, SHARED])
async def notifications(
    request: pytest.FixtureRequest, redis_server: RedisServer
) -> AsyncIterator[Notifications[str]]:
    """Each implementation."""
    if request.param == LOCAL:
        yield LocalCluster(Clock()).notifications("inboxes")
        return
    async with connected(redis_server) as redis:
        from twisted.internet import reactor

        yield RedisCluster(redis, reactor).notifications("inboxes")


def test_all_listeners_are_called(notifications: Notifications[str]) -> None:
    """A listener is called at once for everything published after it subscribed."""
    heard: list[tuple[str, str]] = []
    notifications.publish("ann")
    notifications.listen(lambda subject: heard.append(("one", subject)))
    notifications.publish("ann")
    notifications.listen(lambda subject: heard.append(("two", subject)))
    notifications.publish("bob")
    assert heard == [("one", "ann"), ("one", "bob"), ("two", "bob")]


def test_publishing_without_listeners(notifications: Notifications[str]) -> None:
    """A notification without a listener is lost without harm."""
    notifications.publish("ann")


@ensureDeferred
async def test_other_daemons_are_notified(redis_server: RedisServer) -> None:
    """Each daemon gets each notification once, on its channel, including the one that sent it."""
    from twisted.internet import reactor

    async with (
        connected_twice(redis_server) as (here, there),
        connected(redis_server) as elsewhere,
    ):
        heard: dict[str, list[str]] = {"here": [], "there": [], "elsewhere": [], "tests": []}
        one = RedisCluster(here, reactor).notifications("inboxes")
        other = RedisCluster(there, reactor)
        two, tests = other.notifications("inboxes"), other.notifications("tests")
        three = RedisCluster(elsewhere, reactor).notifications("inboxes")
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
async def test_all_daemons_look_for_work() -> None:
    """All daemons look for work after a notification, and while notifications may be lost."""
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
