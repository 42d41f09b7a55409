"""A real Redis on loopback that can be killed, paused and started again.

    with running_redis() as redis:
        ...  # redis.url; redis.kill(), redis.start(), redis.hang(), redis.resume()

Tests that do not stop it share one server (`redis_server`), each with its own database:

    async with connected(redis_server) as redis:
        ...
    async with connected_twice(redis_server) as (here, there):  # two daemons
        ...
"""

import contextlib
import itertools
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from twisted.internet.task import deferLater

from mailcheck.assembly.cluster import redis_endpoint
from mailcheck.cluster.redis import Redis
from mailcheck.cluster.redis_address import parse_redis_address
from mailcheck.core.memory.instruments import RedisFigures
from tests.servers.daemon import HOST, POLL, free_ports
from tests.servers.programs import find_program

DATABASES = 100_000
DEADLINE = 60.0  # seconds


class RedisServer:
    """One server with its data in memory only, so that a kill loses all of it."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._program = find_program("redis-server", "valkey-server")
        self._folder = folder
        self._options = options
        self.port = free_ports(1)[0]
        self.socket = folder / "redis.sock"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its address, in the form of `[cluster] redis`."""
        return f"redis://{HOST}:{self.port}"

    @property
    def pid(self) -> int:
        """The id of its process."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start the server, and wait until it listens."""
        command = [self._program, "--port", str(self.port), "--bind", HOST]
        command += ["--save", "", "--appendonly", "no", "--databases", str(DATABASES)]
        command += ["--unixsocket", str(self.socket), "--dir", str(self._folder)]
        log = self._folder / "redis.log"
        log.unlink(missing_ok=True)
        self._process = subprocess.Popen([*command, "--logfile", str(log), *self._options])
        deadline = time.monotonic() + DEADLINE
        while not (log.exists() and b"eady to accept connections" in log.read_bytes()):
            ended = self._process.poll()
            assert ended is None, f"Redis has ended: {log.read_text() if log.exists() else ended}"
            assert time.monotonic() < deadline, "Redis does not start"
            time.sleep(POLL)

    def kill(self) -> None:
        """Kill the server, like a power failure."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def hang(self) -> None:
        """Pause the server, with all its connections."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Resume the server."""
        os.kill(self.pid, signal.SIGCONT)


@contextlib.contextmanager
def running_redis(*options: str) -> Iterator[RedisServer]:
    """Run a server as long as the context lasts."""
    with tempfile.TemporaryDirectory(prefix="mailcheck-redis-") as name:
        server = RedisServer(Path(name), *options)
        try:
            server.start()
            yield server
        finally:
            server.kill()


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """One server for all tests of a process; no test may stop it."""
    with running_redis() as server:
        yield server


_databases = itertools.count(1)


@contextlib.asynccontextmanager
async def connected(
    server: RedisServer, database: int = 0, note: Callable[[str, str], None] = lambda *_: None
) -> AsyncIterator[Redis]:
    """Connect to a new database, or to the database of another connection.

    :param note: called for each loss and return.
    """
    from twisted.internet import reactor

    address = parse_redis_address(f"{server.url}/{database or next(_databases)}")
    clock: Any = reactor
    redis = Redis(address, redis_endpoint(address, "", reactor), clock, note, RedisFigures())
    redis.startService()
    try:
        await until(lambda: redis.is_there)
        yield redis
    finally:
        await redis.stopService()


@contextlib.asynccontextmanager
async def connected_twice(server: RedisServer) -> AsyncIterator[tuple[Redis, Redis]]:
    """Connect to one database as two daemons do."""
    database = next(_databases)
    async with connected(server, database) as here, connected(server, database) as there:
        yield here, there


async def until(is_so: Callable[[], bool], seconds: float = DEADLINE) -> None:
    """Wait in the reactor until a condition is true."""
    from twisted.internet import reactor

    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, "the condition did not become true in time"
        await deferLater(cast(Any, reactor), POLL)
