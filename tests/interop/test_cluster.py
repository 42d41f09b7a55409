"""Several daemons on one PostgreSQL and one Redis, used by clients as if they were one."""

import contextlib
import hashlib
import http.client
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
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.servers.clocks import LIBRARIES, accelerated, faketime
from tests.servers.cuttable_link import CuttableLink, running_cuttable_link
from tests.servers.daemon import (
    HOST,
    Daemon,
    DaemonFailed,
    Pending,
    free_ports,
    running_daemon,
)
from tests.servers.postgresql import TEMPLATE, PostgresqlServer
from tests.servers.redis import RedisServer, running_redis

ROOT = Path(__file__).parents[2]
SECONDS = 20.0
PATIENCE = 60.0  # seconds for an answer, on a busy machine

pytestmark = pytest.mark.end_to_end


def options_of(database: str, redis: RedisServer | None, **more: Any) -> dict[str, Any]:
    """Return the options of one of several daemons."""
    shared = {"storage_url": database, "ops_listen": [], "spamassassin_spamd": "off", **more}
    return shared if redis is None else {**shared, "cluster_redis": redis.url}


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    """A server that a test may kill, but must restart."""
    with running_redis() as server:
        yield server


@pytest.fixture(scope="module")
def wire(redis: RedisServer) -> Iterator[CuttableLink]:
    """The second daemon's connection to Redis."""
    with running_cuttable_link(redis.port) as laid:
        yield laid


@pytest.fixture(scope="module")
def daemons(
    tmp_path_factory: pytest.TempPathFactory,
    postgresql_server: PostgresqlServer,
    redis: RedisServer,
    wire: CuttableLink,
) -> Iterator[list[Daemon]]:
    """Two daemons; the second one has the key of the first one, and its clock is 2 s ahead."""
    folder = tmp_path_factory.mktemp("daemons")
    clock = folder / "clock"
    clock.write_text("+2" if LIBRARIES else "+0")
    options = options_of(postgresql_server.make_database(f"two_{os.getpid()}", TEMPLATE), redis)
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(running_daemon(folder / "one", **options))
        options |= {"accounts_bootstrap_key": first.key}
        options |= {"cluster_redis": f"redis://{HOST}:{wire.port}"}
        options |= {"environment": faketime(clock)} if LIBRARIES else {}
        yield [first, stack.enter_context(running_daemon(folder / "two", **options))]


def send(port: int, recipient: str, subject: str) -> None:
    """Send a mail."""
    with smtplib.SMTP(HOST, port, timeout=PATIENCE) as client:
        client.sendmail("a@example.com", [recipient], f"Subject: {subject}\r\n\r\nhi\r\n")


def parked(daemon: Daemon, query: str) -> Pending:
    """Begin to wait for mail, and return when the request is parked."""
    return under_way(daemon, f"/inbox/wait?timeout=30{query}")


def under_way(daemon: Daemon, path: str) -> Pending:
    """Send a request, and return when the daemon has begun it, as a later response shows."""
    pending = daemon.ask("GET", path)
    time.sleep(0.2)
    daemon.total()
    return pending


def assert_heard(here: Daemon, there: Daemon, subject: str) -> None:
    """Check that a wait on one daemon ends with a mail that is sent to another."""
    pending = parked(here, f"&after={here.cursor()}")
    send(there.smtp_port, here.address("x"), subject)
    assert pending.answer().json["subject"] == subject


def told_of_redis(daemon: Daemon) -> list[str]:
    """Return a daemon's log entries about Redis."""
    lines = (line.partition(" Redis: ")[2] for line in daemon.output().splitlines())
    return ["away" if line.startswith("unavailable: ") else line for line in lines if line]


def until_told(daemon: Daemon, wanted: str) -> None:
    """Wait for the last log entry of a daemon about Redis; each change is logged once."""
    daemon.wait_until(lambda: told_of_redis(daemon)[-1:] == [wanted])
    told = told_of_redis(daemon)
    assert told == [("away", "well again")[number % 2] for number in range(len(told))]


def test_a_wait_is_woken_by_mail_to_another_daemon(
    daemons: list[Daemon], redis: RedisServer
) -> None:
    """Redis wakes the wait; while Redis hangs or is down, the wait polls the store."""
    here, there = daemons
    assert_heard(here, there, "there")
    for fail, restore in ((redis.hang, redis.resume), (redis.kill, redis.start)):
        fail()
        assert_heard(here, there, fail.__name__)
        for one in daemons:
            until_told(one, "away")
        restore()
        for one in daemons:
            until_told(one, "well again")
    assert_heard(here, there, "back")


@pytest.mark.long
def test_a_daemon_that_is_cut_off_from_redis(daemons: list[Daemon], wire: CuttableLink) -> None:
    """Waits end without Redis too, because they poll the store."""
    here, there = daemons
    wire.cut()
    assert_heard(here, there, "untold")
    assert_heard(there, here, "unheard")
    until_told(there, "away")
    wire.restore()
    until_told(there, "well again")
    assert_heard(here, there, "mended")


def test_a_call_is_cancelled_through_another_daemon(daemons: list[Daemon]) -> None:
    """An MCP client's cancellation works at any daemon that the balancer selects."""
    here, there = daemons
    headers = {"Authorization": f"Bearer {here.key}", "Content-Type": "application/json"}
    headers |= {"Accept": "application/json, text/event-stream"}

    def post(daemon: Daemon, message: dict[str, Any]) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection(HOST, daemon.http_port, timeout=PATIENCE)
        with contextlib.closing(connection):
            text = json.dumps({"jsonrpc": "2.0", **message})
            connection.request("POST", "/mcp", text, headers)
            answer = connection.getresponse()
            answer.read()
            return answer

    info = {"name": "x", "version": "1"}
    version = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
    begun = post(here, {"id": 1, "method": "initialize", "params": version})
    headers |= {"Mcp-Session-Id": begun.headers["Mcp-Session-Id"]}
    headers |= {"MCP-Protocol-Version": "2025-06-18"}
    call = {"name": "wait_for_message", "arguments": {"timeout": 50, "tag": "never"}}
    ended: list[float] = []

    def wait() -> None:
        post(here, {"id": 2, "method": "tools/call", "params": call})
        ended.append(time.monotonic())

    waiting = threading.Thread(target=wait)
    waiting.start()
    time.sleep(0.3)
    began = time.monotonic()
    cancel = {"method": "notifications/cancelled", "params": {"requestId": 2}}
    assert post(there, cancel).status == 202
    waiting.join(PATIENCE)
    assert ended[0] - began < SECONDS


def test_a_task_is_followed_at_another_daemon(daemons: list[Daemon]) -> None:
    """A long wait that began at one daemon is polled at another, and ended by mail to the first."""
    here, there = daemons
    assert_heard(here, there, "before the task")
    extensions: Any = {"io.modelcontextprotocol/tasks": {}}
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"extensions": extensions},
    }

    def post(daemon: Daemon, method: str, name: str, params: dict[str, Any]) -> Any:
        headers = {
            "Authorization": f"Bearer {here.key}",
            "Content-Type": "application/json",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": method,
            "Mcp-Name": name,
        }
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
        connection = http.client.HTTPConnection(HOST, daemon.http_port, timeout=PATIENCE)
        with contextlib.closing(connection):
            connection.request("POST", "/mcp", json.dumps(body), headers)
            found = json.load(connection.getresponse())
            assert "result" in found, found
            return found["result"]

    wait = {"name": "wait_for_message", "arguments": {"timeout": 300, "subject": "for the task"}}
    task_id = post(here, "tools/call", "wait_for_message", wait)["taskId"]
    poll = {"taskId": task_id}
    assert post(there, "tasks/get", task_id, poll)["status"] == "working"
    send(here.smtp_port, here.address("x"), "for the task")
    ended = post(there, "tasks/get", task_id, poll)
    assert ended["status"] == "completed"
    assert ended["result"]["structuredContent"]["message"]["subject"] == "for the task"


def test_a_second_daemon_without_redis(tmp_path: Path, postgresql_database: str) -> None:
    """The second daemon refuses to start, with advice."""
    options = options_of(postgresql_database, None)
    with (
        running_daemon(tmp_path / "one", **options),
        pytest.raises(DaemonFailed, match=r"without \[cluster\] redis only one daemon can use it"),
    ):
        Daemon(tmp_path / "two", environment=accelerated(), **options).start()


def test_processes(tmp_path: Path, postgresql_database: str, redis: RedisServer) -> None:
    """Two processes share the same ports, a killed one is replaced, and a reload asks both."""
    options = options_of(postgresql_database, redis, daemon_processes=2)
    metrics = free_ports(1)[0]
    options["ops_listen"] = f"{HOST}:{metrics}"
    with running_daemon(tmp_path, **options) as daemon:
        daemon.wait_until(lambda: len(daemon.pids()) == 3)  # the second starts after the first
        children = daemon.pids()[1:]
        os.kill(children[1], signal.SIGKILL)
        for number in range(20):
            send(daemon.smtp_port, daemon.address("x"), str(number))
        assert daemon.total() == 20
        deadline = time.monotonic() + SECONDS
        for port in (metrics, metrics + 1):
            while True:
                with contextlib.suppress(OSError):
                    url = f"http://{HOST}:{port}/metrics"
                    assert b"mailcheck_" in urllib.request.urlopen(url, timeout=PATIENCE).read()
                    break
                assert time.monotonic() < deadline, daemon.output()
                time.sleep(0.05)
        assert "has ended (SIGKILL)" in daemon.output()
        done = subprocess.run(
            [sys.executable, "-c", "from mailcheck.cli.main import main; main()", "reload"],
            cwd=daemon.folder,
            env={**os.environ, **daemon.environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout == "reloaded: no option has changed\n", done.stderr
        assert daemon.stop() in (0, -signal.SIGTERM)


class Cluster:
    """``make cluster``, and a client that sends to one daemon and waits on another."""

    def __init__(self, folder: Path) -> None:
        (folder / "etc").symlink_to(ROOT / "etc")
        http, smtp, submission, imap, pop3 = free_ports(5)
        own = {
            "HOST": HOST, "HTTP_PORT": str(http), "SMTP_PORT": str(smtp),
            "SUBMISSION_PORT": str(submission), "IMAP_PORT": str(imap), "POP3_PORT": str(pop3),
            "MAILCHECK_SPAMASSASSIN_SPAMD": "off",
            "MAILCHECK_LIMITS_REQUESTS_PER_MINUTE": "1000000",
            "MAILCHECK_LIMITS_REQUESTS_PER_DAY": "1000000",
        }  # fmt: skip
        self._folder = folder
        command = [sys.executable, str(ROOT / "scripts" / "run-cluster")]
        with (folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                command, cwd=folder, env={**os.environ, **own}, stdout=log, stderr=log
            )
        deadline = time.monotonic() + PATIENCE
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
        """The state file: processes and their ports."""
        return json.loads((self._folder / "var" / "cluster.json").read_text())

    def get(self, port: int, path: str) -> Any:
        """Send a request to the API, and return ``None`` if there is no response."""
        url = f"http://{HOST}:{port}/api/v1{path}"
        request = urllib.request.Request(url, headers={"X-API-Key": self._key})
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return json.load(answer)
        except urllib.error.HTTPError:
            return None  # timed out, or the daemon was killed: the cursor stays
        except (OSError, ValueError):
            time.sleep(0.1)
            return None

    def follow(self, cursor: str) -> None:
        """Wait for all mail, alternating between daemons, with the cursor only."""
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
        """Send and wait all the time, and kill one part after another."""
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
        follower.join(PATIENCE)

    def pid_of(self, part: str) -> int:
        """Return the process id of a part."""
        found = self.state
        for name in part.split("."):
            found = found[int(name) if name.isdigit() else name]
        pid: int = found["pid"]
        return pid


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster on one machine, ended by Ctrl-C."""
    running = Cluster(tmp_path)
    try:
        yield running
    finally:
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(60) == 0, (tmp_path / "log").read_text()
        # As root, PostgreSQL keeps its data in the home of its own user, outside the test folder.
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
    """No acknowledged mail is lost, whichever part of ``make cluster`` is killed."""
    cluster.run(kills, seconds_each)
    assert len(cluster.sent) > 10
    assert set(cluster.sent) <= set(cluster.heard)


def test_events_go_over_daemons(daemons: list[Daemon]) -> None:
    """A stream has the mail of other daemons, and can be resumed at one without a gap."""
    here, there = daemons
    cursor = here.cursor()
    heard: list[str] = []
    for daemon, other in ((here, there), (there, here)):
        connection = http.client.HTTPConnection(HOST, daemon.http_port, timeout=SECONDS)
        headers = {"X-API-Key": here.key, "Last-Event-ID": cursor}
        connection.request("GET", "/api/v1/inbox/events?tag=streamed", headers=headers)
        response = connection.getresponse()
        for one in (daemon, other):
            send(one.smtp_port, here.address("streamed"), f"{len(heard)}")
            while not (line := response.readline().decode()).startswith("data: "):
                cursor = line[4:].strip() if line.startswith("id: ") else cursor
            heard.append(json.loads(line[6:])["subject"])
        connection.close()
        send(other.smtp_port, here.address("streamed"), "between")
        heard += ["-"]
    assert heard == ["0", "1", "-", "between", "3", "-"]


class SignedIn:
    """A person who is signed in at all daemons, whose pages share the session."""

    def __init__(self, daemon: Daemon) -> None:
        self._cookies: dict[str, str] = {}
        self._connections: list[http.client.HTTPConnection] = []
        token = self.form_token(daemon, "/sign-in")
        password = (daemon.folder / "var" / "dashboard-password").read_text().strip()
        form = {"form-token": token, "name": "developer", "password": password}
        assert self.send(daemon, "POST", "/sign-in", form).status == 303

    def form_token(self, daemon: Daemon, path: str) -> str:
        """Return the token of a page."""
        page = self.send(daemon, "GET", path).read().decode()
        return page.partition('name="form-token" value="')[2].partition('"')[0]

    def sign_out(self, daemon: Daemon) -> None:
        """Sign out at one daemon."""
        form = {"form-token": self.form_token(daemon, "/account")}
        assert self.send(daemon, "POST", "/sign-out", form).status == 303

    def send(
        self, daemon: Daemon, method: str, path: str, form: dict[str, str] | None = None
    ) -> http.client.HTTPResponse:
        """Send a request; its response may be a stream."""
        connection = http.client.HTTPConnection(HOST, daemon.http_port, timeout=PATIENCE)
        self._connections.append(connection)
        cookie = "; ".join(f"{name}={value}" for name, value in self._cookies.items())
        headers = {"Cookie": cookie, "Accept": "text/html"}
        headers |= {"Content-Type": "application/x-www-form-urlencoded"}
        body = None if form is None else urllib.parse.urlencode(form)
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        for line in answer.headers.get_all("Set-Cookie", ()):
            name, _, value = line.partition(";")[0].partition("=")
            self._cookies[name] = value
        return answer

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections:
            connection.close()


def test_a_session_that_ends_at_another_daemon(daemons: list[Daemon], redis: RedisServer) -> None:
    """A page at one daemon ends within a second of the end of its session at another.

    Without Redis, the next look at the store ends it. The best of some tries counts, since the
    machine may be busy.
    """
    assert min(seconds_until_pages_end(daemons) for _ in range(3)) < 0.5
    redis.kill()
    try:
        assert min(seconds_until_pages_end(daemons) for _ in range(3)) < 1.0
    finally:
        redis.start()
    for one in daemons:
        until_told(one, "well again")


def seconds_until_pages_end(daemons: list[Daemon]) -> float:
    """Return how long the open pages at all daemons outlast their session, which one ends."""
    person = SignedIn(daemons[0])
    streams = [person.send(one, "GET", "/p/me/inbox/live") for one in daemons]
    person.sign_out(daemons[0])
    began = time.monotonic()
    for stream in streams:
        assert b"event: problem" in stream.read()
    took = time.monotonic() - began
    person.close()
    return took
