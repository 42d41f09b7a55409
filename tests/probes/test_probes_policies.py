"""Fetching MTA-STS policies."""

from typing import Any

from twisted.internet.defer import CancelledError
from twisted.internet.task import Clock

from mailcheck.checks.hosts.mta_sts import FetchOutcome, PolicyFetch
from mailcheck.cluster.local import LocalMemory
from mailcheck.probes.fetching import Fetched, MtaStsFetcher
from mailcheck.probes.guarded_dialer import FetchProblem
from tests.fakes.scripted_fetcher import Page, ScriptedFetcher
from tests.probes.scripted_hosts import collect
from tests.table import rows

URL = "https://mta-sts.example.com/.well-known/mta-sts.txt"
POLICY = b"version: STSv1\r\nmode: enforce\r\nmx: mx.example.com\r\nmax_age: 604800\r\n"


class Fetching:
    """A fetcher of policies, and a web server."""

    def __init__(self, page: Page) -> None:
        self.clock = Clock()
        self.web = ScriptedFetcher({URL: page})
        web: Any = self.web
        self.fetcher = MtaStsFetcher(web, self.clock, LocalMemory(self.clock))

    def fetch(self) -> list[Any]:
        """Return a list that will contain the policy."""
        return collect(self.fetcher.fetch_policy("example.com"))


def test_a_policy_is_fetched_as_a_sender_does() -> None:
    """A policy is fetched from its one URL, without redirects, up to 64 KiB."""
    fetching = Fetching(POLICY)
    assert fetching.fetch() == [PolicyFetch(FetchOutcome.FETCHED, POLICY.decode())]
    (request,) = fetching.web.requests
    assert (request.url, request.max_redirects, request.max_octets) == (URL, 0, 65_536)


@rows(
    (Fetched(404), FetchOutcome.MISSING),
    (Fetched(500), FetchOutcome.MISSING),
    (Fetched(204), FetchOutcome.MISSING),
    (Fetched(301), FetchOutcome.REDIRECTED),
    (Fetched(308), FetchOutcome.REDIRECTED),
    (FetchProblem.NO_HOST, FetchOutcome.MISSING),
    (FetchProblem.NO_CONNECTION, FetchOutcome.MISSING),
    (FetchProblem.BAD_CERTIFICATE, FetchOutcome.BAD_CERTIFICATE),
    (FetchProblem.TOO_LARGE, FetchOutcome.TOO_LARGE),
    (FetchProblem.SILENT, FetchOutcome.NO_ANSWER),
    (FetchProblem.NO_HTTP, FetchOutcome.NO_ANSWER),
    (FetchProblem.BAD_REDIRECT, FetchOutcome.NO_ANSWER),
)
def test_every_end_has_an_outcome(page: Page, outcome: FetchOutcome) -> None:
    """A fact about the server is a result, and a temporary failure is undetermined."""
    assert Fetching(page).fetch() == [PolicyFetch(outcome)]


def test_any_octets_are_text() -> None:
    """A policy in another encoding is read with replaced characters."""
    (fetch,) = Fetching(b"version: STSv1\nmx: \xff.example\n").fetch()
    assert fetch.text == "version: STSv1\nmx: \ufffd.example\n"


def test_a_policy_is_fetched_once_a_minute() -> None:
    """Callers at the same time and soon after share a result; an undetermined one is retried."""
    fetching = Fetching(POLICY)
    fetching.web.slow.add(URL)
    first, second = fetching.fetch(), fetching.fetch()
    fetching.web.answer()
    assert first == second == fetching.fetch()
    assert len(fetching.web.requests) == 1
    fetching.web.slow.clear()
    fetching.web.pages[URL] = FetchProblem.SILENT
    fetching.clock.advance(61)
    for _ in range(2):
        fetching.fetch()
    assert len(fetching.web.requests) == 3


def test_stopping_tells_who_waits() -> None:
    """Stopping leaves no connection open, and callers get a failure."""
    fetching = Fetching(POLICY)
    fetching.web.slow.add(URL)
    waiting = fetching.fetch()
    fetching.fetcher.stop()
    assert waiting[0].check(CancelledError)
