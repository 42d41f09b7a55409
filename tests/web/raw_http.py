"""A client that sends arbitrary bytes over one connection to the site of a house."""

from typing import Any, Protocol

from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.error import ConnectionDone
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure

from tests.house import Answer
from tests.spec.judge import judge_response

READ_SIZE = 65_536
"""Number of bytes that a socket passes to its protocol at once."""


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
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1:8080", *headers, "", ""]
    return "\r\n".join(lines).encode("latin-1")


def read_answer(data: bytes, method: str) -> tuple[Answer, bytes]:
    """Parse the first response. Return it and the remaining bytes."""
    while data.startswith(b"HTTP/1.1 100 "):
        data = data.partition(b"\r\n\r\n")[2]
    head, blank, rest = data.partition(b"\r\n\r\n")
    assert blank, f"no whole response: {data[:200]!r}"
    status_line, *lines = head.decode("latin-1").split("\r\n")
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        if name.lower() == "set-cookie" and name.lower() in headers:
            headers[name.lower()] += ", " + value.strip()  # none of ours holds a comma
            continue
        assert name.lower() not in headers, f"{name} is sent twice"
        headers[name.lower()] = value.strip()
    length = 0 if method == "HEAD" else int(headers["content-length"])
    return Answer(int(status_line.split(" ")[1]), headers, rest[:length]), rest[length:]
