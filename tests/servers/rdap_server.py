"""A registry for tests that speaks RDAP over HTTP or HTTPS, in a separate thread.

    with running_rdap_server({"example.com": "2001-02-03T04:05:06Z"}, suffixes=["com"]) as server:
        ...  # use server.bootstrap_url for [probes] rdap_bootstrap; see server.asked

The value of a domain is its registration date, or a whole `Reply`. Other domains get 404.
``/dns.json`` is a bootstrap file that names the server as the registry of ``suffixes``.
"""

import json
import ssl
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.servers.certificates import Issued
from tests.servers.http_stub import QuietHandler


@dataclass(frozen=True)
class Reply:
    """Any reply of the server."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class RdapServer:
    """A running server; ``host`` is the name in its URL."""

    host: str
    port: int
    scheme: str
    domains: dict[str, str | Reply]
    suffixes: Sequence[str]
    delay: float
    asked: list[str] = field(default_factory=list)
    requests: list[dict[str, str]] = field(default_factory=list)

    @property
    def base_url(self) -> str:
        """Its URL in the bootstrap file."""
        return f"{self.scheme}://{self.host}:{self.port}/"

    @property
    def bootstrap_url(self) -> str:
        """The URL of its bootstrap file."""
        return self.base_url + "dns.json"

    def bootstrap(self) -> dict[str, Any]:
        """Return its bootstrap file."""
        return {"version": "1.0", "services": [[list(self.suffixes), [self.base_url]]]}

    def answer(self, path: str) -> Reply:
        """Return the reply to a request."""
        if path == "/dns.json":
            return _json(200, self.bootstrap())
        self.asked.append(path)
        known = self.domains.get(path.removeprefix("/domain/"))
        if isinstance(known, Reply):
            return known
        if known is None:
            return _json(404, {"errorCode": 404, "title": "Not Found"})
        return _json(200, domain_object(path.removeprefix("/domain/"), known))


def domain_object(name: str, registered_at: str) -> dict[str, Any]:
    """Return an RDAP domain object (RFC 9083 5.3)."""
    return {
        "rdapConformance": ["rdap_level_0"],
        "objectClassName": "domain",
        "ldhName": name.upper(),
        "status": ["active"],
        "events": [
            {"eventAction": "registration", "eventDate": registered_at},
            {"eventAction": "expiration", "eventDate": "2099-01-01T00:00:00Z"},
        ],
    }


@contextmanager
def running_rdap_server(
    domains: Mapping[str, str | Reply],
    *,
    suffixes: Sequence[str] = ("com",),
    host: str = "127.0.0.1",
    issued: Issued | None = None,
    delay: float = 0.0,
) -> Iterator[RdapServer]:
    """Run a server on a free port of 127.0.0.1 as long as the context lasts.

    :param issued: a certificate for HTTPS.
    :param delay: seconds before each answer.
    """
    http = _Server(("127.0.0.1", 0), _Handler)
    server = RdapServer(
        host, http.server_port, "https" if issued else "http", dict(domains), suffixes, delay
    )
    http.rdap = server
    if issued is not None:
        with tempfile.TemporaryDirectory() as folder:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(*issued.write_to(Path(folder)))
        # The handshake runs in the thread of the connection, so that a client cannot block others.
        http.socket = context.wrap_socket(
            http.socket, server_side=True, do_handshake_on_connect=False
        )
    thread = threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        thread.join()
        http.server_close()


class _Server(ThreadingHTTPServer):
    rdap: RdapServer

    def handle_error(self, *_: object) -> None:
        """Ignore clients that disconnect, which some do on purpose."""


class _Handler(QuietHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        assert isinstance(self.server, _Server)
        rdap = self.server.rdap
        rdap.requests.append({name.lower(): value for name, value in self.headers.items()})
        time.sleep(rdap.delay)
        reply = rdap.answer(self.path)
        self.send_response(reply.status)
        headers = {"Content-Length": str(len(reply.body)), **reply.headers}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(reply.body)


def _json(status: int, document: object) -> Reply:
    body = json.dumps(document).encode()
    return Reply(status, body, {"Content-Type": "application/rdap+json"})
