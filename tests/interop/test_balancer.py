"""Two daemons behind the shipped HAProxy configuration: a crash or a restart goes unnoticed."""

import contextlib
import imaplib
import os
import poplib
import smtplib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPException
from typing import Any

import pytest

from tests.interop.test_cluster import options_of
from tests.servers.daemon import (
    API,
    HOST,
    POLL,
    STOPPED_WELL,
    Answer,
    Daemon,
    free_ports,
    running_daemon,
)
from tests.servers.haproxy import BALANCER, HaProxy, running_balancer
from tests.servers.postgresql import TEMPLATE, PostgresqlServer
from tests.servers.redis import running_redis

pytestmark = pytest.mark.end_to_end

PATIENCE = 60.0  # seconds
WAITS = 6
CLIENTS = ("127.0.0.21", "127.0.0.22")


class Balanced:
    """Two daemons and the HAProxy in front of them."""

    def __init__(self, daemons: list[Daemon], haproxy: HaProxy) -> None:
        self.daemons = daemons
        self._haproxy = haproxy
        self.ports = haproxy.ports

    @contextlib.contextmanager
    def connected(self, client: str = HOST) -> Iterator[HTTPConnection]:
        """Open a connection from an address."""
        port = self._haproxy.ports["web"]
        connection = HTTPConnection(HOST, port, timeout=PATIENCE, source_address=(client, 0))
        with contextlib.closing(connection):
            yield connection

    def get(self, path: str) -> Answer:
        """Return the response to one request."""
        with self.connected() as connection:
            return self.ask(connection, path, self.daemons[0].key)

    def ask(self, connection: HTTPConnection, path: str, key: str) -> Answer:
        """Return the response to a request on a connection."""
        connection.request("GET", API + path, headers={"X-API-Key": key})
        response = connection.getresponse()
        headers = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, headers, response.read())

    def send(self, recipient: str, subject: str) -> None:
        """Send a mail, and repeat it until it is accepted, as a mail server does."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError, smtplib.SMTPException):
                with smtplib.SMTP(HOST, self._haproxy.ports["mail"], timeout=PATIENCE) as smtp:
                    text = f"Subject: {subject}\r\n\r\nhi\r\n"
                    smtp.sendmail("a@example.com", [recipient], text)
                return
            time.sleep(POLL)
        raise AssertionError(f"{subject} was not accepted")

    def requests_left(self) -> int:
        """Return how many requests the key has left in this day."""
        return int(self.get("/inbox").headers["x-ratelimit-daily-remaining"])

    def is_complete(self) -> bool:
        """Return whether HAProxy has marked both daemons as up."""
        log = self._haproxy.log()
        return all(log.rfind(f"web/d{n} is UP") >= log.rfind(f"web/d{n} is DOWN") for n in (0, 1))


@pytest.fixture(scope="module")
def balanced(
    tmp_path_factory: pytest.TempPathFactory, postgresql_server: PostgresqlServer
) -> Iterator[Balanced]:
    """Two daemons on one PostgreSQL and one Redis, behind the shipped configuration."""
    folder = tmp_path_factory.mktemp("balanced")
    with contextlib.ExitStack() as stack:
        redis = stack.enter_context(running_redis())
        database = postgresql_server.make_database(f"balanced_{os.getpid()}", TEMPLATE)
        trusted = {"smtp_proxy_protocol_from": [BALANCER], "web_proxy_protocol_from": [BALANCER]}
        options: dict[str, Any] = options_of(database, redis, **trusted)

        def mail_programs() -> dict[str, str]:
            imap, pop3 = free_ports(2)
            return {"imap_listen": f"{HOST}:{imap}", "pop3_listen": f"{HOST}:{pop3}"}

        first = stack.enter_context(running_daemon(folder / "one", **options, **mail_programs()))
        options |= {"accounts_bootstrap_key": first.key}
        second = stack.enter_context(running_daemon(folder / "two", **options, **mail_programs()))
        daemons = [first, second]
        haproxy = stack.enter_context(running_balancer(daemons))
        yield Balanced(daemons, haproxy)


def test_daemons_know_the_clients(balanced: Balanced) -> None:
    """Clients do not share connections to a daemon, which knows the address of each request."""
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(balanced.connected(client)) for client in CLIENTS]
        for number in range(4):
            for client, connection in zip(CLIENTS, connections, strict=True):
                wrong = f"mck_wrong_{client}_{number}"
                assert balanced.ask(connection, "/inbox", wrong).status == 401
    logged = "".join(daemon.output() for daemon in balanced.daemons)
    for client in CLIENTS:
        assert logged.count(f"failed key: client={client} ") == 4, logged


def test_mail_programs(balanced: Balanced) -> None:
    """Mail programs read the inbox through HAProxy, and the daemons know their addresses."""
    balanced.send(balanced.daemons[0].address("programs"), "programs")
    key = balanced.daemons[0].key
    imap = imaplib.IMAP4(HOST, balanced.ports["imap"], timeout=PATIENCE)
    imap.login("any", key)
    assert imap.select("Tags/programs")[1] == [b"1"]
    imap.logout()
    pop3 = poplib.POP3(HOST, balanced.ports["pop3"], timeout=PATIENCE)
    pop3.user("any")
    pop3.pass_(key)
    assert pop3.stat()[0] >= 1
    pop3.quit()
    wrong = (("imap", b"x LOGIN a b\r\nx LOGOUT\r\n"), ("pop3", b"AUTH PLAIN AGEAYg==\r\nQUIT\r\n"))
    for client, (name, commands) in zip(CLIENTS, wrong, strict=True):
        where = (HOST, balanced.ports[name])
        with socket.create_connection(where, PATIENCE, source_address=(client, 0)) as connection:
            connection.sendall(commands)
            while connection.recv(4_096):
                pass  # until the daemon has answered all of them
    logged = "".join(daemon.output() for daemon in balanced.daemons)
    for client in CLIENTS:
        assert f"failed login: client={client} " in logged, logged


def test_waits_outlive_a_daemon_that_is_killed(balanced: Balanced) -> None:
    """Parked waits end with their mail although their daemon was killed meanwhile."""
    killed, other = balanced.daemons
    cursor, address = other.cursor(), other.address("outlived")
    left = balanced.requests_left()
    with ThreadPoolExecutor(WAITS) as pool:
        path = f"/inbox/wait?tag=outlived&timeout=50&after={cursor}"
        waits = [pool.submit(balanced.get, path) for _ in range(WAITS)]
        polls = iter(range(1, 10_000))
        other.wait_until(lambda: left - balanced.requests_left() == WAITS + next(polls))
        killed.kill()
        balanced.send(address, "outlived")
        answers = [wait.result(PATIENCE) for wait in waits]
    assert [answer.status for answer in answers] == [200] * WAITS
    assert {answer.json["subject"] for answer in answers} == {"outlived"}
    killed.start()
    other.wait_until(balanced.is_complete)


KILLS = 20


def test_a_client_that_reads_notices_no_kill(balanced: Balanced) -> None:
    """Every GET is answered while daemons are killed again and again."""
    is_over = threading.Event()
    statuses: list[int] = []

    def read() -> None:
        while not is_over.is_set():
            try:
                statuses.append(balanced.get("/inbox/messages?limit=1").status)
            except (OSError, HTTPException):
                statuses.append(0)

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        try:
            for number in range(KILLS):
                killed = balanced.daemons[number % 2]
                killed.kill()
                killed.start()
                killed.wait_until(balanced.is_complete)
        finally:
            is_over.set()
    for reader in readers:
        reader.result()
    assert set(statuses) == {200}, [status for status in statuses if status != 200]


class Traffic:
    """A sender, a waiting client and a reading client, which run until they are stopped."""

    def __init__(self, balanced: Balanced) -> None:
        self._balanced = balanced
        self._address = balanced.daemons[0].address("rolling")
        self.cursor = self.heard_until = balanced.daemons[0].cursor()
        self.sent: list[str] = []
        self.heard: list[str] = []
        self.failed: list[int] = []
        self._is_over = threading.Event()

    @contextlib.contextmanager
    def going_on(self) -> Iterator[None]:
        """Keep the traffic running until the context ends."""
        with ThreadPoolExecutor(3) as pool:
            runs = [
                pool.submit(self._repeat, step) for step in (self._send, self._wait, self._read)
            ]
            try:
                yield
            finally:
                self._is_over.set()
        for run in runs:
            run.result()

    def _repeat(self, step: Callable[[], None]) -> None:
        while not self._is_over.is_set():
            step()

    def _send(self) -> None:
        subject = f"rolling {len(self.sent)}"
        self._balanced.send(self._address, subject)
        self.sent.append(subject)

    def _wait(self) -> None:
        after = self.heard_until
        answer = self._balanced.get(f"/inbox/wait?tag=rolling&timeout=2&after={after}")
        if answer.status == 200:
            self.heard.append(answer.json["subject"])
            self.heard_until = answer.json["cursor"]
        else:
            self._judge(answer, 408)

    def _read(self) -> None:
        self._judge(self._balanced.get("/inbox/messages?limit=1"), 200)

    def _judge(self, answer: Answer, wanted: int) -> None:
        if answer.status != wanted:
            self.failed.append(answer.status)


def test_a_rolling_restart_is_not_noticed(balanced: Balanced) -> None:
    """While the daemons are restarted one after another, no GET fails and no mail is lost."""
    traffic = Traffic(balanced)
    with traffic.going_on():
        for daemon in balanced.daemons:
            assert daemon.stop() in STOPPED_WELL
            daemon.start()
            daemon.wait_until(balanced.is_complete)
    assert traffic.failed == []
    assert len(traffic.sent) > 10
    # A mail whose 250 was lost with the connection is sent again.
    assert list(dict.fromkeys(traffic.heard)) == traffic.sent[: len(set(traffic.heard))]
    page = balanced.get(f"/inbox/messages?tag=rolling&after={traffic.cursor}&limit=1")
    assert page.json["total"] >= len(traffic.sent)
