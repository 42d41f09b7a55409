"""Fetches MTA-STS policy files as a sending server does (RFC 8461 3.3)."""

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from mailcheck.checks.hosts.mta_sts import MAX_POLICY_OCTETS, FetchOutcome, PolicyFetch, policy_url
from mailcheck.core.instants import MINUTE
from mailcheck.operations.kept_values import KeptValues
from mailcheck.ports.cluster import Memory
from mailcheck.probes.fetching import FetchRequest, GuardedFetcher
from mailcheck.probes.guarded_dialer import FetchFailed, FetchProblem
from mailcheck.probes.shared_probes import Bounds, SharedProbes, Worth

FRESHNESS = MINUTE
"""Long enough to spare a web server, short enough for somebody who corrects a policy."""

_OUTCOMES = {
    FetchProblem.NO_HOST: FetchOutcome.MISSING,
    FetchProblem.NO_CONNECTION: FetchOutcome.MISSING,
    FetchProblem.BAD_CERTIFICATE: FetchOutcome.BAD_CERTIFICATE,
    FetchProblem.TOO_LARGE: FetchOutcome.TOO_LARGE,
}
"""All other problems may be over in a minute, or ours."""


class MtaStsFetcher:
    """The `mailcheck.operations.domains.probe_hosts.PolicyFetcher` over the guarded dialer."""

    def __init__(self, fetcher: GuardedFetcher, clock: IReactorTime, memory: Memory) -> None:
        self._fetcher = fetcher
        self._fetches: SharedProbes[PolicyFetch] = SharedProbes(
            clock,
            Bounds(FRESHNESS),
            KeptValues(memory, "policy", PolicyFetch),
            self._fetch,
            worth=Worth(lambda fetch: fetch.outcome is not FetchOutcome.SILENT),
            when_busy=lambda _: PolicyFetch(FetchOutcome.SILENT),
        )

    def fetch_policy(self, domain: str) -> Deferred[PolicyFetch]:
        """Answer as `mailcheck.operations.domains.probe_hosts.PolicyFetcher` promises."""
        return self._fetches.get(domain)

    def stop(self) -> None:
        """Give up what is under way."""
        self._fetches.stop()

    async def _fetch(self, domain: str) -> PolicyFetch:
        request = FetchRequest(policy_url(domain), "text/plain", MAX_POLICY_OCTETS)
        try:
            fetched = await self._fetcher.fetch(request)
        except FetchFailed as failure:
            return PolicyFetch(_OUTCOMES.get(failure.problem, FetchOutcome.SILENT))
        if fetched.is_redirect:
            return PolicyFetch(FetchOutcome.REDIRECTED)
        if fetched.status != 200:
            return PolicyFetch(FetchOutcome.MISSING)
        return PolicyFetch(FetchOutcome.FETCHED, fetched.body.decode("utf-8", "replace"))
