"""Checking the links of mails: requests, redirects, and addresses that are never dialled."""

from collections.abc import Iterator
from typing import Any

import pytest
from twisted.internet.error import ConnectionLost

from mailcheck.checks.link_checks import MAX_REDIRECTS, Hop, LinkAnswer, LinkProblem
from mailcheck.checks.press_unsubscribe import MAX_PAGE, PressAnswer
from mailcheck.cluster.local import LocalMemory
from mailcheck.probes.link_prober import AT_ONCE, SECONDS, GuardedLinkProber, write_ascii
from mailcheck.probes.trust import TrustRoots
from tests.probes.scripted_hosts import (
    AcceptedConnection,
    ScriptedWeb,
    collect,
)
from tests.table import rows

URL = "http://web.example/a?b=1"


class Looking(ScriptedWeb):
    """A prober, and servers that the test scripts."""

    def __init__(self) -> None:
        super().__init__()
        memory = LocalMemory(self.hosts)
        self.prober = GuardedLinkProber(self.hosts, self.dialer, TrustRoots(()), memory)

    def look(self, url: str = URL, method: str = "HEAD") -> None:
        """Begin to check a link."""
        self.results = collect(self.prober.probe_link(url, method))

    def reply(self, text: bytes) -> AcceptedConnection:
        """Accept the newest connection, and answer on it."""
        connection = self.hosts.accept()
        connection.send(b"HTTP/1.1 " + text + b"\r\n\r\n")
        return connection

    def problem(self) -> LinkProblem | None:
        """The problem, or ``None``."""
        return self.answer.problem

    @property
    def answer(self) -> LinkAnswer:
        """The result."""
        assert self.results, "the check is still running"
        assert isinstance(self.results[0], LinkAnswer), self.results[0]
        return self.results[0]


@pytest.fixture
def looking() -> Iterator[Looking]:
    """A prober that leaves no connection behind."""
    looking = Looking()
    yield looking
    assert looking.hosts.getDelayedCalls() == []


@rows("HEAD", "GET")
def test_a_status_is_all_that_is_read(looking: Looking, method: str) -> None:
    """One request is sent, and the connection is closed where a body would begin."""
    looking.look(method=method)
    connection = looking.hosts.accept()
    request = connection.take().lower()
    assert request.startswith(method.lower().encode() + b" /a?b=1 http/1.1\r\n")
    assert b"user-agent: mailcheck\r\n" in request
    assert b"cookie" not in request
    assert b"referer" not in request
    connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    assert looking.answer == LinkAnswer(URL, method, (Hop(URL, 200),))
    assert connection.transport.aborted


def test_redirects_are_followed_hop_by_hop(looking: Looking) -> None:
    """Each redirect is a request to the named host, and all of them are in the result."""
    looking.look()
    looking.reply(b"302 Found\r\nLocation: //other.example/x\r\nSet-Cookie: a=b")
    connection = looking.hosts.accept()
    request = connection.take().lower()
    assert b"head /x http/1.1" in request
    assert b"cookie" not in request
    connection.send(b"HTTP/1.1 404 Gone\r\n\r\n")
    assert looking.answer.hops == (Hop(URL, 302), Hop("http://other.example/x", 404))
    assert looking.hosts.dialled == [("8.8.8.8", 80), ("8.8.4.4", 80)]


@pytest.mark.parametrize(
    "location",
    [
        *("http://inside.example/", "http://127.0.0.1/", "http://[::1]:8025/", "http://10.1.2.3/"),
        *("http://169.254.169.254/latest/meta-data/", "http://[::ffff:10.0.0.1]/"),
    ],
)
def test_no_redirect_leads_inside(looking: Looking, location: str) -> None:
    """An address that is not public is not dialled, whatever the first URL was."""
    looking.look()
    looking.reply(b"301 Moved\r\nLocation: " + location.encode())
    assert looking.problem() is LinkProblem.NOT_PUBLIC
    assert looking.answer.hops == (Hop(URL, 301),)
    assert looking.hosts.dialled == [("8.8.8.8", 80)]


def test_a_name_is_looked_up_once_for_a_hop(looking: Looking) -> None:
    """The checked address is dialled; the name of the next redirect is resolved again."""
    looking.look()
    looking.zone.publish("web.example.", "A", "127.0.0.1")
    looking.reply(b"302 Found\r\nLocation: /again")
    assert looking.problem() is LinkProblem.NOT_PUBLIC
    assert looking.hosts.dialled == [("8.8.8.8", 80)]


def test_a_redirect_to_no_web_address_ends_there(looking: Looking) -> None:
    """Redirects to other schemes are not followed."""
    for location in (b"file:///etc/passwd", b"gopher://web.example/", b"http://u:p@web.example/"):
        looking.look(f"{URL}&{len(location)}")
        looking.reply(b"302 Found\r\nLocation: " + location)
        assert looking.problem() is LinkProblem.BAD_REDIRECT
    assert {host for host, _ in looking.hosts.dialled} == {"8.8.8.8"}


def test_circles_end(looking: Looking) -> None:
    """A circle of links ends after ten redirects."""
    looking.look()
    for _ in range(MAX_REDIRECTS + 1):
        looking.reply(b"302 Found\r\nLocation: /a?b=1")
    assert looking.problem() is LinkProblem.TOO_MANY_REDIRECTS
    assert len(looking.answer.hops) == MAX_REDIRECTS + 1


@rows(
    ("http://inside.example/", LinkProblem.NOT_PUBLIC),
    ("http://nowhere.example/", LinkProblem.NO_HOST),
    ("http://silent.example/", LinkProblem.SILENT),
    ("http://user:secret@web.example/", LinkProblem.BAD_URL),
    ("http://web.example:0/", LinkProblem.BAD_URL),
    ("http://web.example:99999/", LinkProblem.BAD_URL),
    ("http://[::1/", LinkProblem.BAD_URL),
    ("http://web.example/" + "a" * 9_000, LinkProblem.BAD_URL),
    ("https://web.example/", LinkProblem.NO_AUTHORITIES),
)
def test_what_is_not_asked(looking: Looking, url: str, problem: LinkProblem) -> None:
    """A link whose host is missing, not public or not readable gets no packet."""
    looking.look(url)
    assert looking.answer == LinkAnswer(url, "HEAD", (), problem)
    assert looking.hosts.dialled == []


def test_hosts_that_do_not_speak_http(looking: Looking) -> None:
    """Refusing, disconnecting, flooding and other protocols are distinct problems."""
    looking.look("http://web.example/1")
    looking.hosts.refuse()
    assert looking.problem() is LinkProblem.NO_CONNECTION
    looking.look("http://web.example/2")
    looking.hosts.accept().send(b"SSH-2.0-OpenSSH_9.2\r\n")
    assert looking.problem() is LinkProblem.NO_HTTP
    looking.look("http://web.example/3")
    looking.hosts.accept().hang_up(ConnectionLost())
    assert looking.problem() is LinkProblem.NO_HTTP
    looking.look("http://web.example/4")
    connection = looking.hosts.accept()
    connection.send(b"HTTP/1.1 200 OK\r\n")
    for _ in range(70):
        connection.send(b"X-Flood: " + b"x" * 1_000 + b"\r\n")
    assert connection.transport.aborted
    connection.hang_up(ConnectionLost())
    assert looking.problem() is LinkProblem.NO_HTTP


def test_a_host_that_says_nothing_is_given_up(looking: Looking) -> None:
    """All redirects together have nine seconds, and the result has those before."""
    looking.look()
    looking.reply(b"302 Found\r\nLocation: /slow")
    connection = looking.hosts.accept()
    looking.hosts.advance(SECONDS - 0.1)
    assert not looking.results
    looking.hosts.advance(0.2)
    assert looking.answer == LinkAnswer(URL, "HEAD", (Hop(URL, 302),), LinkProblem.SILENT)
    assert connection.transport.aborted


def test_a_link_is_asked_for_once_in_a_minute(looking: Looking) -> None:
    """A link is requested once a minute; later callers get the same result, separately for GET."""
    looking.look()
    looking.reply(b"200 OK")
    looking.look()
    assert looking.answer.hops == (Hop(URL, 200),)
    looking.look(method="GET")
    looking.reply(b"500 Oops")
    assert looking.answer.hops == (Hop(URL, 500),)
    assert len(looking.hosts.dialled) == 2
    looking.hosts.advance(61)
    looking.look()
    looking.reply(b"404 Gone")
    assert looking.answer.hops == (Hop(URL, 404),)


@rows(
    ("HTTP://Web.Example", "http://web.example/"),
    ("http://web.example/a b#top", "http://web.example/a%20b"),
    (
        "http://b\u00fccher.example/\u00fc?q=\u00fc",
        "http://xn--bcher-kva.example/%C3%BC?q=%C3%BC",
    ),
    ("http://web.example/%C3%BC?a=%20&b", "http://web.example/%C3%BC?a=%20&b"),
    ("http://[2001:db8::1]:8080/", "http://[2001:db8::1]:8080/"),
    ("http://web.example/\r\nHost: x", "http://web.example/Host:%20x"),
)
def test_urls_are_written_in_ascii(url: str, written: str) -> None:
    """A URL in any script is sent as browsers send it, without its fragment and on one line."""
    assert write_ascii(url) == written


# One-click unsubscribe.


def press(looking: Looking, url: str = URL) -> list[Any]:
    """Begin to send the request."""
    return collect(looking.prober.press_unsubscribe(url))


def test_the_request_is_that_of_a_mailbox_provider(looking: Looking) -> None:
    """One POST with the form of RFC 8058 is sent, without cookies, and no redirect is followed."""
    pressed = press(looking)
    connection = looking.hosts.accept()
    head, _, body = connection.take().partition(b"\r\n\r\n")
    assert head.startswith(b"POST /a?b=1 HTTP/1.1\r\n")
    assert b"content-type: application/x-www-form-urlencoded" in head.lower()
    assert body == b"List-Unsubscribe=One-Click"
    for name in (b"cookie", b"referer", b"authorization", b"origin"):
        assert name not in head.lower()
    connection.send(
        b"HTTP/1.1 302 Found\r\nLocation: http://inside.example/\r\nContent-Length: 0\r\n\r\n"
    )
    assert pressed == [PressAnswer(URL, 302, "http://inside.example/")]
    assert looking.hosts.dialled == [("8.8.8.8", 80)]


def test_the_beginning_of_the_page_is_read(looking: Looking) -> None:
    """A page is read up to a limit, pictures are not kept, and a slow page is what has arrived."""
    pressed = press(looking)
    page = b"x" * (MAX_PAGE + 1_000)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
    looking.hosts.accept().send(head + b"Content-Length: 1000000\r\n\r\n" + page)
    assert pressed == [PressAnswer(URL, 200, page="x" * MAX_PAGE)]
    pressed = press(looking)
    picture = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 1\r\n\r\nx"
    looking.hosts.accept().send(picture)
    assert pressed == [PressAnswer(URL, 200)]
    pressed = press(looking)
    looking.hosts.accept().send(head + b"Content-Length: 100\r\n\r\nslow")
    looking.hosts.advance(SECONDS)
    assert pressed == [PressAnswer(URL, 200, page="slow")]


@rows(
    ("http://inside.example/", LinkProblem.NOT_PUBLIC),
    ("http://nowhere.example/", LinkProblem.NO_HOST),
    ("http://127.0.0.1:8025/", LinkProblem.NOT_PUBLIC),
    ("https://user:secret@web.example/", LinkProblem.BAD_URL),
    ("https://web.example:99999/", LinkProblem.BAD_URL),
    ("https://[::1/", LinkProblem.BAD_URL),
    ("https://web.example/" + "a" * 9_000, LinkProblem.BAD_URL),
    ("https://web.example/", LinkProblem.NO_AUTHORITIES),
)
def test_no_request_leads_inside(looking: Looking, url: str, problem: LinkProblem) -> None:
    """An address that is not public or not valid is not dialled."""
    assert press(looking, url) == [PressAnswer(url, problem=problem)]
    assert looking.hosts.dialled == []


def test_each_press_is_a_request(looking: Looking) -> None:
    """Answers are not cached, and a silent or broken server is a problem."""
    for _ in range(2):
        pressed = press(looking)
        looking.reply(b"204 No Content")
        assert pressed == [PressAnswer(URL, 204)]
    pressed = press(looking)
    looking.hosts.advance(SECONDS)
    assert pressed == [PressAnswer(URL, problem=LinkProblem.SILENT)]
    pressed = press(looking)
    looking.hosts.refuse()
    assert pressed == [PressAnswer(URL, problem=LinkProblem.NO_CONNECTION)]


def test_requests_at_once_are_limited(looking: Looking) -> None:
    """Beyond the maximum, a request is not sent; stopping cancels the running ones."""
    running = [press(looking) for _ in range(AT_ONCE)]
    assert press(looking) == [PressAnswer(URL, problem=LinkProblem.BUSY)]
    looking.prober.stop()
    assert all(len(one) == 1 for one in running)
