"""Fetching client metadata documents of OAuth."""

import json
from typing import Any

from twisted.internet.task import Clock

from mailcheck.cluster.local import LocalMemory
from mailcheck.core.oauth.clients import ClientDocument
from mailcheck.probes.fetching import Fetched
from mailcheck.probes.guarded_dialer import FetchProblem
from mailcheck.probes.published_files import DOCUMENT_SECONDS, MAX_DOCUMENT, ClientDocumentFetcher
from tests.fakes.scripted_fetcher import Page, ScriptedFetcher
from tests.probes.scripted_hosts import collect
from tests.table import rows

URL = "https://agent.example/client.json"
CALLBACK = "https://agent.example/callback"
BODY = json.dumps({"client_id": URL, "client_name": "A", "redirect_uris": [CALLBACK]}).encode()


def page(body: bytes = BODY, media_type: str = "application/json") -> Fetched:
    """Return a response with a document."""
    return Fetched(200, body, media_type=media_type)


class Fetching:
    """A fetcher of documents, and a web server."""

    def __init__(self, served: Page) -> None:
        self.clock = Clock()
        self.web = ScriptedFetcher({URL: served})
        web: Any = self.web
        self.fetcher = ClientDocumentFetcher(web, self.clock, LocalMemory(self.clock))

    def fetch(self) -> ClientDocument:
        """Return the document."""
        (found,) = collect(self.fetcher.fetch_client(URL))
        assert isinstance(found, ClientDocument)
        return found


@rows("application/json", "application/cimd+json")
def test_a_document_is_fetched(media_type: str) -> None:
    """A document is fetched without redirects, within limits of time and size."""
    fetching = Fetching(page(media_type=media_type))
    assert fetching.fetch() == ClientDocument("A", CALLBACK)
    (request,) = fetching.web.requests
    limits = (request.max_redirects, request.max_octets, request.seconds)
    assert limits == (0, MAX_DOCUMENT, DOCUMENT_SECONDS)


@rows(
    (Fetched(404), "answered 404"),
    (Fetched(302), "answered 302"),
    (page(media_type="text/html"), "text/html"),
    (page(media_type=""), "not application/json"),
    (page(b"<html>"), "not valid"),
    (page(BODY.replace(b"agent.example/client", b"evil.example/client")), "not its URL"),
    (FetchProblem.NO_HOST, "no public address"),
    (FetchProblem.TOO_LARGE, "more than"),
    (FetchProblem.SILENT, "within 5 seconds"),
    (FetchProblem.BAD_CERTIFICATE, "certificate"),
    (FetchProblem.NO_CONNECTION, "refuses"),
    (FetchProblem.NO_HTTP, "plain HTTP"),
    (FetchProblem.BAD_REDIRECT, "cannot be used"),
)
def test_what_is_wrong_is_said(served: Page, problem: str) -> None:
    """A document that cannot be used has a problem, and no redirect URIs."""
    found = Fetching(served).fetch()
    assert problem in found.problem
    assert found.redirect_uris == ""


def test_a_document_is_cached() -> None:
    """A document is fetched once in five minutes, and a failure is tried again."""
    fetching = Fetching(page())
    for _ in range(3):
        assert fetching.fetch().name == "A"
    assert len(fetching.web.requests) == 1
    fetching.clock.advance(301)
    fetching.web.pages[URL] = Fetched(500)
    for _ in range(2):
        assert "answered 500" in fetching.fetch().problem
        fetching.clock.advance(3)
    assert len(fetching.web.requests) == 3
