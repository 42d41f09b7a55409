"""The client for rspamd, with a server that the test scripts."""

import pytest

from mailcheck.checks.deliverability.content_filter import (
    FilterProblem,
    FilterUnavailable,
    FilterVerdict,
)
from mailcheck.probes.rspamd_client import ANSWER_SECONDS, MAX_ANSWER, RspamdClient
from mailcheck.probes.spamd_address import parse_rspamd_url
from mailcheck.probes.spamd_filter import ConfiguredFilter, FilterLimits, QueuedFilter
from mailcheck.probes.trust import TrustRoots
from mailcheck.workers.scheduling import DirectWorker
from tests.probes.scripted_hosts import ScriptedHosts, collect
from tests.table import rows

MAIL = b"Return-Path: <>\r\nSubject: lunch\r\n\r\nAt noon?\r\n"
CLEAN = b'{"score": 0.5, "required_score": 15.0, "action": "no action", "symbols": {}}'


class ScriptedRspamd:
    """A content filter whose rspamd the test scripts."""

    def __init__(self, password: str = "") -> None:
        self.hosts = ScriptedHosts()
        client = RspamdClient(
            self.hosts, "http://127.0.0.1:11333", password, 6.0, lambda: TrustRoots(())
        )
        finder = ConfiguredFilter(client, "rspamd")
        self.content_filter = QueuedFilter(
            finder, self.hosts, DirectWorker(), FilterLimits(), "rspamd"
        )
        self.results = collect(self.content_filter.judge(MAIL))

    def answer(self, body: bytes = CLEAN, status: str = "200 OK") -> bytes:
        """Answer the newest request; return it."""
        connection = self.hosts.accept()
        request = connection.take()
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        connection.send(head.encode() + body)
        return request

    @property
    def problem(self) -> FilterProblem:
        """The reason why there is no verdict."""
        (outcome,) = self.results
        assert isinstance(outcome, FilterUnavailable)
        assert "rspamd" in outcome.reason
        return outcome.problem


def test_a_verdict() -> None:
    """The mail is the body of the request, and no header names the client."""
    rspamd = ScriptedRspamd()
    request = rspamd.answer()
    head, _, body = request.partition(b"\r\n\r\n")
    names = {line.partition(b":")[0].lower() for line in head.split(b"\r\n")[1:]}
    assert head.startswith(b"POST /checkv2 HTTP/1.1\r\n")
    assert body == MAIL
    assert names == {b"host", b"content-length", b"content-type", b"user-agent", b"connection"}
    (verdict,) = rspamd.results
    assert verdict == FilterVerdict(0.5, 6.0, False, (), "rspamd")
    assert rspamd.content_filter.outcomes.counts == {("judged",): 1}


def test_a_password() -> None:
    """A password is sent as rspamd's own client does."""
    assert b"\r\nPassword: secret\r\n" in ScriptedRspamd("secret").answer()


@rows(
    ("401 Unauthorized", FilterProblem.BROKEN_ANSWER),
    ("404 Not Found", FilterProblem.BROKEN_ANSWER),
    ("500 Internal error", FilterProblem.BROKEN_ANSWER),
    ("503 Busy", FilterProblem.BUSY),
    ("429 Too many", FilterProblem.BUSY),
)
def test_another_status(status: str, problem: FilterProblem) -> None:
    """An error of rspamd is not a verdict."""
    rspamd = ScriptedRspamd()
    rspamd.answer(CLEAN, status)
    assert rspamd.problem is problem
    assert rspamd.content_filter.outcomes.counts == {(problem.value,): 1}


@rows(b"", b"pong\r\n", b"x" * (MAX_ANSWER + 1))
def test_an_invalid_answer(body: bytes) -> None:
    """An answer that is not rspamd's, or is too large, is not a verdict."""
    rspamd = ScriptedRspamd()
    rspamd.answer(body)
    assert rspamd.problem is FilterProblem.BROKEN_ANSWER


def test_an_exempt_mail() -> None:
    """A mail that rspamd does not judge is not clean."""
    rspamd = ScriptedRspamd()
    rspamd.answer(b'{"is_skipped": true, "score": 0, "action": "no action"}')
    assert rspamd.problem is FilterProblem.SKIPPED


@rows(b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{")
def test_a_silent_server(said: bytes) -> None:
    """A server that does not finish its answer is given up in time."""
    rspamd = ScriptedRspamd()
    connection = rspamd.hosts.accept()
    connection.send(said)
    rspamd.hosts.pump([1.0] * (round(ANSWER_SECONDS) + 1))
    assert rspamd.problem is FilterProblem.TIMEOUT


def test_a_restart() -> None:
    """A connection that is closed without an answer is tried a second time."""
    rspamd = ScriptedRspamd()
    rspamd.hosts.accept().hang_up()
    rspamd.hosts.pump([0.5] * 4)
    rspamd.answer()
    assert isinstance(rspamd.results[0], FilterVerdict)


def test_no_server() -> None:
    """A server that refuses connections twice is unreachable."""
    rspamd = ScriptedRspamd()
    rspamd.hosts.refuse()
    rspamd.hosts.pump([0.5] * 4)
    rspamd.hosts.refuse()
    rspamd.hosts.pump([0.1])
    assert rspamd.problem is FilterProblem.UNREACHABLE


@rows(
    ("http://127.0.0.1:11333", "http://127.0.0.1:11333"),
    ("http://rspamd:11333/", "http://rspamd:11333"),
    ("https://filter.example/rspamd/", "https://filter.example/rspamd"),
    ("http://[::1]:11333", "http://[::1]:11333"),
)
def test_urls(text: str, url: str) -> None:
    """A URL may have a path."""
    assert parse_rspamd_url(text) == url


@rows(
    "127.0.0.1:11333",
    "ftp://a",
    "http://",
    "http://a:b@c",
    "http://a?b",
    "http://a#b",
    "http://a b",
    "http://a:0",
    "http://a:99999",
    "http://\u00e4",
    "unix:/run/rspamd.sock",
)
def test_other_urls(text: str) -> None:
    """Anything else is rejected."""
    with pytest.raises(ValueError, match="must be a URL like"):
        parse_rspamd_url(text)
