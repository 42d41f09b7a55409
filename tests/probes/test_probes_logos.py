"""Fetching logos and their certificates (BIMI)."""

from typing import Any

from twisted.internet.defer import CancelledError
from twisted.internet.task import Clock

from mailcheck.checks.bimi.certificate import MAX_FILE
from mailcheck.checks.bimi.evaluate import FileFetch
from mailcheck.checks.bimi.svg import MAX_READ, MEDIA_TYPE
from mailcheck.checks.hosts.mta_sts import FetchOutcome
from mailcheck.cluster.local import LocalMemory
from mailcheck.probes.fetching import BimiFetcher, Fetched
from mailcheck.probes.guarded_dialer import FetchProblem
from tests.fakes.marks import CERTIFICATE_URL, GOOD_LOGO, LOGO_URL, bundle
from tests.fakes.scripted_fetcher import Page, ScriptedFetcher
from tests.probes.scripted_hosts import collect
from tests.table import rows

MARK = bundle()


class Fetching:
    """A fetcher of logos, and a web server."""

    def __init__(self, page: Page) -> None:
        self.clock = Clock()
        self.web = ScriptedFetcher({LOGO_URL: page, CERTIFICATE_URL: MARK})
        web: Any = self.web
        self.fetcher = BimiFetcher(web, self.clock, LocalMemory(self.clock))

    def fetch(self) -> list[Any]:
        """Return a list that will contain the logo."""
        return collect(self.fetcher.fetch_logo(LOGO_URL))


def test_a_logo_and_a_certificate_are_fetched() -> None:
    """Each is fetched with its own limit, within the time of a check, with few redirects."""
    fetching = Fetching(Fetched(200, GOOD_LOGO, media_type=MEDIA_TYPE))
    assert fetching.fetch() == [FileFetch(FetchOutcome.FETCHED, GOOD_LOGO, MEDIA_TYPE)]
    (mark,) = collect(fetching.fetcher.fetch_certificate(CERTIFICATE_URL))
    assert mark.octets == MARK
    logo, certificate = fetching.web.requests
    assert (logo.max_octets, certificate.max_octets) == (MAX_READ, MAX_FILE)
    assert all(one.max_redirects == 3 and one.seconds <= 8 for one in fetching.web.requests)


@rows(
    (Fetched(404), FetchOutcome.MISSING),
    (Fetched(500), FetchOutcome.MISSING),
    (Fetched(301), FetchOutcome.MISSING),
    (FetchProblem.NO_HOST, FetchOutcome.MISSING),
    (FetchProblem.NO_CONNECTION, FetchOutcome.MISSING),
    (FetchProblem.BAD_CERTIFICATE, FetchOutcome.BAD_CERTIFICATE),
    (FetchProblem.BAD_REDIRECT, FetchOutcome.REDIRECTED),
    (FetchProblem.TOO_LARGE, FetchOutcome.TOO_LARGE),
    (FetchProblem.SILENT, FetchOutcome.NO_ANSWER),
    (FetchProblem.NO_HTTP, FetchOutcome.NO_ANSWER),
)
def test_every_end_has_an_outcome(page: Page, outcome: FetchOutcome) -> None:
    """A fact about the server is a result, and a temporary failure is undetermined."""
    assert Fetching(page).fetch() == [FileFetch(outcome)]


def test_a_logo_is_fetched_once_a_minute() -> None:
    """Callers at the same time and soon after share a result."""
    fetching = Fetching(GOOD_LOGO)
    fetching.web.slow.add(LOGO_URL)
    first, second = fetching.fetch(), fetching.fetch()
    fetching.web.answer()
    assert first == second == fetching.fetch()
    assert len(fetching.web.requests) == 1


def test_stopping_tells_who_waits() -> None:
    """Stopping leaves no connection open, and callers get a failure."""
    fetching = Fetching(GOOD_LOGO)
    fetching.web.slow.add(LOGO_URL)
    waiting = fetching.fetch()
    fetching.fetcher.stop()
    assert waiting[0].check(CancelledError)
