"""Many clients at once, some of them slow or silent: all are served, and none delays another."""

import contextlib
import random
import resource
import smtplib
import socket
import threading
from collections.abc import Iterator

import pytest

from tests.end_to_end.load import OK, raw_of, send
from tests.servers.daemon import API, HOST, Daemon

pytestmark = [pytest.mark.end_to_end, pytest.mark.soak, pytest.mark.interop]

IDLE_CLIENTS = 1_000
HTTP_CLIENTS = 2_000
WAITERS = 200
PATIENCE = 60.0  # seconds: far more than needed, but it ends a hang


@pytest.fixture(autouse=True)
def many_files() -> Iterator[None]:
    """Let this process open as many sockets as the tests need."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def connect(port: int) -> socket.socket:
    """Connect to the daemon."""
    return socket.create_connection((HOST, port), PATIENCE)


def mail(subject: str, body: str) -> bytes:
    """Return a mail."""
    return f"From: shop@example.com\r\nSubject: {subject}\r\n\r\n{body}\r\n".encode()


def test_idle_smtp_clients(shared_daemon: Daemon) -> None:
    """A thousand silent connections are all greeted, while another client is served."""
    recipient, before = shared_daemon.address(), shared_daemon.total()
    with contextlib.ExitStack() as connections:
        idle = [
            connections.enter_context(connect(shared_daemon.smtp_port)) for _ in range(IDLE_CLIENTS)
        ]
        assert all(one.recv(4096).startswith(b"220 ") for one in idle)
        with smtplib.SMTP(HOST, shared_daemon.smtp_port, timeout=PATIENCE) as neighbour:
            for number in range(20):
                assert send(neighbour, [recipient], mail(str(number), "x")) == OK
        assert shared_daemon.total() == before + 20


def test_slow_sender(shared_daemon: Daemon) -> None:
    """A mail that arrives octet by octet is stored whole, and does not delay other clients."""
    recipient, raw = shared_daemon.address(), mail("slow", "..and a dot")
    with smtplib.SMTP(HOST, shared_daemon.smtp_port, timeout=PATIENCE) as slow:
        slow.ehlo()
        slow.docmd("MAIL FROM:<shop@example.com>")
        slow.docmd(f"RCPT TO:<{recipient}>")
        slow.docmd("DATA")
        content = raw.replace(b"\r\n.", b"\r\n..") + b".\r\n"
        assert slow.sock is not None
        slow.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for number, octet in enumerate(content):
            slow.sock.send(bytes([octet]))
            if number % 10 == 0:
                with smtplib.SMTP(HOST, shared_daemon.smtp_port, timeout=PATIENCE) as neighbour:
                    assert send(neighbour, [recipient], mail("neighbour", "x")) == OK
        assert slow.getreply()[0] == OK
    newest = shared_daemon.get("/inbox/messages", limit=1).json["messages"][0]
    assert raw_of(shared_daemon, newest["id"]) == raw


def test_http_connections_at_once(shared_daemon: Daemon) -> None:
    """Two thousand clients that connect at the same time are all accepted and answered."""
    request = (
        f"GET {API}/inbox/address HTTP/1.1\r\nHost: x\r\nX-API-Key: {shared_daemon.key}\r\n\r\n"
    )
    with contextlib.ExitStack() as connections:
        clients = [connections.enter_context(socket.socket()) for _ in range(HTTP_CLIENTS)]
        for client in clients:
            client.setblocking(False)
            client.connect_ex((HOST, shared_daemon.http_port))
        for client in clients:
            client.settimeout(PATIENCE)
            client.sendall(request.encode())
        answers = [client.recv(4096) for client in clients]
    assert [answer for answer in answers if not answer.startswith(b"HTTP/1.1 200 ")] == []


def test_parallel_waits(shared_daemon: Daemon) -> None:
    """200 waits at once, each for its own tag, each get their own mail in any order."""
    tags = [f"signup-{number}" for number in range(WAITERS)]
    cursor = shared_daemon.cursor()
    waits = {tag: shared_daemon.ask("GET", f"/inbox/wait?tag={tag}&after={cursor}") for tag in tags}
    addresses = {tag: shared_daemon.address(tag) for tag in tags}

    def send_mails(some_tags: list[str]) -> None:
        with smtplib.SMTP(HOST, shared_daemon.smtp_port, timeout=PATIENCE) as client:
            for tag in some_tags:
                code = 100_000 + tags.index(tag)
                send(client, [addresses[tag]], mail("Welcome", f"Your code is {code}"))

    random.shuffle(tags_in_random_order := list(tags))
    senders = [
        threading.Thread(target=send_mails, args=(tags_in_random_order[number::4],))
        for number in range(4)
    ]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    for number, tag in enumerate(tags):
        answer = waits[tag].answer()
        assert (answer.status, answer.json["tag"]) == (200, tag)
        assert answer.json["codes"] == [str(100_000 + number)]
