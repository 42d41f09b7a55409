"""Files that domains and programs publish on the web: logos, policies, documents of clients.

They are fetched with the guarded dialer, and cached for all daemons.
"""

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from mailcheck.checks.bimi.certificate import MAX_FILE
from mailcheck.checks.bimi.evaluate import FileFetch
from mailcheck.checks.bimi.svg import MAX_READ, MEDIA_TYPE
from mailcheck.checks.hosts.mta_sts import MAX_POLICY_OCTETS, FetchOutcome, PolicyFetch, policy_url
from mailcheck.core.instants import MINUTE
from mailcheck.core.oauth.clients import ClientDocument, read_document
from mailcheck.operations.cached_values import CachedValues
from mailcheck.ports.cluster import Memory
from mailcheck.probes.cached_probes import CachedProbes
from mailcheck.probes.fetching import FetchRequest, GuardedFetcher
from mailcheck.probes.guarded_dialer import FetchFailed, FetchProblem

LOGOS_AT_ONCE = 20
"""Maximum number of logos, and of certificates, that are fetched at the same time."""

FRESHNESS = MINUTE
"""Cache lifetime: it spares web servers, but a corrected policy is soon seen."""

_OUTCOMES = {
    FetchProblem.NO_HOST: FetchOutcome.MISSING,
    FetchProblem.NO_CONNECTION: FetchOutcome.MISSING,
    FetchProblem.BAD_CERTIFICATE: FetchOutcome.BAD_CERTIFICATE,
    FetchProblem.TOO_LARGE: FetchOutcome.TOO_LARGE,
}
"""All other problems may be temporary or on our side."""

_LOGO_OUTCOMES = {**_OUTCOMES, FetchProblem.BAD_REDIRECT: FetchOutcome.REDIRECTED}

MAX_LOGO_REDIRECTS = 3

LOGO_SECONDS = 6.0
"""Time limit for a logo or a certificate. A check waits for both at the same time."""

DOCUMENT_FRESHNESS = 5 * MINUTE
"""Cache lifetime: a person opens the page of consent and submits it within this time."""

MAX_DOCUMENT = 10_240
"""Maximum size of a document; the specification recommends 5 kB
(draft-ietf-oauth-client-id-metadata-document section 6.6)."""

DOCUMENT_SECONDS = 5.0
"""Time limit for a document, while a person waits for the page."""

_DOCUMENT_PROBLEMS = {
    FetchProblem.TOO_LARGE: f"it has more than {MAX_DOCUMENT} bytes",
    FetchProblem.SILENT: f"it did not arrive within {DOCUMENT_SECONDS:g} seconds; try again",
}


class BimiFetcher:
    """Implements `mailcheck.ports.probes.LogoFetcher` with the guarded dialer."""

    def __init__(self, fetcher: GuardedFetcher, clock: IReactorTime, memory: Memory) -> None:
        self._fetcher = fetcher
        self._logos = self._cache(clock, memory, "logo", MAX_READ, MEDIA_TYPE)
        self._certificates = self._cache(
            clock, memory, "mark certificate", MAX_FILE, "application/x-pem-file"
        )
        self.fetch_logo, self.fetch_certificate = self._logos.get, self._certificates.get

    def stop(self) -> None:
        """Cancel all running fetches."""
        self._logos.stop()
        self._certificates.stop()

    def _cache(
        self, clock: IReactorTime, memory: Memory, kind: str, max_octets: int, accept: str
    ) -> CachedProbes[FileFetch]:
        async def fetch(url: str) -> FileFetch:
            request = FetchRequest(
                url,
                f"{accept}, */*;q=0.1",
                max_octets,
                LOGO_SECONDS,
                max_redirects=MAX_LOGO_REDIRECTS,
            )
            return await self._fetch(request)

        return CachedProbes(
            clock,
            CachedValues(memory, kind, FileFetch),
            fetch,
            freshness=FRESHNESS,
            is_kept=lambda fetch: fetch.outcome is not FetchOutcome.NO_ANSWER,
            at_once=LOGOS_AT_ONCE,
            when_busy=lambda _: FileFetch(FetchOutcome.NO_ANSWER),
        )

    async def _fetch(self, request: FetchRequest) -> FileFetch:
        try:
            fetched = await self._fetcher.fetch(request)
        except FetchFailed as failure:
            return FileFetch(_LOGO_OUTCOMES.get(failure.problem, FetchOutcome.NO_ANSWER))
        if fetched.status != 200:
            return FileFetch(FetchOutcome.MISSING)
        return FileFetch(FetchOutcome.FETCHED, fetched.body, fetched.media_type)


class MtaStsFetcher:
    """Implements `mailcheck.ports.probes.PolicyFetcher` with the guarded dialer."""

    def __init__(self, fetcher: GuardedFetcher, clock: IReactorTime, memory: Memory) -> None:
        self._fetcher = fetcher
        self._fetches: CachedProbes[PolicyFetch] = CachedProbes(
            clock,
            CachedValues(memory, "policy", PolicyFetch),
            self._fetch,
            freshness=FRESHNESS,
            is_kept=lambda fetch: fetch.outcome is not FetchOutcome.NO_ANSWER,
            when_busy=lambda _: PolicyFetch(FetchOutcome.NO_ANSWER),
        )

    def fetch_policy(self, domain: str) -> Deferred[PolicyFetch]:
        """Fetch a policy as `mailcheck.ports.probes.PolicyFetcher` specifies."""
        return self._fetches.get(domain)

    def stop(self) -> None:
        """Cancel all running fetches."""
        self._fetches.stop()

    async def _fetch(self, domain: str) -> PolicyFetch:
        request = FetchRequest(policy_url(domain), "text/plain", MAX_POLICY_OCTETS)
        try:
            fetched = await self._fetcher.fetch(request)
        except FetchFailed as failure:
            return PolicyFetch(_OUTCOMES.get(failure.problem, FetchOutcome.NO_ANSWER))
        if fetched.is_redirect:
            return PolicyFetch(FetchOutcome.REDIRECTED)
        if fetched.status != 200:
            return PolicyFetch(FetchOutcome.MISSING)
        return PolicyFetch(FetchOutcome.FETCHED, fetched.body.decode("utf-8", "replace"))


class ClientDocumentFetcher:
    """Implements `mailcheck.ports.probes.ClientDocuments` with the guarded dialer."""

    def __init__(self, fetcher: GuardedFetcher, clock: IReactorTime, memory: Memory) -> None:
        self._fetcher = fetcher
        self._documents: CachedProbes[ClientDocument] = CachedProbes(
            clock,
            CachedValues(memory, "client document", ClientDocument),
            self._fetch,
            freshness=DOCUMENT_FRESHNESS,
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
        request = FetchRequest(url, "application/json", MAX_DOCUMENT, DOCUMENT_SECONDS)
        try:
            fetched = await self._fetcher.fetch(request)
        except FetchFailed as failure:
            return ClientDocument(
                problem=_DOCUMENT_PROBLEMS.get(failure.problem, failure.problem.value)
            )
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
