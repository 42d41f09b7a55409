"""Fetching over the guarded dialer: requests, responses, and rejected targets."""

from collections.abc import Callable

import pytest
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.error import ConnectionLost

from mailcheck.probes.fetching import (
    Fetched,
    FetchRequest,
    GuardedFetcher,
    check_url,
    follow_redirect,
)
from mailcheck.probes.guarded_dialer import FetchFailed, FetchProblem
from mailcheck.probes.trust import TrustRoots
from tests.probes.scripted_hosts import (
    AcceptedConnection,
    ScriptedWeb,
    collect,
)
from tests.table import rows


class Fetching(ScriptedWeb):
    """A fetcher, and servers that the test scripts."""

    def __init__(self) -> None:
        super().__init__()
        self._fetcher = GuardedFetcher(self.hosts, self.dialer, TrustRoots(()))

    def fetch(self, url: str = "http://web.example/file", redirects: int = 0) -> Deferred[Fetched]:
        """Begin to fetch at most 1,000 octets."""
        fetched = self._fetcher.fetch(
            FetchRequest(url, "text/plain", 1_000, max_redirects=redirects)
        )
        self.results = collect(fetched)
        return fetched

    def accept(self) -> AcceptedConnection:
        """Accept the newest connection."""
        return self.hosts.accept()

    @property
    def problem(self) -> FetchProblem | None:
        """The problem, or ``None``."""
        if not self.results:
            return None
        assert isinstance(self.results[0].value, FetchFailed), self.results[0]
        return self.results[0].value.problem

    def assert_over(self) -> None:
        """Check that no connection and no timer is left."""
        assert self.hosts.getDelayedCalls() == []


@pytest.fixture
def fetching() -> Fetching:
    """A fetcher."""
    return Fetching()


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


def test_a_resource_is_fetched(fetching: Fetching) -> None:
    """The request has host, path and accepted types, but no compression and no cookies."""
    fetching.fetch()
    connection = fetching.accept()
    request = connection.take().lower()
    assert request.startswith(b"get /file http/1.1\r\n")
    for header in (
        b"host: web.example",
        b"accept: text/plain",
        b"accept-encoding: identity",
        b"user-agent: mailcheck",
        b"connection: close",
    ):
        assert header + b"\r\n" in request
    assert b"cookie" not in request
    connection.send(OK)
    assert fetching.results == [Fetched(200, b"hello")]
    fetching.assert_over()


def test_a_body_that_ends_with_the_connection(fetching: Fetching) -> None:
    """A body may end with the connection."""
    fetching.fetch()
    connection = fetching.accept()
    connection.send(b"HTTP/1.0 200 OK\r\n\r\nhel")
    connection.send(b"lo")
    assert not fetching.results
    connection.hang_up()
    assert fetching.results == [Fetched(200, b"hello")]


@rows(201, 204, 400, 404, 429, 500, 503)
def test_other_statuses_are_results(fetching: Fetching, status: int) -> None:
    """Other statuses are results, and the body of an error is not read."""
    fetching.fetch()
    connection = fetching.accept()
    connection.send(b"HTTP/1.1 %d X\r\nRetry-After: 17\r\nContent-Length: 9\r\n\r\nsorry" % status)
    assert fetching.results == [Fetched(status, b"", 17)]
    assert connection.transport.aborted
    fetching.assert_over()


@rows(b"", b"soon", b"-1", b"9" * 30, b"Fri, 20 Nov 2026 10:00:00 GMT")
def test_only_plain_seconds_are_a_wait(fetching: Fetching, text: bytes) -> None:
    """A Retry-After that is not a small number is ignored."""
    fetching.fetch()
    fetching.accept().send(b"HTTP/1.1 429 X\r\nRetry-After: %s\r\n\r\n" % text)
    assert fetching.results == [Fetched(429)]


def test_a_redirect_is_not_followed_unasked(fetching: Fetching) -> None:
    """Without permitted redirects, a redirect is the result."""
    fetching.fetch()
    fetching.accept().send(b"HTTP/1.1 302 X\r\nLocation: http://other.example/\r\n\r\n")
    assert [result.is_redirect for result in fetching.results] == [True]
    assert len(fetching.hosts.dialled) == 1


def test_redirects_are_followed_hop_by_hop(fetching: Fetching) -> None:
    """Each redirect uses a new connection without data of the previous one."""
    fetching.fetch(redirects=2)
    fetching.accept().send(
        b"HTTP/1.1 301 X\r\nSet-Cookie: a=b\r\nLocation: http://other.example:81/x\r\n\r\n"
    )
    connection = fetching.accept()
    assert connection.take().startswith(b"GET /x HTTP/1.1\r\n")
    connection.send(b"HTTP/1.1 308 X\r\nSet-Cookie: c=d\r\nLocation: ../y\r\n\r\n")
    connection = fetching.accept()
    assert b"ookie" not in connection.transport.value()
    connection.send(OK)
    assert fetching.results == [Fetched(200, b"hello")]
    assert fetching.hosts.dialled == [("8.8.8.8", 80), ("8.8.4.4", 81), ("8.8.4.4", 81)]


def test_redirects_without_end(fetching: Fetching) -> None:
    """Redirects beyond the limit end the fetch."""
    fetching.fetch(redirects=2)
    for _ in range(3):
        assert not fetching.results
        fetching.accept().send(b"HTTP/1.1 302 X\r\nLocation: /again\r\n\r\n")
    assert fetching.problem is FetchProblem.BAD_REDIRECT
    assert len(fetching.hosts.dialled) == 3


@rows(
    ("http://nowhere.example/", FetchProblem.NO_HOST),
    ("http://inside.example/", FetchProblem.NO_HOST),
    ("http://127.0.0.1/", FetchProblem.NO_HOST),
    ("http://[::1]:8080/", FetchProblem.BAD_REDIRECT),
    ("http://silent.example/", FetchProblem.SILENT),
    ("https://web.example/", FetchProblem.SILENT),  # without authorities
    ("ftp://web.example/", FetchProblem.BAD_REDIRECT),
    ("http://web.example:99999/", FetchProblem.BAD_REDIRECT),
    ("http:///file", FetchProblem.BAD_REDIRECT),
)
def test_urls_that_lead_nowhere(fetching: Fetching, url: str, problem: FetchProblem) -> None:
    """A URL that may not be dialled is not dialled, and the reason is returned."""
    fetching.fetch(url)
    assert fetching.problem is problem
    assert fetching.hosts.dialled == []
    fetching.assert_over()


def test_a_server_that_refuses(fetching: Fetching) -> None:
    """A refused connection is a result about the host."""
    fetching.fetch()
    fetching.hosts.refuse()
    assert fetching.problem is FetchProblem.NO_CONNECTION
    fetching.assert_over()


def test_a_server_that_does_not_answer(fetching: Fetching) -> None:
    """A missing answer is undetermined, at the deadline."""
    fetching.fetch()
    fetching.hosts.advance(8.9)
    assert fetching.problem is None
    fetching.hosts.advance(0.2)
    assert fetching.problem is FetchProblem.SILENT
    fetching.assert_over()


def hang_up(connection: AcceptedConnection) -> None:
    """Close the connection."""
    connection.hang_up()


def break_down(connection: AcceptedConnection) -> None:
    """Reset the connection in the middle of the body."""
    connection.send(OK[:-2])
    connection.hang_up(ConnectionLost())


def speak(*pieces: bytes) -> Callable[[AcceptedConnection], None]:
    """Return a function that sends the pieces."""

    def say(connection: AcceptedConnection) -> None:
        for piece in pieces:
            connection.send(piece)

    return say


@rows(
    (hang_up, FetchProblem.NO_HTTP),
    (break_down, FetchProblem.NO_HTTP),
    (speak(b"SSH-2.0-OpenSSH_9.2\r\n"), FetchProblem.NO_HTTP),
    (speak(b"HTTP/1.1 abc OK\r\n\r\n"), FetchProblem.NO_HTTP),
    (
        speak(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b"),
        FetchProblem.NO_HTTP,
    ),
    (
        speak(b"HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n", b"x" * 1001),
        FetchProblem.TOO_LARGE,
    ),
)
def test_servers_that_misbehave(
    fetching: Fetching, behave: Callable[[AcceptedConnection], None], problem: FetchProblem
) -> None:
    """Anything but a response ends the fetch with a named problem."""
    fetching.fetch()
    connection = fetching.accept()
    behave(connection)
    assert fetching.problem is problem
    fetching.assert_over()


def test_giving_up_hangs_up(fetching: Fetching) -> None:
    """Cancelling aborts the connection, before and during the response."""
    for said in (b"", OK[:-1]):
        fetched = fetching.fetch()
        connection = fetching.accept()
        connection.send(said)
        fetched.cancel()
        assert fetching.results[0].check(CancelledError)
        assert connection.transport.aborted
        fetching.assert_over()


@rows(
    ("/x?y=z#part", "https://a.example/x?y=z#part"),
    ("//b.example/x", "https://b.example/x"),
    ("https://[2606:4700::1]:8443/", "https://[2606:4700::1]:8443/"),
    ("", "https://a.example/here"),
    ("http://a.example/", None),
    ("javascript:alert(1)", None),
    ("file:///etc/passwd", None),
    ("https://user:secret@b.example/", None),
    ("https://user@b.example/", None),
    ("https://b.example/a b", None),
    ("https://b.example/\r\nX: y", None),
    ("https://b.example/ü", None),
    ("https://b.example:0/", None),
    ("https://b.example:https/", None),
    ("https://[::1/", None),
    ("https://b.example/" + "x" * 3_000, None),
)
def test_where_a_redirect_leads(location: str, target: str | None) -> None:
    """Redirects are followed only to https URLs without passwords and other tricks."""
    if target is None:
        with pytest.raises(FetchFailed):
            follow_redirect("https://a.example/here", location)
    else:
        assert follow_redirect("https://a.example/here", location) == target
        assert check_url(target) == target
