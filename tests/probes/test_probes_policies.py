"""Fetching MTA-STS policies, and logos and their certificates (BIMI)."""

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import CancelledError
from twisted.internet.task import Clock

from mailcheck.checks.bimi.certificate import MAX_FILE
from mailcheck.checks.bimi.evaluate import FileFetch
from mailcheck.checks.bimi.svg import MAX_READ, MEDIA_TYPE
from mailcheck.checks.hosts.mta_sts import FetchOutcome, PolicyFetch
from mailcheck.cluster.local import LocalMemory
from mailcheck.probes.fetching import Fetched
from mailcheck.probes.guarded_dialer import FetchProblem
from mailcheck.probes.published_files import BimiFetcher, MtaStsFetcher
from tests.fakes.marks import CERTIFICATE_URL, GOOD_LOGO, LOGO_URL, bundle
from tests.fakes.scripted_fetcher import Page, ScriptedFetcher
from tests.probes.scripted_hosts import collect
from tests.table import rows

URL = "https://mta-sts.example.com/.well-known/mta-sts.txt"
POLICY = b"version: STSv1\r\nmode: enforce\r\nmx: mx.example.com\r\nmax_age: 604800\r\n"
MARK = bundle()


class Policies:
    """A fetcher of policies, and a web server."""

    url = URL
    fetcher_class: Callable[..., Any] = MtaStsFetcher

    def __init__(self, page: Page) -> None:
        self.clock = Clock()
        self.web = ScriptedFetcher({self.url: page, CERTIFICATE_URL: MARK})
        self.fetcher = self.fetcher_class(self.web, self.clock, LocalMemory(self.clock))

    def fetch(self) -> list[Any]:
        """Return a list that will contain the policy."""
        return collect(self.fetcher.fetch_policy("example.com"))


class Logos(Policies):
    """A fetcher of logos, and a web server."""

    url = LOGO_URL
    fetcher_class = BimiFetcher

    def fetch(self) -> list[Any]:
        """Return a list that will contain the logo."""
        return collect(self.fetcher.fetch_logo(LOGO_URL))


def test_a_policy_is_fetched_as_a_sender_does() -> None:
    """A policy is fetched from its one URL, without redirects, up to 64 KiB."""
    fetching = Policies(POLICY)
    assert fetching.fetch() == [PolicyFetch(FetchOutcome.FETCHED, POLICY.decode())]
    (request,) = fetching.web.requests
    assert (request.url, request.max_redirects, request.max_octets) == (URL, 0, 65_536)


def test_a_logo_and_a_certificate_are_fetched() -> None:
    """Each is fetched with its own limit, within the time of a check, with few redirects."""
    fetching = Logos(Fetched(200, GOOD_LOGO, media_type=MEDIA_TYPE))
    assert fetching.fetch() == [FileFetch(FetchOutcome.FETCHED, GOOD_LOGO, MEDIA_TYPE)]
    (mark,) = collect(fetching.fetcher.fetch_certificate(CERTIFICATE_URL))
    assert mark.octets == MARK
    logo, certificate = fetching.web.requests
    assert (logo.max_octets, certificate.max_octets) == (MAX_READ, MAX_FILE)
    assert all(one.max_redirects == 3 and one.seconds <= 8 for one in fetching.web.requests)


@rows(
    (Fetched(404), FetchOutcome.MISSING, FetchOutcome.MISSING),
    (Fetched(500), FetchOutcome.MISSING, FetchOutcome.MISSING),
    (Fetched(204), FetchOutcome.MISSING, None),
    (Fetched(301), FetchOutcome.REDIRECTED, FetchOutcome.MISSING),
    (Fetched(308), FetchOutcome.REDIRECTED, None),
    (FetchProblem.NO_HOST, FetchOutcome.MISSING, FetchOutcome.MISSING),
    (FetchProblem.NO_CONNECTION, FetchOutcome.MISSING, FetchOutcome.MISSING),
    (FetchProblem.BAD_CERTIFICATE, FetchOutcome.BAD_CERTIFICATE, FetchOutcome.BAD_CERTIFICATE),
    (FetchProblem.BAD_REDIRECT, FetchOutcome.NO_ANSWER, FetchOutcome.REDIRECTED),
    (FetchProblem.TOO_LARGE, FetchOutcome.TOO_LARGE, FetchOutcome.TOO_LARGE),
    (FetchProblem.SILENT, FetchOutcome.NO_ANSWER, FetchOutcome.NO_ANSWER),
    (FetchProblem.NO_HTTP, FetchOutcome.NO_ANSWER, FetchOutcome.NO_ANSWER),
)
def test_every_end_has_an_outcome(
    page: Page, of_policy: FetchOutcome, of_logo: FetchOutcome | None
) -> None:
    """A fact about the server is a result, and a temporary failure is undetermined."""
    assert Policies(page).fetch() == [PolicyFetch(of_policy)]
    if of_logo is not None:
        assert Logos(page).fetch() == [FileFetch(of_logo)]


def test_any_octets_are_text() -> None:
    """A policy in another encoding is read with replaced characters."""
    (fetch,) = Policies(b"version: STSv1\nmx: \xff.example\n").fetch()
    assert fetch.text == "version: STSv1\nmx: \ufffd.example\n"


@rows(Policies(POLICY), Logos(GOOD_LOGO))
def test_a_file_is_fetched_once_a_minute(fetching: Policies) -> None:
    """Callers at the same time and soon after share a result; an undetermined one is retried."""
    fetching.web.slow.add(fetching.url)
    first, second = fetching.fetch(), fetching.fetch()
    fetching.web.answer()
    assert first == second == fetching.fetch()
    assert len(fetching.web.requests) == 1
    fetching.web.slow.clear()
    fetching.web.pages[fetching.url] = FetchProblem.SILENT
    fetching.clock.advance(61)
    for _ in range(2):
        fetching.fetch()
    assert len(fetching.web.requests) == 3


@rows(Policies(POLICY), Logos(GOOD_LOGO))
def test_stopping_tells_who_waits(fetching: Policies) -> None:
    """Stopping leaves no connection open, and callers get a failure."""
    fetching.web.slow.add(fetching.url)
    waiting = fetching.fetch()
    fetching.fetcher.stop()
    assert waiting[0].check(CancelledError)
