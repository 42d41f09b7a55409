"""A real Redis on loopback that can be killed, held up and started again.

    with running_redis() as redis:
        ...  # redis.url; redis.kill(), redis.start(), redis.hang(), redis.go_on()

The test suites of one process share one server (`shared_redis`), each with a
database of its own.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.daemon import HOST, POLL, free_ports

INSTALL_COMMAND = "apt-get install redis-server"
DATABASES = 100_000
DEADLINE = 10.0  # seconds


def find_redis() -> str:
    """Give the path of the server; without it skip the test (in CI: fail it)."""
    for name in ("redis-server", "valkey-server"):
        path = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/bin"]))
        if path is not None:
            return path
    pytest.skip(f"Redis is not installed: {INSTALL_COMMAND}")


class RedisServer:
    """One server; what it holds is in memory alone, so that a kill loses all of it."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._program = find_redis()
        self._folder = folder
        self._options = options
        self.port = free_ports(1)[0]
        self.socket = folder / "redis.sock"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its address, as `[cluster] redis` takes it."""
        return f"redis://{HOST}:{self.port}"

    @property
    def pid(self) -> int:
        """Its process."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it, and wait until it listens."""
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
        """End it as a power failure does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def hang(self) -> None:
        """Keep it from answering, with all its connections."""
        os.kill(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it answer again."""
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
