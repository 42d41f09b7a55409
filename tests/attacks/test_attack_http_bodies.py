"""Endless request bodies get a proper response at first, are never stored, and are then closed."""

import pytest
from twisted.internet.interfaces import ITCPTransport
from twisted.internet.testing import StringTransport
from zope.interface import implementer

from mailcheck.web.site.connections import IDLE_TIMEOUT
from mailcheck.web.site.requests import MAX_BODY
from tests.house import House
from tests.linear import memory_below
from tests.table import rows
from tests.web.raw_http import RawHttp, request

pytestmark = pytest.mark.attack

MIB = 1024 * 1024

PATH = "/api/v1/inbox/messages/none/share"


@implementer(ITCPTransport)
class HalfClosedTransport(StringTransport):
    """A TCP connection that can be closed for writing while it still reads."""

    is_half_closed = False

    def setTcpNoDelay(self, enabled: bool) -> None:
        """Ignore the call."""

    def getTcpNoDelay(self) -> bool:
        """Return whether Nagle's algorithm is off."""
        return True

    def setTcpKeepAlive(self, enabled: bool) -> None:
        """Ignore the call."""

    def getTcpKeepAlive(self) -> bool:
        """Return whether keep-alive is on."""
        return False

    def loseWriteConnection(self) -> None:
        """Close the connection for writing."""
        self.is_half_closed = True


def head(house: House, *headers: str) -> bytes:
    """Return the head of a POST request."""
    return request(PATH, f"X-API-Key: {house.key}", *headers, method="POST")


def chunk(data: bytes) -> bytes:
    """Return a chunk of a body without a known length."""
    return b"%x\r\n%s\r\n" % (len(data), data)


@rows(0, 1, MAX_BODY)
def test_a_body_within_the_limit_is_taken(house: House, size: int) -> None:
    """A body of up to 64 KiB gets the response of its route, with and without Content-Length."""
    known = RawHttp(house)
    known.send(head(house, f"Content-Length: {size}") + b"x" * size)
    assert known.answers(("POST", PATH))[0].status == 404
    unknown = RawHttp(house)
    unknown.send(head(house, "Transfer-Encoding: chunked"))
    for _ in range(size // 1024):
        unknown.send(chunk(b"x" * 1024))
    unknown.send(b"0\r\n\r\n")
    assert unknown.answers(("POST", PATH))[0].status == 404


LENGTHS = [["Content-Length: 100000000000"], ["Transfer-Encoding: chunked"]]


@pytest.mark.parametrize("size", [MAX_BODY + 1, 32 * MIB])
@pytest.mark.parametrize("is_known", [True, False])
def test_a_body_too_large_gets_413(house: House, size: int, is_known: bool) -> None:
    """A larger body of any size is answered with 413, which names the limit."""
    connection = RawHttp(house, transport=HalfClosedTransport)
    connection.send(
        head(house, f"Content-Length: {size}" if is_known else "Transfer-Encoding: chunked")
    )
    for _ in range(size // MIB + 1):
        connection.send(b"x" * MIB if is_known else chunk(b"x" * MIB))
    answer = connection.answers(("POST", PATH))[0]
    assert answer.status == 413
    assert f"{MAX_BODY:,}" in answer.json["error"]
    assert answer.headers["connection"] == "close"


def test_413_comes_after_the_gate(house: House) -> None:
    """A client without a key gets 401 only, and a body that is too large counts as one request."""
    body = b"x" * (MAX_BODY + 1)
    answer = RawHttp(house).ask(PATH, f"Content-Length: {len(body)}", method="POST", body=body)
    assert answer.status == 401


def test_no_request_hides_in_a_body_too_large(house: House) -> None:
    """The data after the head of a request with a too large body is never parsed as a request."""
    smuggled = request("/api/v1/inbox", f"X-API-Key: {house.key}") * 1_000
    whole = head(house, f"Content-Length: {len(smuggled)}") + smuggled + request("/healthz")
    at_once = RawHttp(house, transport=HalfClosedTransport)
    at_once.send(whole)
    in_pieces = RawHttp(house, transport=HalfClosedTransport)
    for start in range(0, len(whole), 1_000):
        in_pieces.send(whole[start : start + 1_000])
    for connection in (at_once, in_pieces):
        assert connection.answers(("POST", PATH))[0].status == 413


@rows(*LENGTHS)
def test_an_endless_body_is_never_kept(house: House, headers: list[str]) -> None:
    """The rest of an endless body is dropped, and the connection is closed at the timeout."""
    connection = RawHttp(house, transport=HalfClosedTransport)
    connection.send(head(house, *headers))
    part = b"x" * 65_000
    part = chunk(part) if "chunked" in headers[0] else part
    with memory_below(MIB):
        for _ in range(300):
            connection.send(part)
    assert connection.transport.is_half_closed
    house.pass_time(IDLE_TIMEOUT - 1)
    assert connection.is_reading
    house.pass_time(1)
    assert connection.transport.disconnected


def test_a_chunk_without_end_is_not_kept(house: House) -> None:
    """A chunk that claims to be enormous, chunk extensions and trailers are limited too."""
    for data in (
        b"fffffffffffffff\r\n" + b"x" * (20 * MIB),
        b"1;" + b"e" * MIB + b"\r\n",
        b"1" * MIB,
        b"0\r\n" + b"Trailer: x\r\n" * 100_000,
    ):
        connection = RawHttp(house, transport=HalfClosedTransport)
        connection.send(head(house, "Transfer-Encoding: chunked"))
        connection.send(data)
        assert connection.transport.is_half_closed
        assert connection.received().startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 413 "))


def test_expect_continue_is_answered(house: House) -> None:
    """A client that asks before it sends its body gets 100 and then its response."""
    connection = RawHttp(house)
    connection.send(head(house, "Expect: 100-continue", "Content-Length: 2"))
    assert connection.received() == b"HTTP/1.1 100 Continue\r\n\r\n"
    connection.send(b"{}")
    assert connection.answers(("POST", PATH))[0].status == 404


@rows((MAX_BODY + 1, "", 413), (2, "Host: b\r\n", 400), (2, "Transfer-Encoding: chunked\r\n", 400))
def test_expect_continue_is_refused(house: House, length: int, extra: str, status: int) -> None:
    """Instead of 100, a client that announces too much gets 413, and an ambiguous head 400."""
    connection = RawHttp(house, transport=HalfClosedTransport)
    sent = head(house, "Expect: 100-continue", f"Content-Length: {length}")
    connection.send(sent.replace(b"\r\n\r\n", b"\r\n" + extra.encode() + b"\r\n"))
    assert connection.received().startswith(b"HTTP/1.1 %d " % status)


def test_a_body_on_a_get_is_ignored(house: House) -> None:
    """A GET with a body is answered like one without."""
    connection = RawHttp(house)
    connection.send(
        request("/api/v1/inbox", f"X-API-Key: {house.key}", "Content-Length: 3") + b"abc"
    )
    assert connection.answers(("GET", "/api/v1/inbox"))[0].status == 200


def test_a_large_body_is_not_read_on_open_pages(house: House) -> None:
    """The limit applies to the pages too."""
    connection = RawHttp(house, transport=HalfClosedTransport)
    connection.send(request("/healthz", "Content-Length: 99999999999"))
    for _ in range(20):
        connection.send(b"x" * MIB)
    assert connection.answers(("GET", "/healthz"))[0].status == 200
    assert connection.transport.is_half_closed
