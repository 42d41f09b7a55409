"""A reverse proxy that records which requests each call of a client causes.

``GET /.call/NAME`` begins a call: all later requests belong to it. ``GET /.send/ADDRESS`` sends the
sample mail to an address. All other requests go to the daemon.
"""

from collections.abc import Callable, Sequence
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import unquote, urlsplit

from tests.servers.daemon import ANSWER_DEADLINE, HOST

BEGIN, SEND = "/.call/", "/.send/"

FRAMING = ("transfer-encoding", "content-length", "connection")
"""Headers of one connection, which are not forwarded."""

Request = tuple[str, str]
"""A method and a path."""


class Recorder(ThreadingHTTPServer):
    """Records the methods and paths of requests by the call that caused them.

    :param target: the port of the daemon.
    :param send: sends the sample mail to an address.
    """

    daemon_threads = True

    def __init__(self, target: int, send: Callable[[str], None]) -> None:
        super().__init__((HOST, 0), Forwarding)
        self.target = target
        self.send = send
        self.calls: dict[str, list[Request]] = {}
        self.current: list[Request] = []
        self.url = f"http://{HOST}:{self.server_port}"
        Thread(target=self.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Stop listening."""
        self.shutdown()
        self.server_close()


class Forwarding(BaseHTTPRequestHandler):
    """Forwards the requests of a connection."""

    protocol_version = "HTTP/1.1"
    server: Recorder

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def handle_one_request(self) -> None:
        """Handle a request of any method, or end the connection."""
        self.raw_requestline = self.rfile.readline(65_537)
        if not self.raw_requestline or not self.parse_request():
            self.close_connection = True
            return
        recorder, path = self.server, unquote(urlsplit(self.path).path)
        if path.startswith(BEGIN):
            recorder.current = recorder.calls.setdefault(path.removeprefix(BEGIN), [])
            self._answer(204, [], b"")
        elif path.startswith(SEND):
            recorder.send(path.removeprefix(SEND))
            self._answer(204, [], b"")
        else:
            recorder.current.append((self.command, path))
            self._forward()

    def _forward(self) -> None:
        body = self._body()
        connection = HTTPConnection(HOST, self.server.target, timeout=ANSWER_DEADLINE)
        connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in FRAMING:
                connection.putheader(name, value)
        if body or "Content-Length" in self.headers:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        answer = connection.getresponse()
        headers = [one for one in answer.getheaders() if one[0].lower() not in FRAMING]
        self._answer(answer.status, headers, answer.read())
        connection.close()

    def _body(self) -> bytes:
        """Return the body of the request. Some clients send it in chunks."""
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _answer(self, status: int, headers: Sequence[tuple[str, str]], body: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
