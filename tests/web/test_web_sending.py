"""Answers on their way out: whatever is written comes whole, and what is held is counted."""

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

from mailcheck.core.client_limits import ConnectionLimits
from mailcheck.ops.journal import ClientJournal, Pace
from mailcheck.web.site.requests import CHUNK, ClientAddresses, ResponseBuffers
from mailcheck.web.site.server import IDLE_TIMEOUT, MAX_UNSENT, BoundedSite
from tests.web.raw_http import request
from tests.web.slow_reader import MOST_UNREAD, SlowReader

SIZES = st.sampled_from([0, 1, 100, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 200_000])


class Written(Resource):
    """Answers with what a test writes."""

    isLeaf = True

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[Request] = []

    def render(self, request: Request) -> int:
        """Leave the answer to the test."""
        self.requests.append(request)
        return NOT_DONE_YET


class SmallHouse:
    """A site with one page, and no more."""

    def __init__(self) -> None:
        self.page = Written()
        self.clock = Clock()
        limits = ConnectionLimits(100, 100)
        journal = ClientJournal(Pace())
        self.site = BoundedSite(self.page, limits, ClientAddresses([]), self.clock, journal)


def chunked(data: bytes) -> bytes:
    """Take a chunked body apart."""
    body = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        length = int(size, 16)
        body, data = body + data[:length], data[length + 2 :]
    return body


@given(writes=st.lists(SIZES, max_size=6), reads=st.lists(st.integers(1, 100_000), max_size=20))
def test_what_is_written_comes_whole_and_in_order(writes: list[int], reads: list[int]) -> None:
    """Large and small pieces, written at once and read by bits, arrive as they were written."""
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


def test_what_comes_behind_a_large_piece_waits_too() -> None:
    """A stream that goes on after a large event does not heap up, and lasts once it was read."""
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
    """HEAD is answered with the fields alone, also where the body would be large."""
    house = SmallHouse()
    client = SlowReader(house)
    client.send(request("/", method="HEAD"))
    (answer,) = house.page.requests
    answer.write(b"x" * 200_000)
    answer.finish()
    assert client.received().endswith(b"\r\n\r\n")


class SocketTransport(StringTransport):
    """A connection that has a socket."""

    def __init__(self, of_connection: socket.socket) -> None:
        super().__init__(peerAddress=IPv4Address("TCP", "127.0.0.1", 40_000))
        self._socket = of_connection

    def getHandle(self) -> socket.socket:
        """Give the socket."""
        return self._socket

    def setTcpNoDelay(self, enabled: bool) -> None:
        """Do nothing."""


@pytest.mark.skipif(not hasattr(socket, "TCP_NOTSENT_LOWAT"), reason="not known to this system")
@pytest.mark.parametrize("is_tls", [False, True])
def test_the_kernel_takes_little_of_a_large_answer(is_tls: bool) -> None:
    """It says soon that a client reads on, over TLS too; megabytes of its own would hide that."""
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
    """One that is at something else all the time: nothing is written for anybody."""

    def __init__(self) -> None:
        self.writers: set[object] = set()

    def addReader(self, _: object) -> None:
        """Have nobody read."""

    def removeReader(self, _: object) -> None:
        """Have nobody read."""

    def addWriter(self, writer: object) -> None:
        """Take note of who wants to write."""
        self.writers.add(writer)

    def removeWriter(self, writer: object) -> None:
        """Take note of who has written all."""
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
    """Serve what comes in over a socket; gives its transport."""
    protocol: Any = house.site.buildProtocol(IPv4Address("TCP", "127.0.0.1", 40_000))
    transport: Any = Connection(ours, protocol, reactor)
    transport.getPeer = transport.getHost = lambda: IPv4Address("TCP", "127.0.0.1", 40_000)
    transport.setTcpNoDelay = lambda _: None
    transport.connected = True
    protocol.makeConnection(transport)
    return transport


def test_an_answer_goes_out_at_once(pair: tuple[socket.socket, socket.socket]) -> None:
    """It is with the kernel when it has ended, whatever else the reactor is at."""
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


def test_an_answer_to_nobody(pair: tuple[socket.socket, socket.socket]) -> None:
    """Where the client has gone the failure is left to the reactor, which still watches."""
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
    """A small room, and the answers that had to make room in it."""

    def __init__(self) -> None:
        self.room = ResponseBuffers(in_all=100, of_client=60)
        self.ended: list[str] = []

    def hold(self, size: int, client: str) -> Callable[[], None]:
        """Hold an answer, of bytes of its own."""
        return self.hold_these(bytes(bytearray(size)), client)

    def hold_these(self, body: bytes, client: str) -> Callable[[], None]:
        """Hold an answer."""
        return self.room.hold(body, client, lambda: self.ended.append(f"{client} {len(body)}"))


def test_the_same_bytes_are_held_once() -> None:
    """An answer that many get counts once, until the last of them has read it."""
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
    """An answer larger than the bound goes out where nothing else is held."""
    holders = Holders()
    assert holders.room.make_room_for(b"x" * 1_000, "a")
    let_go = holders.hold(10, "a")
    assert not holders.room.make_room_for(b"x" * 1_000, "a")
    assert not holders.room.make_room_for(b"x" * 1_000, "b")
    let_go()
    assert holders.room.make_room_for(b"x" * 1_000, "a")


def test_who_holds_most_makes_room() -> None:
    """In a full room the oldest answers of who holds most go, for who would hold less."""
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
    """Where an answer to many has to make room, as many of them end as it takes."""
    holders = Holders()
    body = b"x" * 60
    for client in ("a", "b", "b"):
        holders.hold_these(body, client)
    assert holders.room.make_room_for(b"y" * 50, "c")
    assert sorted(holders.ended) == ["a 60", "b 60", "b 60"]
    assert holders.room.size == 0
