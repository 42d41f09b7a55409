"""A real daemon: a separate process on free loopback ports, with a separate folder.

    with running_daemon(tmp_path, limits_waits_per_key=500) as daemon:
        ...  # daemon.smtp_port, daemon.get("/inbox"), daemon.address("signup")

It is started by ``twistd``, as users do, and stopped afterwards. Its output is in its folder, one
file for each start.
"""

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from http.client import HTTPConnection, HTTPException
from itertools import cycle
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.spec.judge import judge_response

HOST = "127.0.0.1"
API = "/api/v1"
START_DEADLINE = 90.0  # seconds
STOP_DEADLINE = 60.0  # seconds
ANSWER_DEADLINE = 70.0  # seconds, longer than the longest wait
POLL = 0.01  # seconds
NOBODY = f"{HOST}:9"
"""A resolver that refuses at once, so that tests do not depend on the machine's resolvers."""

READY = "mailcheck is ready."
PREFIX = "MAILCHECK_"
UNMETERED = 100_000_000

PORTS = range(10_000, 32_000)
"""Below the ports for outgoing connections: another client must not get the port of a daemon
between two starts."""

PROCESSES = 16
"""Number of shares into which the ports are divided, by the ids of processes."""

STOPPED_WELL = (0, -signal.SIGTERM, -signal.SIGINT)
"""Exit statuses of a clean stop: twistd stops, and then ends by the signal that it received."""


class DaemonFailed(AssertionError):
    """The daemon ended or did not become ready; the message contains its output."""


@dataclass(slots=True)
class Answer:
    """A complete HTTP response; header names in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


@dataclass(slots=True)
class Pending:
    """A request in progress."""

    method: str
    path: str
    connection: HTTPConnection

    def answer(self) -> Answer:
        """Wait for the answer and check it against the contract."""
        answer = self.unchecked_answer()
        judge_response(self.method, self.path, answer)
        return answer

    def unchecked_answer(self) -> Answer:
        """Return the answer without checking it, for daemons of earlier versions."""
        with contextlib.closing(self.connection):
            response = self.connection.getresponse()
            headers = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, headers, response.read())


class Daemon:
    """One daemon, which can be started again after it was stopped or killed.

    Options are named like their environment variables, without the prefix and in lower case:
    ``storage_min_free=0``. ``options`` may be changed between starts.
    """

    def __init__(
        self,
        folder: Path,
        twistd: str | None = None,
        environment: Mapping[str, str] | None = None,
        command: Sequence[str] = (),
        **options: object,
    ) -> None:
        """Prepare a daemon; ``command`` starts it, by default twistd without options."""
        self.folder = folder
        self.smtp_port, self.submission_port, self.http_port = free_ports(3)
        self.starts = 0
        self.twistd = twistd or str(Path(sys.executable).with_name("twistd"))
        self._command = command or [self.twistd, "--nodaemon", "--pidfile=", "mailcheck"]
        self._process: subprocess.Popen[bytes] | None = None
        self._key = ""
        self._inherited = os.environ if environment is None else environment
        self.options = options

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the daemon: its options, without those of the tests.

        The daemon may write compiled modules. Compiling all of them takes two seconds of CPU time.
        """
        settings = {
            "dns_resolvers": [NOBODY],
            "accounts_bootstrap": True,
            "accounts_registration": "open",
            "smtp_listen": f"{HOST}:{self.smtp_port}",
            "smtp_submission_listen": f"{HOST}:{self.submission_port}",
            "web_listen": f"{HOST}:{self.http_port}",
            "ops_listen": "",
            "storage_min_free": 0,
            "limits_requests_per_minute": UNMETERED,
            "limits_requests_per_day": UNMETERED,
            **self.options,
        }
        inherited = {
            name: value
            for name, value in self._inherited.items()
            if not name.startswith(PREFIX) and name != "PYTHONDONTWRITEBYTECODE"
        }
        options = {PREFIX + name.upper(): _in_toml(value) for name, value in settings.items()}
        return {**inherited, **options}

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The process of the last start."""
        assert self._process is not None, "the daemon was not started"
        return self._process

    @property
    def key(self) -> str:
        """The API key of the first account."""
        if not self._key:
            self._key = (self.folder / "var" / "api-key").read_text().strip()
        return self._key

    def start(self) -> float:
        """Start the daemon and wait until it is ready; return the seconds.

        :raises DaemonFailed: it did not become ready.
        """
        began = time.monotonic()
        self.launch()
        while not (self.is_ready() and READY in self.output()):
            if self.process.poll() is not None or time.monotonic() > began + START_DEADLINE:
                self.kill()
                raise DaemonFailed(f"the daemon does not start:\n{self.output()}")
            time.sleep(POLL)
        return time.monotonic() - began

    def launch(self, terminal: int | None = None) -> None:
        """Start the daemon without waiting; its output goes to its log, or to a descriptor."""
        self.starts += 1
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command,
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log if terminal is None else terminal,
                stderr=log,
                start_new_session=True,
            )

    def stop(self) -> int:
        """Stop the daemon as an operator does (SIGTERM); return its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.when_ended()

    def when_ended(self) -> int:
        """Wait for the end of the daemon; return its exit status."""
        return self.process.wait(STOP_DEADLINE)

    def kill(self) -> None:
        """Kill all processes of the daemon at once, like a power failure."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def kill_first(self) -> None:
        """Kill the first process, without its children."""
        self.process.kill()
        self.process.wait()

    def pids(self) -> list[int]:
        """Return the ids of its processes, the first one first (Linux)."""
        return [self.process.pid, *_children(self.process.pid)]

    def child(self, name: str) -> int:
        """Return the id of a child process: ``writer``, ``content``, ``analysis``."""
        for pid in self.pids()[1:]:
            with contextlib.suppress(OSError):
                if Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[-2] == name.encode():
                    return pid
        raise DaemonFailed(f"it has no {name} process:\n{self.output()}")

    def wait_until(self, is_so: Callable[[], bool]) -> None:
        """Wait until a condition is true.

        :raises DaemonFailed: it did not become true in time.
        """
        deadline = time.monotonic() + START_DEADLINE
        while not is_so():
            if time.monotonic() > deadline:
                raise DaemonFailed(f"the condition did not become true:\n{self.output()}")
            time.sleep(POLL)

    def output(self) -> str:
        """Return the output since the last start."""
        return self._log.read_text(errors="replace")

    @property
    def client_environment(self) -> dict[str, str]:
        """The environment of a program that uses the inbox, without variables of pytest."""
        inherited = {name: one for name, one in os.environ.items() if not name.startswith("PYTEST")}
        return {
            **inherited,
            "MAILCHECK_URL": f"http://{HOST}:{self.http_port}",
            "MAILCHECK_API_KEY": self.key,
            "SMTP_PORT": str(self.smtp_port),
        }

    def address(self, tag: str = "") -> str:
        """Return the inbox address with a tag."""
        address: str = self.get("/inbox/address", tag=tag).json["address"]
        return address

    def cursor(self) -> str:
        """Return the inbox's cursor."""
        cursor: str = self.get("/inbox/address").json["cursor"]
        return cursor

    def get(self, path: str, **query: object) -> Answer:
        """Send a GET to the API with the first account's key."""
        return self.request("GET", f"{path}?{urlencode(query)}" if query else path)

    def request(self, method: str, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        """Send a request below the API's base path and return its answer."""
        return self.ask(method, path, headers).answer()

    def post(self, path: str, body: bytes) -> Answer:
        """Send a POST with a body below the API's base path and return its answer."""
        return self.ask("POST", path, body=body).answer()

    def ask(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> "Pending":
        """Send a request below the API's base path without waiting for its answer."""
        connection = HTTPConnection(HOST, self.http_port, timeout=ANSWER_DEADLINE)
        given = {"X-API-Key": self.key, **(headers or {})}
        connection.request(method, API + path, body=body, headers=given)
        return Pending(method, API + path, connection)

    def total(self) -> int:
        """Return the number of messages in the first account's inbox."""
        total: int = self.get("/inbox").json["total"]
        return total

    @property
    def _log(self) -> Path:
        return self.folder / f"daemon-{self.starts}.log"

    def open(self, path: str) -> Answer:
        """Request a page outside the API."""
        connection = HTTPConnection(HOST, self.http_port, timeout=ANSWER_DEADLINE)
        connection.request("GET", path)
        return Pending("GET", path, connection).answer()

    def is_ready(self) -> bool:
        """Return whether the daemon reports that it is ready."""
        connection = HTTPConnection(HOST, self.http_port, timeout=1.0)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()


@contextlib.contextmanager
def running_daemon(folder: Path, **options: Any) -> Iterator[Daemon]:
    """Run a daemon; it must neither end by itself nor log a failure."""
    daemon = Daemon(folder, **options)
    try:
        daemon.start()
        yield daemon
        ended = daemon.process.poll()
        if ended not in (None, -signal.SIGKILL, *STOPPED_WELL):
            raise DaemonFailed(f"the daemon ended with {ended}:\n{daemon.output()}")
        if "Traceback" in daemon.output():
            raise DaemonFailed(f"the daemon logged a failure:\n{daemon.output()}")
    finally:
        daemon.kill()


def free_ports(count: int) -> Sequence[int]:
    """Return free ports that this process has not got before."""
    found: list[int] = []
    while len(found) < count:
        port = next(_own_ports())
        with contextlib.suppress(OSError), socket.socket() as one:
            one.bind((HOST, port))
            found.append(port)
    return found


@cache
def _own_ports() -> Iterator[int]:
    """Return the ports of this process in a random order, again and again.

    Nothing holds a port until the daemon listens. So processes that run tests side by side take
    different ones. The order does not depend on the seed, which they may share.
    """
    own = PORTS[os.getpid() % PROCESSES :: PROCESSES]
    return cycle(random.SystemRandom().sample(own, len(own)))


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _in_toml(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
