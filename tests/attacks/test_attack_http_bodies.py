"""Bodies without end: answered properly up to a point, never kept, then hung up."""

import tracemalloc

import pytest

from mailcheck.web.site.request_bodies import MAX_BODY, MAX_DRAINED
from tests.house import House
from tests.web.raw_http import RawHttp, request

pytestmark = pytest.mark.attack

MIB = 1024 * 1024

PATH = "/api/v1/inbox/messages/none/share"


def head(house: House, *headers: str) -> bytes:
    """Write the head of a POST."""
    return request(PATH, f"X-API-Key: {house.key}", *headers, method="POST")


def chunk(data: bytes) -> bytes:
    """Write a chunk of a body without a known length."""
    return b"%x\r\n%s\r\n" % (len(data), data)


@pytest.mark.parametrize("size", [0, 1, MAX_BODY])
def test_a_body_within_the_limit_is_taken(house: House, size: int) -> None:
    """A body of up to 64 KiB gets the answer of its route, with and without Content-Length."""
    known = RawHttp(house)
    known.send(head(house, f"Content-Length: {size}") + b"x" * size)
    assert known.answers(("POST", PATH))[0].status == 404
    unknown = RawHttp(house)
    unknown.send(head(house, "Transfer-Encoding: chunked"))
    for _ in range(size // 1024):
        unknown.send(chunk(b"x" * 1024))
    unknown.send(b"0\r\n\r\n")
    assert unknown.answers(("POST", PATH))[0].status == 404


def test_a_body_too_large_gets_413(house: House) -> None:
    """A body over the limit is read to its end and answered with 413 that says the limit."""
    known = RawHttp(house)
    known.send(head(house, f"Content-Length: {MAX_BODY + 1}") + b"x" * (MAX_BODY + 1))
    unknown = RawHttp(house)
    unknown.send(head(house, "Transfer-Encoding: chunked") + chunk(b"x" * (MAX_BODY + 1)))
    unknown.send(b"0\r\n\r\n")
    for connection in (known, unknown):
        answer = connection.answers(("POST", PATH))[0]
        assert answer.status == 413
        assert str(MAX_BODY) in answer.json["error"]
        assert not connection.is_closed


def test_413_comes_after_the_gate(house: House) -> None:
    """Who has no key learns nothing but that, and a large body counts as one request."""
    body = b"x" * (MAX_BODY + 1)
    answer = RawHttp(house).ask(PATH, f"Content-Length: {len(body)}", method="POST", body=body)
    assert answer.status == 401


def test_the_next_request_after_413_is_answered(house: House) -> None:
    """A body that was too large does not spill into the request behind it."""
    connection = RawHttp(house)
    smuggled = request("/api/v1/inbox", f"X-API-Key: {house.key}") * 1_000
    connection.send(head(house, f"Content-Length: {len(smuggled)}") + smuggled)
    connection.send(request("/healthz"))
    answers = connection.answers(("POST", PATH), ("GET", "/healthz"))
    assert [answer.status for answer in answers] == [413, 200]


@pytest.mark.parametrize(
    "headers", [["Content-Length: 100000000000"], ["Transfer-Encoding: chunked"]]
)
def test_an_endless_body_is_hung_up_and_never_kept(house: House, headers: list[str]) -> None:
    """A body without end costs no memory and ends after 16 MiB."""
    connection = RawHttp(house)
    connection.send(head(house, *headers))
    part = b"x" * 65_000
    part = chunk(part) if "chunked" in headers[0] else part
    tracemalloc.start()
    try:
        sent = 0
        while not connection.is_closed:
            connection.send(part)
            sent += len(part)
            assert sent < 2 * MAX_DRAINED
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sent > MAX_DRAINED
    assert peak < MIB
    assert connection.received() == b""


def test_a_chunk_without_end_is_not_kept(house: House) -> None:
    """One chunk that claims to be enormous, chunk extensions and trailers are bounded too."""
    for data in (
        b"fffffffffffffff\r\n" + b"x" * (20 * MIB),
        b"1;" + b"e" * MIB + b"\r\n",
        b"1" * MIB,
        b"0\r\n" + b"Trailer: x\r\n" * 100_000,
    ):
        connection = RawHttp(house)
        connection.send(head(house, "Transfer-Encoding: chunked"))
        connection.send(data)
        assert connection.is_closed


def test_expect_continue_is_answered(house: House) -> None:
    """A client that asks before it sends its body is told to go on, and gets its answer."""
    connection = RawHttp(house)
    connection.send(head(house, "Expect: 100-continue", "Content-Length: 2"))
    assert connection.received() == b"HTTP/1.1 100 Continue\r\n\r\n"
    connection.send(b"{}")
    assert connection.answers(("POST", PATH))[0].status == 404


def test_a_body_on_a_get_is_ignored(house: House) -> None:
    """A GET with a body is answered as without."""
    connection = RawHttp(house)
    connection.send(
        request("/api/v1/inbox", f"X-API-Key: {house.key}", "Content-Length: 3") + b"abc"
    )
    assert connection.answers(("GET", "/api/v1/inbox"))[0].status == 200


def test_a_large_body_is_refused_on_open_pages_too(house: House) -> None:
    """The limit holds on every door."""
    connection = RawHttp(house)
    connection.send(request("/healthz", "Content-Length: 99999999999"))
    for _ in range(20):
        connection.send(b"x" * MIB)
    assert connection.is_closed
