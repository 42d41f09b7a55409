"""A receiver of webhooks on a separate port, which verifies each signature with the library.

    with running_receiver() as receiver:
        receiver.secrets["/mail"] = secret
        ...  # f"{receiver.url}/mail"; receiver.wait_for(3)

The path determines the answer: ``/500``, ``/410``, ``/302``; ``/hang`` gets none.
"""

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from standardwebhooks import Webhook

from tests.servers.certificates import Issued
from tests.servers.http_stub import QuietHandler

PATIENCE = 60.0  # seconds


@dataclass(frozen=True)
class Got:
    """A received event; ``is_signed`` means signed with the secret of its path."""

    path: str
    event_id: str
    message: Any
    is_signed: bool
    client: tuple[str, int]


class Receiver:
    """The received events, and the answers."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.secrets: dict[str, str] = {}
        self.got: list[Got] = []
        self.statuses: dict[str, int] = {}
        self.released = threading.Event()
        self._changed = threading.Condition()

    def add(self, one: Got) -> None:
        """Store an event."""
        with self._changed:
            self.got.append(one)
            self._changed.notify_all()

    def of(self, path: str) -> list[Got]:
        """Return the events at a path."""
        return [one for one in self.got if one.path == path]

    def subjects(self, path: str) -> list[str]:
        """Return the subjects of the events at a path."""
        return [one.message["subject"] for one in self.of(path)]

    def wait_for(self, path: str, count: int) -> list[Got]:
        """Wait for a number of events at a path."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.of(path)) >= count, PATIENCE), (
                f"{path} got {self.subjects(path)[-5:]}"
            )
        return self.of(path)


def _handler(receiver: Receiver) -> type[BaseHTTPRequestHandler]:
    class Handler(QuietHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            """Receive an event."""
            body = self.rfile.read(int(self.headers["Content-Length"]))
            path = self.path
            receiver.add(
                Got(
                    path,
                    self.headers["webhook-id"],
                    json.loads(body),
                    self._is_signed(body),
                    self.client_address,
                )
            )
            if path == "/hang":
                receiver.released.wait(PATIENCE)
                return
            named = int(path[1:4]) if path[1:4].isdigit() else 204
            status = receiver.statuses.get(path, named)
            self.send_response(status)
            if status == 302:
                self.send_header("Location", f"{receiver.url}/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def _is_signed(self, body: bytes) -> bool:
            secret = receiver.secrets.get(self.path, "")
            try:
                Webhook(secret).verify(body, dict(self.headers))
            except Exception:  # any kind of error
                return False
            return True

    return Handler


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1_000

    def handle_error(self, *_: object) -> None:
        """Ignore clients that disconnect."""


@contextmanager
def running_receiver(
    host: str = "127.0.0.1", port: int = 0, issued: Issued | None = None, folder: Path | None = None
) -> Iterator[Receiver]:
    """Run a receiver, over TLS if it has a certificate."""
    receiver = Receiver("")
    server = _Server((host, port), _handler(receiver))
    scheme = "http"
    if issued is not None and folder is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*issued.write_to(folder, "receiver"))
        server.socket = context.wrap_socket(server.socket, server_side=True)
        scheme = "https"
    receiver.url = f"{scheme}://{host}:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield receiver
    finally:
        receiver.released.set()
        server.shutdown()
        server.server_close()
        thread.join()
