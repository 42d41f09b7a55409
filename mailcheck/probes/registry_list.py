"""Keeps the list of registries up to date."""

from pathlib import Path

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from mailcheck.core.instants import DAY, MINUTE, SECOND
from mailcheck.probes.failures import FetchFailed
from mailcheck.probes.fetching import FetchRequest, GuardedFetcher
from mailcheck.probes.rdap_bootstrap import Registry, read_bootstrap, shipped_bootstrap
from mailcheck.probes.shared_probes import Bounds, SharedProbes

IANA_URL = "https://data.iana.org/rdap/dns.json"
MAX_OCTETS = 2 * 1024 * 1024  # IANA's file has 70 KB
REFRESH = DAY / SECOND  # seconds; RFC 9224 8 says to go by the cache headers, IANA's are a day
RETRY = 10 * MINUTE  # after the list could not be loaded


class NoRegistryList(Exception):
    """The list can't be loaded."""


class RegistryList:
    """Loads the list when it is first needed and then once a day.

    :param source: a URL or the path of a file. For `IANA_URL` the part that is
        shipped bridges the time until it is loaded; any other is waited for.
    """

    _log = Logger()

    def __init__(self, fetcher: GuardedFetcher, clock: IReactorTime, source: str) -> None:
        self._fetcher = fetcher
        self._clock = clock
        self._source = source
        self._known = shipped_bootstrap() if source == IANA_URL else None
        self._due_at = clock.seconds()
        self._loads: SharedProbes[str, bool] = SharedProbes(
            clock,
            Bounds(RETRY),
            self._load,
            is_worth_keeping=lambda _: True,
            when_busy=lambda _: False,
        )

    async def find(self, domain: str) -> Registry | None:
        """Give the registry that knows a domain; nothing when no known one does.

        :raises NoRegistryList: there is no list.
        """
        loading = self._refresh()
        found = None if self._known is None else self._known.find(domain)
        if found is None and loading is not None:
            await loading
            found = None if self._known is None else self._known.find(domain)
        elif loading is not None:
            loading.addErrback(lambda failure: failure.trap(CancelledError))
        if self._known is None:
            raise NoRegistryList
        return found

    def stop(self) -> None:
        """Give up loading."""
        self._loads.stop()

    def _refresh(self) -> Deferred[bool] | None:
        if self._clock.seconds() < self._due_at:
            return None
        return self._loads.get(self._source)

    async def _load(self, source: str) -> bool:
        try:
            self._known = read_bootstrap(await self._read(source))
        except (FetchFailed, OSError, ValueError) as failure:
            self._log.warn(
                "The list of registries (RDAP) at {source} can't be loaded: {failure}",
                source=source,
                failure=failure,
            )
            return False
        self._due_at = self._clock.seconds() + REFRESH
        return True

    async def _read(self, source: str) -> bytes:
        if not source.startswith(("https://", "http://")):
            return Path(source).read_bytes()
        request = FetchRequest(source, "application/json", MAX_OCTETS, max_redirects=3)
        fetched = await self._fetcher.fetch(request)
        if fetched.status != 200:
            raise ValueError(f"status {fetched.status}")
        return fetched.body
