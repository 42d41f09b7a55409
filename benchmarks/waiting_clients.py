"""HTTP on raw sockets: a kept connection, a crowd of parked requests, and a timed probe."""

import json
import select
import socket
import time
from typing import Protocol

CROWD_TAG, PROBE_TAG = "everyone", "probe"
HOST = "127.0.0.1"
REST = 0.010  # seconds between parking the probe and sending its mail


class Subject(Protocol):
    """A measured server."""

    name: str
    pid: int
    port: int

    def request(self, tag: str, cursor: str) -> bytes:
        """Return the request that waits for a tag."""

    def notify(self, tag: str) -> float:
        """Cause the event, and return the time at which its last byte was sent."""

    def settle(self) -> None:
        """Read the response to `notify`."""


class Response:
    """An HTTP response of known length, which may be incomplete."""

    def __init__(self) -> None:
        self._data = b""
        self._end = 0

    def feed(self, data: bytes) -> bool:
        """Add data, and return whether the response is complete."""
        self._data += data
        if not self._end:
            head, found, _ = self._data.partition(b"\r\n\r\n")
            if found:
                length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
                self._end = len(head) + 4 + int(length)
        return bool(self._end) and len(self._data) >= self._end

    def body(self, status: int = 200) -> bytes:
        """Return the body; end the benchmark if the response has another status."""
        if not self._data.startswith(b"HTTP/1.1 %d " % status):
            raise SystemExit(f"unexpected response: {self._data[:500]!r}")
        return self._data.partition(b"\r\n\r\n")[2]


class Connection:
    """A kept connection for one request after another."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection((HOST, port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, request: bytes) -> None:
        """Send a request."""
        self._socket.sendall(request)

    def read(self) -> tuple[Response, float]:
        """Read the response, and return it with the time of its last byte."""
        response = Response()
        while not response.feed(self._receive()):
            pass
        return response, time.perf_counter()

    def _receive(self) -> bytes:
        data = self._socket.recv(262_144)
        if not data:
            raise SystemExit("the server closed the connection before the response was complete")
        return data

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


class Crowd:
    """Parked requests, one connection each."""

    def __init__(self, subject: Subject, size: int) -> None:
        self._sockets: dict[int, socket.socket] = {}
        self._poll = select.epoll()
        request = subject.request(CROWD_TAG, "")
        for _ in range(size):
            one = socket.create_connection((HOST, subject.port))
            one.sendall(request)
            self._sockets[one.fileno()] = one
            self._poll.register(one, select.EPOLLIN)

    def require_parked(self) -> None:
        """End the benchmark if a request was answered already."""
        if self._poll.poll(0):
            raise SystemExit("a parked wait was answered too early")

    def read_all(self) -> float:
        """Read all responses, and return the time of the last byte."""
        responses = {number: Response() for number in self._sockets}
        left = len(responses)
        while left:
            for number, _ in self._poll.poll():
                if responses[number].feed(self._sockets[number].recv(65_536)):
                    self._poll.unregister(number)
                    left -= 1
        ended = time.perf_counter()
        for response in responses.values():
            response.body()
        return ended

    def close(self) -> None:
        """Close the connections."""
        for one in self._sockets.values():
            one.close()
        self._poll.close()


class Probe:
    """One more waiting request on a kept connection."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._connection = Connection(subject.port)
        self._cursor = ""

    def measure(self) -> float:
        """Wait for one mail, and return the seconds from its end to the response."""
        self._connection.send(self._subject.request(PROBE_TAG, self._cursor))
        time.sleep(REST)
        sent = self._subject.notify(PROBE_TAG)
        response, ended = self._connection.read()
        self._subject.settle()
        self._cursor = json.loads(response.body())["cursor"]
        return ended - sent

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
