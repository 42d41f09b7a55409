"""A scripted web without connections: the test chooses the content of each URL."""

from collections.abc import Mapping
from typing import Any

from twisted.internet.defer import Deferred, fail, succeed

from mailcheck.probes.fetching import Fetched, FetchRequest
from mailcheck.probes.guarded_dialer import FetchFailed, FetchProblem

Page = Fetched | FetchProblem | bytes


class ScriptedFetcher:
    """Replaces `GuardedFetcher`; a URL without a page is a 404.

    ``asked`` contains the requested URLs. URLs in ``slow`` stay in ``pending`` until `answer` is
    called. ``pages`` may be changed during a test.
    """

    def __init__(self, pages: Mapping[str, Page]) -> None:
        self.pages = dict(pages)
        self.requests: list[FetchRequest] = []
        self.slow: set[str] = set()
        self.pending: list[tuple[str, Deferred[Fetched]]] = []

    @property
    def asked(self) -> list[str]:
        """The URLs in the order of the requests."""
        return [request.url for request in self.requests]

    def fetch(self, request: FetchRequest) -> Deferred[Fetched]:
        """Answer as `GuardedFetcher.fetch` does."""
        self.requests.append(request)
        if request.url in self.slow:
            waiting: Deferred[Any] = Deferred()
            self.pending.append((request.url, waiting))
            return waiting
        return self._answer(request.url)

    def answer(self) -> None:
        """Answer the oldest pending request."""
        url, waiting = self.pending.pop(0)
        self._answer(url).chainDeferred(waiting)

    def _answer(self, url: str) -> Deferred[Fetched]:
        page = self.pages.get(url, Fetched(404))
        if isinstance(page, FetchProblem):
            return fail(FetchFailed(page))
        return succeed(Fetched(200, page) if isinstance(page, bytes) else page)
