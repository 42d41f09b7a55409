"""Responses arrive completely and in order, and buffered data is counted."""

import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.address import IPv4Address
from twisted.internet.error import ConnectionDone, ConnectionLost
from twisted.internet.ssl import CertificateOptions
from twisted.internet.task import Clock
from twisted.internet.tcp import Connection
from twisted.internet.testing import StringTransport
from twisted.protocols.tls import TLSMemoryBIOFactory
from twisted.python.failure import Failure
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request

from mailcheck.core.memory.client_limits import ConnectionLimits
from mailcheck.ops.journal import ClientJournal, Pace
from mailcheck.web.site.connections import IDLE_TIMEOUT, MAX_UNSENT
from mailcheck.web.site.requests import BodyLimits, ClientAddresses
from mailcheck.web.site.response_buffers import CHUNK, ResponseBuffers
from mailcheck.web.site.server import BoundedSite
from tests.table import rows
from tests.web.raw_http import request
from tests.web.slow_reader import MOST_UNREAD, SlowReader

SIZES = st.sampled_from([0, 1, 100, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 200_000])


class Written(Resource):
    """A resource that sends what a test writes."""

    isLeaf = True

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[Request] = []

    def render(self, request: Request) -> int:
        """Leave the response to the test."""
        self.requests.append(request)
        return NOT_DONE_YET


class SmallHouse:
    """A site with a single page."""

    def __init__(self) -> None:
        self.page = Written()
        self.clock = Clock()
        limits = ConnectionLimits(100, 100)
        journal = ClientJournal(Pace())
        self.site = BoundedSite(
            self.page,
            limits,
            ClientAddresses([]),
            self.clock,
            journal,
            BodyLimits({}),
            ResponseBuffers(),
        )


def chunked(data: bytes) -> bytes:
    """Decode a chunked body."""
    body = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        length = int(size, 16)
        body, data = body + data[:length], data[length + 2 :]
    return body


@given(writes=st.lists(SIZES, max_size=6), reads=st.lists(st.integers(1, 100_000), max_size=20))
def test_chunks_arrive_in_order(writes: list[int], reads: list[int]) -> None:
    """Large and small chunks, written at once and read slowly, arrive in order."""
    house = SmallHouse()
    client = SlowReader(house)
    client.send(request("/") * 2)
    written = b""
    for answer, sizes in enumerate((writes, reversed(writes))):
        for number, size in enumerate(sizes):
            piece = bytes([65 + number]) * size
            house.page.requests[answer].write(piece)
            written += piece
            if reads:
                client.read(reads.pop())
        house.page.requests[answer].finish()
        client.read_on()
    first, second = client.received().split(b"HTTP/1.1 200 OK\r\n")[1:]
    bodies = [chunked(one.partition(b"\r\n\r\n")[2]) for one in (first, second)]
    assert b"".join(bodies) == written
    assert house.site.response_buffers.size == 0


def test_a_stream_after_a_large_event_is_paced() -> None:
    """A stream after a large event is not buffered without limit, and continues when it is read."""
    house = SmallHouse()
    client = SlowReader(house)
    client.send(request("/"))
    (answer,) = house.page.requests
    for _ in range(50):
        answer.write(b"x" * 40_000)
    assert client.transport.most_unread <= MOST_UNREAD
    client.read_on()
    house.clock.advance(10 * IDLE_TIMEOUT)
    client.send(b"")
    assert not client.is_closed
    answer.write(b"the end")
    answer.finish()
    assert chunked(client.received().partition(b"\r\n\r\n")[2]) == b"x" * 2_000_000 + b"the end"


def test_a_head_has_no_body() -> None:
    """HEAD is answered with headers only, even if the body would be large."""
    house = SmallHouse()
    client = SlowReader(house)
    client.send(request("/", method="HEAD"))
    (answer,) = house.page.requests
    answer.write(b"x" * 200_000)
    answer.finish()
    assert client.received().endswith(b"\r\n\r\n")


class SocketTransport(StringTransport):
    """A connection with a socket."""

    def __init__(self, of_connection: socket.socket) -> None:
        super().__init__(peerAddress=IPv4Address("TCP", "127.0.0.1", 40_000))
        self._socket = of_connection

    def getHandle(self) -> socket.socket:
        """Return the socket."""
        return self._socket

    def setTcpNoDelay(self, enabled: bool) -> None:
        """Do nothing."""


@pytest.mark.skipif(not hasattr(socket, "TCP_NOTSENT_LOWAT"), reason="not known to this system")
@rows(False, True)
def test_the_kernel_takes_little_of_a_large_answer(is_tls: bool) -> None:
    """The kernel reports progress of a slow client early, over TLS too, despite large buffers."""
    site = SmallHouse().site
    factory = TLSMemoryBIOFactory(CertificateOptions(), False, site) if is_tls else site
    with socket.socket() as its_socket:
        protocol: Any = factory.buildProtocol(IPv4Address("TCP", "127.0.0.1", 40_000))
        protocol.makeConnection(SocketTransport(its_socket))
        connection: Any = protocol.wrappedProtocol if is_tls else protocol
        connection.start_read_timeout()
        unsent = its_socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT)
        assert unsent == MAX_UNSENT
        protocol.connectionLost(Failure(ConnectionDone()))


class BusyReactor:
    """A reactor that is busy and writes no data."""

    def __init__(self) -> None:
        self.writers: set[object] = set()

    def addReader(self, _: object) -> None:
        """Ignore the reader."""

    def removeReader(self, _: object) -> None:
        """Ignore the reader."""

    def addWriter(self, writer: object) -> None:
        """Record a writer with data."""
        self.writers.add(writer)

    def removeWriter(self, writer: object) -> None:
        """Record that a writer has no more data."""
        self.writers.discard(writer)


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A server's socket and its client's."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for one in (ours, theirs):
            one.setblocking(False)
        yield ours, theirs


def connect(house: SmallHouse, ours: socket.socket, reactor: Any) -> Any:
    """Serve requests from a socket. Return the transport."""
    protocol: Any = house.site.buildProtocol(IPv4Address("TCP", "127.0.0.1", 40_000))
    transport: Any = Connection(ours, protocol, reactor)
    transport.getPeer = transport.getHost = lambda: IPv4Address("TCP", "127.0.0.1", 40_000)
    transport.setTcpNoDelay = lambda _: None
    transport.connected = True
    protocol.makeConnection(transport)
    return transport


def test_an_answer_goes_out_at_once(pair: tuple[socket.socket, socket.socket]) -> None:
    """A complete response is in the kernel at once, even if the reactor is busy."""
    ours, theirs = pair
    house, reactor = SmallHouse(), BusyReactor()
    transport = connect(house, ours, reactor)
    transport.protocol.dataReceived(request("/"))
    house.page.requests[0].write(b"the answer")
    assert reactor.writers == {transport}
    house.page.requests[0].finish()
    assert theirs.recv(10_000).endswith(b"the answer\r\n0\r\n\r\n")
    assert not reactor.writers
    transport.protocol.connectionLost(Failure(ConnectionDone()))


def test_a_response_to_a_disconnected_client(pair: tuple[socket.socket, socket.socket]) -> None:
    """If the client is gone, the reactor handles the failure of the write."""
    ours, theirs = pair
    house, reactor = SmallHouse(), BusyReactor()
    transport = connect(house, ours, reactor)
    transport.protocol.dataReceived(request("/"))
    theirs.close()
    house.page.requests[0].write(b"the answer")
    house.page.requests[0].finish()
    assert reactor.writers == {transport}
    assert isinstance(transport.doWrite(), ConnectionLost)
    transport.protocol.connectionLost(Failure(ConnectionDone()))


class Holders:
    """Small buffers, and the responses that were aborted to make room."""

    def __init__(self) -> None:
        self.room = ResponseBuffers(in_all=100, of_client=60)
        self.ended: list[str] = []

    def hold(self, size: int, client: str) -> Callable[[], None]:
        """Add a response with a separate body."""
        return self.hold_these(bytes(bytearray(size)), client)

    def hold_these(self, body: bytes, client: str) -> Callable[[], None]:
        """Add a response with a given body."""
        return self.room.hold(body, client, lambda: self.ended.append(f"{client} {len(body)}"))


def test_the_same_bytes_are_held_once() -> None:
    """A body that several responses share counts once, until the last of them is read."""
    holders = Holders()
    room, body = holders.room, b"x" * 50
    endings = [holders.hold_these(body, client) for client in ("a", "a", "b")]
    assert room.size == 50
    assert room.make_room_for(body, "a")
    assert not room.make_room_for(b"y" * 11, "a")
    assert room.make_room_for(b"y" * 50, "c")
    assert not room.make_room_for(b"y" * 51, "c")
    for let_go in endings:
        assert room.size == 50
        let_go()
    assert room.size == 0
    assert not holders.ended


def test_one_answer_always_has_room() -> None:
    """A response larger than the maximum is sent if no other is buffered."""
    holders = Holders()
    assert holders.room.make_room_for(b"x" * 1_000, "a")
    let_go = holders.hold(10, "a")
    assert not holders.room.make_room_for(b"x" * 1_000, "a")
    assert not holders.room.make_room_for(b"x" * 1_000, "b")
    let_go()
    assert holders.room.make_room_for(b"x" * 1_000, "a")


def test_the_largest_client_makes_room() -> None:
    """The oldest responses of the client with the most memory are aborted for a smaller one."""
    holders = Holders()
    room = holders.room
    let_go = [holders.hold(size, client) for client, size in (("a", 20), ("a", 35), ("b", 40))]
    assert room.make_room_for(b"y" * 10, "c")
    assert (holders.ended, room.size) == (["a 20"], 75)
    assert not room.make_room_for(b"y" * 40, "c"), "it would be as large as the largest"
    assert not room.make_room_for(b"y" * 26, "a"), "he would be the largest himself"
    assert room.make_room_for(b"y" * 30, "c")
    assert (holders.ended, room.size) == (["a 20", "b 40"], 35)
    for one in let_go:
        one()
    assert room.size == 0
    assert room.make_room_for(b"y" * 60, "a")


def test_the_bytes_of_many_go_when_the_last_does() -> None:
    """If a shared body must make room, as many of its responses are aborted as necessary."""
    holders = Holders()
    body = b"x" * 60
    for client in ("a", "b", "b"):
        holders.hold_these(body, client)
    assert holders.room.make_room_for(b"y" * 50, "c")
    assert sorted(holders.ended) == ["a 60", "b 60", "b 60"]
    assert holders.room.size == 0
