"""Many clients at once, some of them slow or silent: all are served, and none delays another."""

import contextlib
import resource
import smtplib
import socket
from collections.abc import Iterator

import pytest

from tests.end_to_end.load import OK, send
from tests.servers.daemon import API, HOST, Daemon

pytestmark = [pytest.mark.end_to_end, pytest.mark.soak, pytest.mark.interop]

IDLE_CLIENTS = 1_000
HTTP_CLIENTS = 2_000
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
