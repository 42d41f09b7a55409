"""Registration dates of domains, found by RDAP: choosing the registry and reading its answer."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

from msgspec import Struct
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from mailcheck.checks.dns_answers import Presence
from mailcheck.checks.hosts.registration import (
    RegistrationVerdict,
    read_registration,
    registrable_candidates,
    undetermined_registration,
    unregistered,
)
from mailcheck.core.instants import DAY, HOUR, SECOND
from mailcheck.operations.cached_values import CachedValues
from mailcheck.operations.concurrency import SingleFlight
from mailcheck.ports.clocks import ClockAndRandomness
from mailcheck.ports.cluster import Memory
from mailcheck.probes.cached_probes import CachedProbes
from mailcheck.probes.fetching import Fetched, FetchRequest, GuardedFetcher
from mailcheck.probes.guarded_dialer import FetchFailed

MAX_SUFFIXES = 20_000
"""Maximum number of suffixes that are read of a bootstrap file. IANA's file has 1,200."""


class Registry(Struct, frozen=True):
    """The registry for the names below ``suffix``; ``base_url`` ends with a slash."""

    suffix: str
    base_url: str


class Bootstrap(Struct, frozen=True):
    """The registries by suffix."""

    base_urls: Mapping[str, str]

    def find(self, domain: str) -> Registry | None:
        """Return the registry with the longest matching suffix (RFC 9224 4)."""
        labels = domain.split(".")
        suffixes = (".".join(labels[start:]) for start in range(len(labels)))
        found = next((suffix for suffix in suffixes if suffix in self.base_urls), None)
        return None if found is None else Registry(found, self.base_urls[found])


def read_bootstrap(text: bytes) -> Bootstrap:
    """Parse a bootstrap file. Invalid entries are ignored.

    :raises ValueError: it is not JSON, or lists no registry.
    """
    try:
        document = json.loads(text)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
    base_urls = dict(_entries(document))
    if not base_urls:
        raise ValueError("it lists no registry")
    return Bootstrap(base_urls)


@cache
def bundled_bootstrap() -> Bootstrap:
    """Return the bundled registries, a dated excerpt of IANA's file.

    They are used for the first minutes, and while IANA cannot be reached.
    """
    return read_bootstrap(files(__package__).joinpath("rdap_bootstrap.json").read_bytes())


def _entries(document: object) -> Iterator[tuple[str, str]]:
    services = document.get("services") if isinstance(document, Mapping) else None
    for service in services if isinstance(services, list) else []:
        if not isinstance(service, list) or len(service) < 2:
            continue
        suffixes, urls = _texts(service[0]), _texts(service[1])
        base_url = _choose(urls)
        for suffix in suffixes[:MAX_SUFFIXES] if base_url else []:
            yield suffix.lower().strip("."), base_url


def _choose(urls: list[str]) -> str:
    """Return the preferred base URL: https before http (RFC 9224 3)."""
    for scheme in ("https://", "http://"):
        for url in urls:
            if url.lower().startswith(scheme):
                return url if url.endswith("/") else url + "/"
    return ""


def _texts(values: object) -> list[str]:
    return [value for value in values if isinstance(value, str)] if isinstance(values, list) else []


IANA_URL = "https://data.iana.org/rdap/dns.json"
MAX_LIST_OCTETS = 2 * 1024 * 1024
"""Maximum size of the list. IANA's file has 70 KB."""

REFRESH = DAY / SECOND
"""Seconds until the list is loaded again. RFC 9224 8 refers to the cache headers; IANA's say a
day."""

RETRY = 600.0
"""Seconds until the next attempt after the list could not be loaded."""


class NoRegistryList(Exception):
    """The list of registries cannot be loaded."""


class RegistryList:
    """Loads the list of registries on first use, and then once a day.

    :param source: a URL or a file path. For `IANA_URL`, the bundled list is used until it is
        loaded. Any other list is awaited.
    """

    _log = Logger()

    def __init__(self, fetcher: GuardedFetcher, clock: IReactorTime, source: str) -> None:
        self._fetcher = fetcher
        self._clock = clock
        self._source = source
        self._known = bundled_bootstrap() if source == IANA_URL else None
        self._due_at = clock.seconds()
        self._loads = SingleFlight(self._load)

    async def find(self, domain: str) -> Registry | None:
        """Return the registry of a domain, or `None` if no known registry has it.

        :raises NoRegistryList: the list cannot be loaded.
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
        """Cancel loading."""
        self._loads.stop()

    def _refresh(self) -> Deferred[None] | None:
        if self._clock.seconds() < self._due_at:
            return None
        return self._loads.call(self._source)

    async def _load(self, source: str) -> None:
        try:
            self._known = read_bootstrap(await self._read(source))
        except (FetchFailed, OSError, ValueError) as failure:
            self._log.warn(
                "The list of RDAP registries at {source} cannot be loaded: {failure}",
                source=source,
                failure=failure,
            )
            self._due_at = self._clock.seconds() + RETRY
        else:
            self._due_at = self._clock.seconds() + REFRESH

    async def _read(self, source: str) -> bytes:
        if not source.startswith(("https://", "http://")):
            return Path(source).read_bytes()
        request = FetchRequest(source, "application/json", MAX_LIST_OCTETS, max_redirects=3)
        fetched = await self._fetcher.fetch(request)
        if fetched.status != 200:
            raise ValueError(f"status {fetched.status}")
        return fetched.body


MAX_QUESTIONS = 4
"""Maximum number of names of a domain that are looked up; registered names are not deeper."""

MAX_OCTETS = 512 * 1024
"""Maximum size of an answer. Long answers have 50 KB."""

MAX_REDIRECTS = 3
"""Maximum number of redirects, with which servers refer to others (RFC 7480 4.3)."""

SECONDS = 9.0
"""Seconds for all lookups of a domain, within the 10 seconds of a check."""

FRESHNESS = HOUR
"""Milliseconds for which a determined result is cached."""

ACCEPT = "application/rdap+json, application/json;q=0.9"

FOUND = 200
NOT_THERE = 404
NO_QUESTION = (400, 422)  # some registries answer so for names that they never register
TOO_MANY = 429
BACK_OFF = 60  # seconds after TOO_MANY without a Retry-After field
MAX_BACK_OFF = 3_600


class _NoAnswer(Exception):
    """The registry gave no answer. The message has the reason as a clause."""


class RdapFinder:
    """Implements `mailcheck.ports.probes.RegistrationFinder` with the guarded dialer."""

    def __init__(
        self,
        fetcher: GuardedFetcher,
        registries: RegistryList,
        memory: Memory,
        clock_and_randomness: ClockAndRandomness,
    ) -> None:
        self._fetcher = fetcher
        self._registries = registries
        self._clock = clock_and_randomness.clock
        self._now = clock_and_randomness.now
        self._silences: CachedValues[int] = CachedValues(memory, "silence", int)
        self._searches: CachedProbes[RegistrationVerdict] = CachedProbes(
            clock_and_randomness.clock,
            CachedValues(memory, "registration", RegistrationVerdict),
            self._find,
            freshness=FRESHNESS,
            is_kept=lambda verdict: verdict.presence is not Presence.UNDETERMINED,
            when_busy=lambda name: undetermined_registration(name, "too many lookups are running"),
        )

    def find_registration(self, domain: str) -> Deferred[RegistrationVerdict]:
        """Find a registration as `mailcheck.ports.probes.RegistrationFinder` specifies."""
        return self._searches.get(domain)

    def stop(self) -> None:
        """Cancel all running lookups."""
        self._searches.stop()
        self._registries.stop()

    async def _find(self, domain: str) -> RegistrationVerdict:
        ends_at = self._clock.seconds() + SECONDS
        try:
            registry = await self._registries.find(domain)
            if registry is None:
                raise _NoAnswer(f"no registry is known that publishes dates for {_top(domain)}")
            return await self._search(domain, registry, ends_at)
        except NoRegistryList:
            return undetermined_registration(domain, "the list of registries cannot be loaded")
        except _NoAnswer as failure:
            return undetermined_registration(domain, str(failure))

    async def _search(self, domain: str, registry: Registry, ends_at: float) -> RegistrationVerdict:
        """Look up the whole name, then its parents, until the registry knows one.

        Parents come last, since an answer about ``co.uk`` does not apply to ``example.co.uk``.
        """
        names = registrable_candidates(domain, registry.suffix)[:MAX_QUESTIONS]
        is_absent = False
        for name in reversed(names):
            fetched = await self._ask(registry, name, ends_at)
            if fetched.status == FOUND:
                return self._read(name, fetched.body)
            is_absent = is_absent or fetched.status == NOT_THERE
        if is_absent:
            return unregistered(domain)
        raise _NoAnswer(f"the registry of {_top(domain)} does not register such names")

    async def _ask(self, registry: Registry, name: str, ends_at: float) -> Fetched:
        """Look up one name.

        :raises _NoAnswer: the answer is neither "found" nor "not found".
        """
        if await self._silences.get(registry.base_url):
            raise _NoAnswer("the registry limits the rate of lookups")
        request = FetchRequest(
            f"{registry.base_url}domain/{quote(name)}",
            ACCEPT,
            MAX_OCTETS,
            seconds=max(0.0, ends_at - self._clock.seconds()),
            max_redirects=MAX_REDIRECTS,
        )
        try:
            fetched = await self._fetcher.fetch(request)
        except FetchFailed:
            raise _NoAnswer("the registry did not answer") from None
        if fetched.status == TOO_MANY:
            wait = min(fetched.retry_after or BACK_OFF, MAX_BACK_OFF)
            await self._silences.put(registry.base_url, wait, wait * SECOND)
            raise _NoAnswer("the registry limits the rate of lookups")
        if fetched.status not in (FOUND, NOT_THERE, *NO_QUESTION):
            raise _NoAnswer(f"the registry answered with status {fetched.status}")
        return fetched

    def _read(self, name: str, body: bytes) -> RegistrationVerdict:
        try:
            document: Any = json.loads(body)
        except (ValueError, RecursionError):
            raise _NoAnswer("the registry's answer cannot be parsed") from None
        return read_registration(name, document, self._now())


def _top(domain: str) -> str:
    return "." + domain.rpartition(".")[2]
