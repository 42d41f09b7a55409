"""Several daemons on one PostgreSQL and one Redis, driven by clients that know nothing of that."""

import contextlib
import hashlib
import json
import os
import shutil
import signal
import smtplib
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.servers.daemon import HOST, Daemon, DaemonFailed, free_ports, running_daemon
from tests.servers.postgresql import TEMPLATE, PostgresqlServer
from tests.servers.redis import RedisServer, running_redis

ROOT = Path(__file__).parents[2]
SECONDS = 20.0

pytestmark = pytest.mark.end_to_end


def options_of(database: str, redis: RedisServer | None, **more: Any) -> dict[str, Any]:
    """Give the options of one of several daemons."""
    shared = {"storage_url": database, "ops_listen": [], "spamassassin_spamd": "off", **more}
    return shared if redis is None else {**shared, "cluster_redis": redis.url}


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    """A server that a test may kill, but must start again."""
    with running_redis() as server:
        yield server


@pytest.fixture(scope="module")
def daemons(
    tmp_path_factory: pytest.TempPathFactory,
    postgresql_server: PostgresqlServer,
    redis: RedisServer,
) -> Iterator[list[Daemon]]:
    """Two daemons; the second one is asked with the key that the first one has made."""
    folder = tmp_path_factory.mktemp("daemons")
    options = options_of(postgresql_server.make_database(f"two_{os.getpid()}", TEMPLATE), redis)
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(running_daemon(folder / "one", **options))
        options |= {"accounts_bootstrap_key": first.key}
        yield [first, stack.enter_context(running_daemon(folder / "two", **options))]


def send(port: int, recipient: str, subject: str) -> None:
    """Send a mail."""
    with smtplib.SMTP(HOST, port, timeout=15) as client:
        client.sendmail("a@example.com", [recipient], f"Subject: {subject}\r\n\r\nhi\r\n")


def test_a_wait_is_woken_by_mail_to_another_daemon(
    daemons: list[Daemon], redis: RedisServer
) -> None:
    """With Redis at once; while it hangs, or is gone, within two seconds."""
    here, there = daemons
    recipient = here.address("x")

    def seconds_to_hear(subject: str) -> float:
        pending = here.ask("GET", f"/inbox/wait?after={here.cursor()}&timeout=10")
        time.sleep(0.2)  # parked by then: else it would find the mail at its first look
        send(there.smtp_port, recipient, subject)
        began = time.monotonic()
        assert pending.answer().json["subject"] == subject
        return time.monotonic() - began

    assert seconds_to_hear("there") < 0.5
    redis.hang()
    assert seconds_to_hear("hangs") < 2.0
    redis.go_on()
    redis.kill()
    assert seconds_to_hear("gone") < 2.0
    redis.start()
    deadline = time.monotonic() + SECONDS
    while not all("is back after" in one.output() for one in daemons):
        assert time.monotonic() < deadline, here.output()
        time.sleep(0.05)
    assert seconds_to_hear("back") < 0.5
    lines = [line for line in here.output().splitlines() if "Redis at" in line]
    assert sum("is away" in line for line in lines) <= 2, lines


def test_limits_count_over_all_daemons(daemons: list[Daemon]) -> None:
    """What is left of a key's limits goes down whichever daemon is asked."""
    answers = [one.get("/inbox") for one in (*daemons, *daemons)]
    left = [int(one.headers["x-ratelimit-daily-remaining"]) for one in answers]
    assert left == list(range(left[0], left[0] - 4, -1))


def test_a_second_daemon_without_redis(tmp_path: Path, postgresql_database: str) -> None:
    """It refuses to start, and says what to do."""
    options = options_of(postgresql_database, None)
    with (
        running_daemon(tmp_path / "one", **options),
        pytest.raises(DaemonFailed, match=r"without \[cluster\] redis one serves it"),
    ):
        Daemon(tmp_path / "two", **options).start()


def test_processes(tmp_path: Path, postgresql_database: str, redis: RedisServer) -> None:
    """Two processes take turns on the same ports; one that is killed is replaced meanwhile."""
    options = options_of(postgresql_database, redis, daemon_processes=2)
    metrics = free_ports(1)[0]
    options["ops_listen"] = f"{HOST}:{metrics}"
    with running_daemon(tmp_path, **options) as daemon:
        children = daemon.pids()[1:]
        assert len(children) == 2
        os.kill(children[1], signal.SIGKILL)
        for number in range(20):
            send(daemon.smtp_port, daemon.address("x"), str(number))
        assert daemon.total() == 20
        deadline = time.monotonic() + SECONDS
        for port in (metrics, metrics + 1):
            while True:
                with contextlib.suppress(OSError):
                    url = f"http://{HOST}:{port}/metrics"
                    assert b"mailcheck_" in urllib.request.urlopen(url, timeout=5).read()
                    break
                assert time.monotonic() < deadline, daemon.output()
                time.sleep(0.05)
        assert "has ended (SIGKILL)" in daemon.output()
        assert daemon.stop() in (0, -signal.SIGTERM)


class Cluster:
    """``make cluster``, and a client that sends to one daemon and waits on another."""

    def __init__(self, folder: Path) -> None:
        (folder / "etc").symlink_to(ROOT / "etc")
        http, smtp, submission = free_ports(3)
        own = {
            "HOST": HOST, "HTTP_PORT": str(http), "SMTP_PORT": str(smtp),
            "SUBMISSION_PORT": str(submission), "MAILCHECK_SPAMASSASSIN_SPAMD": "off",
            "MAILCHECK_LIMITS_REQUESTS_PER_MINUTE": "1000000",
            "MAILCHECK_LIMITS_REQUESTS_PER_DAY": "1000000",
        }  # fmt: skip
        self._folder = folder
        command = [sys.executable, str(ROOT / "scripts" / "run-cluster")]
        with (folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                command, cwd=folder, env={**os.environ, **own}, stdout=log, stderr=log
            )
        deadline = time.monotonic() + 60
        while not (folder / "var" / "cluster.json").exists():
            assert self.process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < deadline, (folder / "log").read_text()
            time.sleep(0.05)
        self._key = (folder / "var" / "cluster" / "state" / "api-key").read_text().strip()
        self.sent: dict[str, float] = {}
        self.heard: dict[str, float] = {}
        self._is_over = False

    @property
    def state(self) -> Any:
        """What runs where."""
        return json.loads((self._folder / "var" / "cluster.json").read_text())

    def get(self, port: int, path: str) -> Any:
        """Ask the API; nothing where there is no answer."""
        url = f"http://{HOST}:{port}/api/v1{path}"
        request = urllib.request.Request(url, headers={"X-API-Key": self._key})
        try:
            with urllib.request.urlopen(request, timeout=15) as answer:
                return json.load(answer)
        except urllib.error.HTTPError:
            return None  # nothing came in time, or the daemon can't tell: the cursor stays
        except (OSError, ValueError):
            time.sleep(0.1)
            return None

    def follow(self, cursor: str) -> None:
        """Wait for all mail, now on this daemon and now on that one, by the cursor alone."""
        turn = 0
        while not self._is_over or set(self.sent) - set(self.heard):
            daemons = self.state["daemons"]
            port = daemons[turn % len(daemons)]["http"]
            message = self.get(port, f"/inbox/wait?after={cursor}&timeout=3")
            if message is None:
                turn += 1
                continue
            cursor = message["cursor"]
            self.heard.setdefault(message["subject"], time.monotonic())

    def run(self, kills: list[str], seconds_each: float) -> None:
        """Send and follow all the time, and kill one part after the other."""
        address = self.get(self.state["http"], "/inbox/address")
        follower = threading.Thread(target=self.follow, args=[address["cursor"]], daemon=True)
        follower.start()
        number = 0
        for kill in [*kills, None]:
            until = time.monotonic() + seconds_each
            while time.monotonic() < until:
                state = self.state
                ports = [state["smtp"], *(one["smtp"] for one in state["daemons"])]
                with contextlib.suppress(OSError, smtplib.SMTPException):
                    send(ports[number % len(ports)], address["address"], str(number))
                    self.sent[str(number)] = time.monotonic()
                number += 1
                time.sleep(0.02)
            if kill is not None:
                os.kill(self.pid_of(kill), signal.SIGKILL)
        self._is_over = True
        follower.join(30)

    def pid_of(self, part: str) -> int:
        """Give the process of a part."""
        found = self.state
        for name in part.split("."):
            found = found[int(name) if name.isdigit() else name]
        pid: int = found["pid"]
        return pid


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Everything on one machine, ended by Ctrl-C."""
    running = Cluster(tmp_path)
    try:
        yield running
    finally:
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(60) == 0, (tmp_path / "log").read_text()
        # As root PostgreSQL keeps its data in its own user's home, which no test folder is.
        digest = hashlib.sha256(str((tmp_path / "var" / "cluster").resolve()).encode()).hexdigest()
        name = f"mailcheck-cluster-{digest[:8]}"
        shutil.rmtree(Path("/var/lib/postgresql") / name, ignore_errors=True)


@pytest.mark.parametrize(
    ("kills", "seconds_each"),
    [
        (["redis", "daemons.1"], 1.5),
        pytest.param(
            ["daemons.0", "postgresql", "daemons.2", "haproxy", "redis"] * 4,
            6.0,
            marks=pytest.mark.soak,
        ),
    ],
)
def test_any_part_is_killed(cluster: Cluster, kills: list[str], seconds_each: float) -> None:
    """Nothing that was acknowledged is lost, whichever part of ``make cluster`` is killed."""
    cluster.run(kills, seconds_each)
    assert len(cluster.sent) > 10
    assert set(cluster.sent) <= set(cluster.heard)
    delays = sorted(cluster.heard[one] - at for one, at in cluster.sent.items())
    assert delays[len(delays) // 2] < 0.5
