"""HTTP services that replace a daemon, to test clients with rare answers."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.servers.daemon import HOST


class QuietHandler(BaseHTTPRequestHandler):
    """A handler without a log."""

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        """Log nothing."""

    def send_answer(self, body: bytes, status: int = 200, retry_after: str = "") -> None:
        """Send an answer, with a Retry-After if there is one."""
        self.send_response(status)
        if retry_after:
            self.send_header("Retry-After", retry_after)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Run a service that replaces a daemon; yield its URL."""
    server = ThreadingHTTPServer((HOST, 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Listener:
    """A web server that keeps the headers and the body of each POST."""

    def __init__(self) -> None:
        self.url = ""
        self.got: list[dict[str, Any]] = []


@contextmanager
def listening() -> Iterator[Listener]:
    """Run a web server that takes all that is posted to it."""
    listener = Listener()

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            """Keep a request."""
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            headers = {name.lower(): value for name, value in self.headers.items()}
            self.send_response(204)
            self.end_headers()
            listener.got.append({"body": body, "headers": headers})

    with serving(Handler) as url:
        listener.url = f"{url}/events"
        yield listener


class Searching(QuietHandler):
    """Has 101 mails in two pages; its searches leave out 2 more."""

    def do_GET(self) -> None:
        """Answer a request."""
        url = urlsplit(self.path)
        body: dict[str, Any] = {"id": url.path.rpartition("/")[2], "headers": {}}
        if url.path.endswith("/messages"):
            page = int(parse_qs(url.query).get("page", ["1"])[0])
            numbers = range(100, 101) if page == 2 else range(100)
            messages = [{"id": f"m{number}"} for number in numbers]
            body = {"messages": messages, "total": 101, "nextPage": None if page == 2 else 2}
            body |= {"notSearched": 2} if "q=" in url.query or "text=" in url.query else {}
        if url.path.endswith("/address"):
            body = {"mailbox": "m", "domain": "x.example", "cursor": "c1"}
        self.send_answer(json.dumps(body).encode())


@contextmanager
def serving_answers(*answers: tuple[int, bytes, str]) -> Iterator[str]:
    """Run a service that returns the answers one after the other, and repeats the last one.

    :param answers: status, body and Retry-After of each (empty for none).
    """
    left = list(answers)

    class Answering(QuietHandler):
        def do_GET(self) -> None:
            """Return the next answer."""
            status, body, retry_after = left.pop(0) if len(left) > 1 else left[0]
            self.send_answer(body, status, retry_after)

    with serving(Answering) as url:
        yield url
