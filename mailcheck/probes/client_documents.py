"""Fetching of OAuth client metadata documents with the guarded dialer."""

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from mailcheck.core.instants import MINUTE
from mailcheck.core.oauth.clients import ClientDocument, read_document
from mailcheck.operations.cached_values import CachedValues
from mailcheck.ports.cluster import Memory
from mailcheck.probes.cached_probes import CachedProbes
from mailcheck.probes.fetching import FetchRequest, GuardedFetcher
from mailcheck.probes.guarded_dialer import FetchFailed, FetchProblem

FRESHNESS = 5 * MINUTE
"""Cache lifetime: a person opens the page of consent and submits it within this time."""

MAX_OCTETS = 10_240
"""Maximum size of a document; the specification recommends 5 kB
(draft-ietf-oauth-client-id-metadata-document section 6.6)."""

SECONDS = 5.0
"""Time limit for a document, while a person waits for the page."""

_PROBLEMS = {
    FetchProblem.TOO_LARGE: f"it has more than {MAX_OCTETS} bytes",
    FetchProblem.SILENT: f"it did not arrive within {SECONDS:g} seconds; try again",
}


class ClientDocumentFetcher:
    """Implements `mailcheck.ports.probes.ClientDocuments` with the guarded dialer."""

    def __init__(self, fetcher: GuardedFetcher, clock: IReactorTime, memory: Memory) -> None:
        self._fetcher = fetcher
        self._documents: CachedProbes[ClientDocument] = CachedProbes(
            clock,
            CachedValues(memory, "client document", ClientDocument),
            self._fetch,
            freshness=FRESHNESS,
            is_kept=lambda document: not document.problem,
            when_busy=lambda _: ClientDocument(problem="too many are being fetched; try again"),
        )

    def fetch_client(self, url: str) -> Deferred[ClientDocument]:
        """Fetch a document as `mailcheck.ports.probes.ClientDocuments` specifies."""
        return self._documents.get(url)

    def stop(self) -> None:
        """Cancel all running fetches."""
        self._documents.stop()

    async def _fetch(self, url: str) -> ClientDocument:
        # A redirect is not followed: the URL is the identity of the client.
        request = FetchRequest(url, "application/json", MAX_OCTETS, SECONDS)
        try:
            fetched = await self._fetcher.fetch(request)
        except FetchFailed as failure:
            return ClientDocument(problem=_PROBLEMS.get(failure.problem, failure.problem.value))
        if fetched.status != 200:
            return ClientDocument(problem=f"its host answered {fetched.status}")
        if not _is_json(fetched.media_type):
            shown = repr(fetched.media_type[:60])
            return ClientDocument(problem=f"its type is {shown}, not application/json")
        return read_document(url, fetched.body)


def _is_json(media_type: str) -> bool:
    return media_type == "application/json" or (
        media_type.startswith("application/") and media_type.endswith("+json")
    )
