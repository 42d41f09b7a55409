"""Requests that no honest client sends: each is answered, and no state is left behind."""

import pytest

from mailcheck.web.site.connections import IDLE_TIMEOUT, MAX_AHEAD
from tests.house import House
from tests.table import rows
from tests.web.raw_http import RawHttp, read_answer, request

pytestmark = pytest.mark.attack


TWO_CODINGS = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: %s\r\n\r\n0\r\n\r\n"


def key_header(house: House) -> str:
    """Return the header field with the application's key."""
    return f"X-API-Key: {house.key}"


@rows(
    "X-API-Key: \xff\xfe",
    "Authorization: Bearer \xc0\x80",
    "Authorization: \xff",
    "X-API-Key: " + "k" * 8_000,
    "Authorization: " + "Bearer " * 1_000,
)
def test_a_key_of_any_bytes_is_a_wrong_key(house: House, header: str) -> None:
    """Credentials that are not text get 401 like any wrong key, without a crash."""
    answer = RawHttp(house).ask("/api/v1/inbox", header)
    assert answer.status == 401


@rows(
    "Accept: \xff",
    "X-Forwarded-For: \xff, 1.2.3.4",
    "Cookie: \xff=\x01",
    "Content-Type: \xff",
    "Expect: \xff",
    "Connection: \xff",
    "Accept-Encoding: \xff",
)
def test_other_fields_of_any_bytes_change_nothing(house: House, header: str) -> None:
    """A header field that is not UTF-8 does not affect an otherwise good request."""
    answer = RawHttp(house).ask("/api/v1/inbox", key_header(house), header)
    assert answer.status == 200


@rows("", "..", "\xff", "a" * 300, "[::1", "a b", "-", "*.x", ":0", "xn--\x80", "\xe9.example")
def test_a_bad_host_does_not_matter(house: House, host: str) -> None:
    """A request with any Host is answered, because no route depends on it."""
    connection = RawHttp(house)
    head = f"GET /api/v1/inbox HTTP/1.1\r\nHost: {host}\r\n{key_header(house)}\r\n\r\n"
    connection.send(head.encode("latin-1"))
    assert connection.answers(("GET", "/api/v1/inbox"))[0].status == 200


@rows(
    "multipart/form-data",
    "multipart/form-data; boundary=x",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=\xff",
)
def test_a_form_is_not_parsed(house: House, content_type: str) -> None:
    """A broken form is answered like any other body, because forms are not parsed here."""
    path = "/api/v1/inbox/messages/none/share"
    answer = RawHttp(house).ask(
        path,
        key_header(house),
        f"Content-Type: {content_type}",
        "Content-Length: 5",
        method="POST",
        body=b"--x\xff&",
    )
    assert answer.status == 404


def test_methods_nobody_knows_get_405(house: House) -> None:
    """An unknown method gets 405, which names the methods of the path."""
    for method in ("FOO", "ge!#t", "TRACE", "CONNECT", "OPTIONS", "A" * 5_000):
        answer = RawHttp(house).ask("/api/v1/inbox", key_header(house), method=method)
        assert answer.status == 405
        assert answer.headers["allow"] == "GET, HEAD"


@rows(
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",  # a TLS handshake
    b"GET /api/v1/inbox\r\n\r\n",  # HTTP/0.9
    b"GET /api/v1/inbox HTTP/2.0\r\n\r\n",
    b"GET /api/v1/inbox HTTP/1.1\r\n\r\n",  # no Host
    b"GET / HTTP/1.1\r\nHost: a.example\r\nHost: a.example\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " + b"1" * 5_000 + b"\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " + b"1" * 5_000 + b"\r\nX: y\r\n\r\n",
    TWO_CODINGS % b"identity\r\nTransfer-Encoding: chunked",
    TWO_CODINGS % b"identity\r\nContent-Length: 3",
    TWO_CODINGS % b"chunked\r\nTransfer-Encoding: chunked",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET  /api/v1/inbox HTTP/1.1\r\n\r\n",
    b"GET /api/v1/in\xffbox HTTP/1.1\r\n\r\n",
    b"GET /\r\nGET / HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
    b"GET / HTTP/1.1\r\nX: a\x00b\r\n\r\n",
    b"GET / HTTP/1.1\r\nX: a\rX-Injected: b\r\n\r\n",
    b"GET / HTTP/1.1\r\nBad Name: b\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: 1e3\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\na",
    b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\na",
    b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nnot hexadecimal\r\n",
    b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\nx\r\n",
)
def test_what_is_no_request_is_refused_and_hung_up(house: House, data: bytes) -> None:
    """Malformed HTTP, and every known kind of request smuggling, ends the connection."""
    connection = RawHttp(house)
    connection.send(data)
    answer, rest = read_answer(connection.received(), "GET")
    assert answer.status == 400
    assert answer.headers["content-type"] == "application/json; charset=utf-8"
    assert answer.headers["connection"] == "close"
    assert list(answer.json) == ["error"]
    assert not rest
    assert connection.is_closed


@rows(
    ["X: " + "a" * 70_000],
    ["X: " + "a" * 1_000] * 20,
    ["X: a"] * 600,
    ["X: a", *[" continued" for _ in range(5_000)]],
)
def test_a_huge_header_section_ends_the_connection(house: House, lines: list[str]) -> None:
    """Too many or too long header fields end the connection before all of them are read."""
    connection = RawHttp(house)
    connection.send(request("/api/v1/inbox", key_header(house), *lines))
    assert connection.is_closed
    assert read_answer(connection.received(), "GET")[0].status == 400


def test_a_very_long_query_is_answered_or_hung_up(house: House) -> None:
    """The longest query is read in a moment, and a longer one ends the connection."""
    pairs = "&".join(f"x{number}=%f0%9f%92%a9" for number in range(800))
    answer = RawHttp(house).ask(f"/api/v1/inbox?{pairs}", key_header(house))
    assert answer.status == 400
    connection = RawHttp(house)
    connection.send(request("/api/v1/inbox?tag=" + "a" * 20_000, key_header(house)))
    assert connection.is_closed


def test_pipelined_requests_are_answered_in_order(house: House) -> None:
    """Pipelined requests, even with a wait among them, are answered in order."""
    connection = RawHttp(house)
    key = key_header(house)
    wait = "/api/v1/inbox/wait?timeout=5"
    connection.send(
        request("/api/v1/inbox", key)
        + request(wait, key)
        + request("/api/v1/inbox/address", key)
        + request("/nowhere")
    )
    connection.answers(("GET", "/api/v1/inbox"))
    house.pass_time(5)
    answers = connection.answers(
        ("GET", "/api/v1/inbox"),
        ("GET", wait),
        ("GET", "/api/v1/inbox/address"),
        ("GET", "/nowhere"),
    )
    assert [answer.status for answer in answers] == [200, 408, 200, 404]


def test_a_flood_behind_a_parked_wait_is_not_kept(house: House) -> None:
    """Data that a client sends while its wait is parked is not read: memory stays limited."""
    connection = RawHttp(house)
    connection.send(request("/api/v1/inbox/wait", key_header(house)))
    flood = request("/api/v1/inbox") * 50_000
    connection.send(flood)
    assert connection.held > len(flood) - 200_000
    connection.hang_up()
    assert house.assembly.mail.feeds.count() == 0


def test_a_silent_connection_is_closed(house: House) -> None:
    """A connection that sends no data, or half a request, is closed after the idle timeout."""
    connections = [RawHttp(house) for _ in range(3)]
    connections[1].send(b"GET /api/v1/inbox HTTP/1.1\r\nX-")
    connections[2].send(request("/api/v1/inbox", "Content-Length: 10", method="POST") + b"12345")
    house.pass_time(IDLE_TIMEOUT - 1)
    for connection in connections:
        connection.send(b"")
        assert not connection.is_closed
    house.pass_time(1)
    for connection in connections:
        connection.send(b"")
        assert connection.is_closed
        assert connection.received() == b""
    assert not house.clock.getDelayedCalls()


def test_a_slow_client_is_answered_and_holds_nobody_up(house: House) -> None:
    """A request that arrives byte by byte is answered at its end, and other clients at once."""
    slow = RawHttp(house)
    head = request("/api/v1/inbox", key_header(house))
    house.pass_time(IDLE_TIMEOUT - 1)
    for number in range(len(head)):
        slow.send(head[number : number + 1])
        house.pass_time((IDLE_TIMEOUT - 1) / len(head))
        if number % 20 == 0:
            assert RawHttp(house).ask("/api/v1/inbox", key_header(house)).status == 200
    assert slow.answers(("GET", "/api/v1/inbox"))[0].status == 200


@rows(
    (b"GET /api/v1/inbox HTTP/1.1\r\n", b"X: y\r\n"),
    (b"GET /api/v1/inbox HTTP/1.1\r\nX-", b"a"),
    (b"POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n", b"{"),
    (b"POST /mcp HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n{\r\n"),
)
def test_a_request_that_trickles_in_has_its_time(house: House, head: bytes, trickle: bytes) -> None:
    """A client that sends a request too slowly times out like one that sends no data."""
    connection = RawHttp(house)
    connection.send(head)
    for _ in range(IDLE_TIMEOUT - 1):
        house.pass_time(1)
        connection.send(trickle)
        assert not connection.is_closed
    house.pass_time(1)
    connection.send(trickle)
    assert connection.is_closed
    assert connection.received() == b""
    assert not house.clock.getDelayedCalls()


def test_each_request_has_its_own_time(house: House) -> None:
    """Pauses and slow requests do not add up: each request has a separate timeout."""
    connection = RawHttp(house)
    head = request("/healthz")
    for _ in range(3):
        house.pass_time(IDLE_TIMEOUT - 1)
        connection.send(head[:9])
        house.pass_time(IDLE_TIMEOUT - 1)
        connection.send(head[9:])
    answers = connection.answers(*[("GET", "/healthz")] * 3)
    assert [answer.status for answer in answers] == [200] * 3


def test_http_1_0_is_answered_and_closed(house: House) -> None:
    """A client of HTTP/1.0, or one with ``Connection: close``, gets its response and the end."""
    for head in (
        b"GET /healthz HTTP/1.0\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    ):
        connection = RawHttp(house)
        connection.send(head)
        assert connection.answers(("GET", "/healthz"))[0].status == 200
        assert connection.is_closed


def test_a_parked_wait_is_not_idle(house: House) -> None:
    """A wait of 60 s and the pause before the next request do not add up to an idle connection."""
    connection = RawHttp(house)
    path = "/api/v1/inbox/wait?timeout=60"
    for _ in range(3):
        connection.send(request(path, key_header(house)))
        house.pass_time(60)
        house.pass_time(IDLE_TIMEOUT - 1)
    answers = connection.answers(*[("GET", path)] * 3)
    assert [answer.status for answer in answers] == [408] * 3
    assert not connection.is_closed
    connection.hang_up()
    assert not house.clock.getDelayedCalls()


def test_a_client_that_comes_and_goes_leaves_nothing(house: House) -> None:
    """Waits of clients that disconnect at any point leave no waiter, timer or logged failure."""
    head = request("/api/v1/inbox/wait?timeout=60", key_header(house))
    for length in (0, 10, len(head) - 1, len(head)):
        connection = RawHttp(house)
        connection.send(head[:length])
        connection.hang_up()
    assert house.assembly.mail.feeds.count() == 0
    assert not house.clock.getDelayedCalls()


def test_packets_of_one_byte_while_a_request_is_answered(house: House) -> None:
    """Bytes after a wait are read up to a limit, and their request is answered after the wait."""
    connection = RawHttp(house)
    connection.send(request("/api/v1/inbox/wait?timeout=1", key_header(house)))
    behind = request("/healthz", "X: " + "x" * 10_000)
    for number, byte in enumerate(behind, 1):
        connection.send(bytes([byte]))
        assert connection.is_reading == (number <= MAX_AHEAD)
    house.pass_time(1)
    answers = connection.answers(("GET", "/api/v1/inbox/wait"), ("GET", "/healthz"))
    assert [answer.status for answer in answers] == [408, 200]


def test_no_answer_names_a_version(house: House) -> None:
    """No response names the version of the server."""
    for path in ("/healthz", "/api/v1/inbox", "/nowhere", "/"):
        sent = request(path)
        connection = RawHttp(house)
        connection.send(sent)
        assert b"\r\nServer: mailcheck\r\n" in connection.received()
    star = RawHttp(house)
    star.send(request("*", method="OPTIONS"))
    assert b"\r\nServer: mailcheck\r\n" in star.received()
