"""The contract of `OwnerSemaphore`, a semaphore for each owner."""

from collections.abc import AsyncIterator

import pytest
from pytest_twisted import async_yield_fixture, ensureDeferred
from twisted.internet.task import Clock

from mailcheck.cluster.local import LocalCluster
from mailcheck.cluster.shared import HELD, RedisCluster
from mailcheck.operations.semaphores import NoPermit
from mailcheck.ports.cluster import OwnerSemaphore
from tests.servers.redis import RedisServer, connected, connected_twice

LOCAL, SHARED = "in this process", "on Redis"


@async_yield_fixture(params=[LOCAL, SHARED])
async def places(
    request: pytest.FixtureRequest, redis_server: RedisServer
) -> AsyncIterator[OwnerSemaphore]:
    """Each implementation, with two permits for each owner."""
    if request.param == LOCAL:
        yield LocalCluster(Clock()).semaphore("waits", 2)
        return
    async with connected(redis_server) as redis:
        yield RedisCluster(redis, Clock()).semaphore("waits", 2)


@ensureDeferred
async def test_each_owner_has_a_maximum(places: OwnerSemaphore) -> None:
    """A further permit is refused to that owner only; a released one is free again."""
    async with places.held("ann"):
        async with places.held("ann"), places.held("bob"):
            with pytest.raises(NoPermit):
                async with places.held("ann"):
                    raise AssertionError("a third place")
        async with places.held("ann"):
            pass


@ensureDeferred
async def test_a_failure_releases_the_permit(places: OwnerSemaphore) -> None:
    """A failing holder releases its permit."""
    for _ in range(4):
        with pytest.raises(ZeroDivisionError):
            async with places.held("ann"):
                raise ZeroDivisionError


@ensureDeferred
async def test_permits_of_a_dead_daemon(redis_server: RedisServer) -> None:
    """Daemons share the permits; the permits of a dead daemon are free after a time."""
    async with connected_twice(redis_server) as (here, there):
        one = RedisCluster(here, Clock())
        mine, others = one.semaphore("waits", 1), RedisCluster(there, Clock()).semaphore("waits", 1)
        async with mine.held("ann"):
            with pytest.raises(NoPermit):
                async with others.held("ann"):
                    raise AssertionError("the place is held elsewhere")
            key = here.key("places", "waits", "ann")
            assert await here.run("TTL", key) > HELD - 5
            ((held, free_at),) = [await here.run("ZRANGE", key, 0, -1, "WITHSCORES")]
            now = int((await here.run_script("return redis.call('TIME')", [], []))[0])
            assert HELD - 5 <= float(free_at) - now <= HELD
            await here.run("ZADD", key, now - 1, held)  # as if it was not renewed
            await one.renew()
            with pytest.raises(NoPermit):
                async with others.held("ann"):
                    raise AssertionError("it was renewed")
            await here.run("ZADD", key, now - 1, held)
            async with others.held("ann"):
                pass
