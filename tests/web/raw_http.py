"""A client that sends arbitrary bytes over one connection to the site of a house."""

import string
from collections.abc import Mapping
from dataclasses import dataclass
from json import dumps, loads
from typing import Any, Protocol
from urllib.parse import quote, urlencode

from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.error import ConnectionDone
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure

from tests.spec.judge import judge_response

READ_SIZE = 65_536
"""Number of bytes that a socket passes to its protocol at once."""

PRINTABLE = string.punctuation
"""Characters that clients send in a target as they are, beside letters and digits."""

NOTHING: Mapping[str, str] = {}


@dataclass
class Answer:
    """A complete HTTP response."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Return the body as JSON."""
        return loads(self.body)


class HasSite(Protocol):
    """An object with the site that a client connects to."""

    site: Any


class RawHttp:
    """One connection from ``peer``. The server may stop reading."""

    def __init__(
        self,
        house: HasSite,
        peer: str = "127.0.0.1",
        transport: type[StringTransport] = StringTransport,
    ) -> None:
        kind = IPv6Address if ":" in peer else IPv4Address
        address = kind("TCP", peer, 40_000)
        self._protocol = house.site.buildProtocol(address)
        self.transport: Any = transport(peerAddress=address)
        self.is_closed = False
        self._held = b""
        self._protocol.makeConnection(self.transport)
        self._close_if_asked()

    def send(self, data: bytes) -> None:
        """Send bytes. Bytes that the server does not read yet are buffered."""
        self._held += data
        while self._held and self.is_reading:
            part, self._held = self._held[:READ_SIZE], self._held[READ_SIZE:]
            self._protocol.dataReceived(part)
        self._close_if_asked()

    @property
    def held(self) -> int:
        """Return the number of bytes that the server has not read."""
        return len(self._held)

    @property
    def is_reading(self) -> bool:
        """Return whether the server is reading."""
        return self.transport.producerState == "producing" and not self.transport.disconnecting

    def received(self) -> bytes:
        """Return all bytes that the server has sent."""
        self.send(b"")
        sent: bytes = self.transport.value()
        return sent

    def answers(self, *asked: tuple[str, str]) -> list[Answer]:
        """Return the expected number of responses, each checked."""
        rest = self.received()
        answers = []
        for method, path in asked:
            answer, rest = read_answer(rest, method)
            judge_response(method, path, answer)
            answers.append(answer)
        assert not rest, f"more was sent than asked for: {rest[:200]!r}"
        return answers

    def ask(self, path: str, *headers: str, method: str = "GET", body: bytes = b"") -> Answer:
        """Send one request on a new connection, and return the response."""
        self.send(request(path, *headers, method=method) + body)
        return self.answers((method, path))[0]

    def hang_up(self) -> None:
        """Disconnect."""
        self.transport.disconnecting = True
        self._close_if_asked()

    def _close_if_asked(self) -> None:
        # A real transport notifies its protocol in a later turn of the reactor.
        if self.transport.disconnecting and not self.is_closed:
            self.is_closed = True
            self._protocol.connectionLost(Failure(ConnectionDone()))


def request(path: str, *headers: str, method: str = "GET") -> bytes:
    """Format the head of a request."""
    host = [] if any(line.startswith("Host:") for line in headers) else ["Host: 127.0.0.1:8080"]
    lines = [f"{method} {path} HTTP/1.1", *host, *headers, "", ""]
    return "\r\n".join(lines).encode("latin-1")


class Pending:
    """A request that may not be answered yet, on a connection of its own.

    Its body are bytes, or a value as JSON.
    """

    def __init__(
        self,
        house: HasSite,
        method: str,
        path: str,
        headers: Mapping[str, str] = NOTHING,
        *,
        params: Mapping[str, str] = NOTHING,
        data: bytes | None = None,
        json: object = None,
    ) -> None:
        self.method = method
        self.path = path
        given = {"Connection": "close", **headers}
        if json is not None:
            data = dumps(json).encode()
            given["Content-Type"] = "application/json"
        if data or method in ("POST", "PUT"):
            given["Content-Length"] = str(len(data or b""))
        target = quote(path, safe=PRINTABLE)
        if params:
            target += f"{'&' if '?' in path else '?'}{urlencode(params)}"
        lines = [f"{name}: {value}" for name, value in given.items()]
        self.connection = RawHttp(house)
        self.connection.send(request(target, *lines, method=method) + (data or b""))

    @property
    def is_answered(self) -> bool:
        """Whether a response has arrived, or at least its head."""
        return b"\r\n\r\n" in self.connection.received()

    @property
    def is_over(self) -> bool:
        """Whether the server has closed the connection, which it does after the response."""
        self.connection.received()
        return self.connection.is_closed

    @property
    def so_far(self) -> Answer:
        """The response, whose body may have just begun. Its head must have arrived."""
        status, headers, rest = read_head(self.connection.received())
        chunked = headers.get("transfer-encoding") == "chunked"
        return Answer(status, headers, _join_chunks(rest) if chunked else rest)

    @property
    def media_type(self) -> str:
        """The media type of the response, or an empty text if it has not begun."""
        return self.so_far.headers.get("content-type", "") if self.is_answered else ""

    def answer(self) -> Answer:
        """Return the response, which must have arrived, after checking it against the contract."""
        assert self.is_answered, f"{self.method} {self.path} has no answer yet"
        return self.connection.answers((self.method, self.path))[0]

    def hang_up(self) -> None:
        """Cancel the request without waiting for the answer."""
        self.connection.hang_up()


def read_head(data: bytes) -> tuple[int, dict[str, str], bytes]:
    """Parse the head of a response. Return its status, its headers and the remaining bytes."""
    while data.startswith(b"HTTP/1.1 100 "):
        data = data.partition(b"\r\n\r\n")[2]
    head, blank, rest = data.partition(b"\r\n\r\n")
    assert blank, f"no whole response: {data[:200]!r}"
    status_line, *lines = head.decode("latin-1").split("\r\n")
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        name = name.lower()
        if name == "set-cookie" and name in headers:
            headers[name] += ", " + value.strip()  # none of ours holds a comma
            continue
        assert name not in headers, f"{name} is sent twice"
        headers[name] = value.strip()
    return int(status_line.split(" ")[1]), headers, rest


def read_answer(data: bytes, method: str) -> tuple[Answer, bytes]:
    """Parse the first response. Return it and the remaining bytes."""
    status, headers, rest = read_head(data)
    if "transfer-encoding" in headers and method != "HEAD":
        assert rest.endswith(b"\r\n0\r\n\r\n"), "the response has not ended"
        return Answer(status, headers, _join_chunks(rest)), b""
    length = 0 if method == "HEAD" else int(headers["content-length"])
    return Answer(status, headers, rest[:length]), rest[length:]


def _join_chunks(data: bytes) -> bytes:
    size, _, rest = data.partition(b"\r\n")
    parts = []
    while rest:
        end = int(size, 16)
        parts.append(rest[:end])
        size, _, rest = rest[end + 2 :].partition(b"\r\n")
    return b"".join(parts)
