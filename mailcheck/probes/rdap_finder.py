"""Asks registries since when a domain is registered (RDAP: RFC 7480, 9082, 9083)."""

import json
from typing import Any
from urllib.parse import quote

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from mailcheck.checks.lookups import Presence
from mailcheck.checks.registration import (
    RegistrationVerdict,
    read_registration,
    registrable_candidates,
    undetermined_registration,
    unregistered,
)
from mailcheck.core.instants import HOUR, instant_of
from mailcheck.probes.failures import FetchFailed
from mailcheck.probes.fetching import Fetched, FetchRequest, GuardedFetcher
from mailcheck.probes.rdap_bootstrap import Registry
from mailcheck.probes.registry_list import NoRegistryList, RegistryList
from mailcheck.probes.shared_probes import Bounds, SharedProbes

MAX_QUESTIONS = 4
"""Names of one domain that a registry is asked about; its names begin at most that deep."""

MAX_OCTETS = 512 * 1024  # of an answer; long ones have 50 KB
MAX_REDIRECTS = 3  # RFC 7480 4.3 has servers redirect to those who know
SECONDS = 9.0  # for all questions about a domain, within the 10 seconds of a check
FRESHNESS = HOUR  # of a fact; what could not be found out is not kept

ACCEPT = "application/rdap+json, application/json;q=0.9"

FOUND = 200
NOT_THERE = 404
NO_QUESTION = (400, 422)  # some registries say so of names that they never register
TOO_MANY = 429
BACK_OFF = 60  # seconds after TOO_MANY, unless the registry says how long
MAX_BACK_OFF = 3_600


class _NoAnswer(Exception):
    """The registry does not tell; says why, in half a sentence."""


class RdapFinder:
    """The `mailcheck.operations.domains.probe_ports.RegistrationFinder` over the guarded dialer."""

    def __init__(
        self, fetcher: GuardedFetcher, registries: RegistryList, clock: IReactorTime
    ) -> None:
        self._fetcher = fetcher
        self._registries = registries
        self._clock = clock
        self._quiet_until: dict[str, float] = {}
        self._searches: SharedProbes[str, RegistrationVerdict] = SharedProbes(
            clock,
            Bounds(FRESHNESS),
            self._find,
            is_worth_keeping=lambda verdict: verdict.presence is not Presence.UNDETERMINED,
            when_busy=lambda name: undetermined_registration(name, "too many are asked about now"),
        )

    def find_registration(self, domain: str) -> Deferred[RegistrationVerdict]:
        """Answer as `mailcheck.operations.domains.probe_ports.RegistrationFinder` promises."""
        return self._searches.get(domain)

    def stop(self) -> None:
        """Give up what is under way."""
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
            return undetermined_registration(domain, "the list of registries can't be loaded")
        except _NoAnswer as failure:
            return undetermined_registration(domain, str(failure))

    async def _search(self, domain: str, registry: Registry, ends_at: float) -> RegistrationVerdict:
        """Ask about the whole name, then about its parents, until the registry knows one.

        Parents last, since what a registry says about ``co.uk`` is no answer
        about ``example.co.uk``.
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
        """Ask about one name.

        :raises _NoAnswer: it says neither that it knows the name nor that it does not.
        """
        now = self._clock.seconds()
        if now < self._quiet_until.get(registry.base_url, now):
            raise _NoAnswer("the registry has asked to be left alone for a while")
        request = FetchRequest(
            f"{registry.base_url}domain/{quote(name)}",
            ACCEPT,
            MAX_OCTETS,
            seconds=max(0.0, ends_at - now),
            max_redirects=MAX_REDIRECTS,
        )
        try:
            fetched = await self._fetcher.fetch(request)
        except FetchFailed:
            raise _NoAnswer("the registry did not answer") from None
        if fetched.status == TOO_MANY:
            wait = min(fetched.retry_after or BACK_OFF, MAX_BACK_OFF)
            self._quiet_until[registry.base_url] = self._clock.seconds() + wait
            raise _NoAnswer("the registry has asked to be left alone for a while")
        if fetched.status not in (FOUND, NOT_THERE, *NO_QUESTION):
            raise _NoAnswer("the registry did not answer properly")
        return fetched

    def _read(self, name: str, body: bytes) -> RegistrationVerdict:
        try:
            document: Any = json.loads(body)
        except (ValueError, RecursionError):
            raise _NoAnswer("the registry's answer can't be read") from None
        return read_registration(name, document, instant_of(self._clock.seconds()))


def _top(domain: str) -> str:
    return "." + domain.rpartition(".")[2]
