"""Builds the domain checks, for the daemon and for commands without a daemon."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from copy import copy
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, cast

from msgspec import Struct
from twisted.application.service import Service
from twisted.internet.defer import Deferred, DeferredList
from twisted.internet.interfaces import IReactorTime

from mailcheck.assembly.cluster import Cluster, PersistentState
from mailcheck.checks.dnsbl.catalogue import (
    Catalogue,
    InvalidCatalogue,
    packaged_catalogue_text,
    parse_catalogue,
)
from mailcheck.config.options import BlocklistOptions, Config
from mailcheck.config.reading import ConfigError
from mailcheck.config.rules import parse_pairs
from mailcheck.core.identifiers import RandomBytes
from mailcheck.daemon.periodic import PeriodicService
from mailcheck.daemon.services import ChecksService
from mailcheck.dns.caching_resolver import AnswerCache, CacheLimits, CachingResolver
from mailcheck.dns.exchange import DnsReactor
from mailcheck.dns.internet import InternetResolver
from mailcheck.dns.resolution import ResolverSettings
from mailcheck.dns.resolver import StubResolver
from mailcheck.dns.servers import parse_server, system_servers
from mailcheck.operations.cached_values import CachedValues
from mailcheck.operations.domains.check_blocklists import CheckBlocklists, QueryBlocklists
from mailcheck.operations.domains.check_mx import CheckMx
from mailcheck.operations.domains.compute_reputation import (
    ComputeReputation,
    Reputation,
    ReputationSources,
)
from mailcheck.operations.domains.describe_domain import DescribeDomain
from mailcheck.operations.domains.known_selectors import SAVE_INTERVAL, LearnedSelectors
from mailcheck.operations.domains.watches.collect_facts import (
    CollectFacts,
    NullCache,
    WatchBudgets,
)
from mailcheck.operations.domains.zone_health import (
    FIRST_TEST_AFTER,
    FIRST_TEST_PATIENCE,
    LOOK_INTERVAL,
    BlocklistHealth,
    ListBudgets,
    ZoneHealthCheck,
)
from mailcheck.operations.semaphores import CheckSlots
from mailcheck.ports.clocks import ClockAndRandomness, Now
from mailcheck.ports.probes import (
    ClientDocuments,
    DomainFiles,
    LinkProber,
    MailRelay,
    RegistrationFinder,
    StarttlsProber,
)
from mailcheck.ports.resolver import Resolver


class OutsideProbes(
    StarttlsProber,
    RegistrationFinder,
    DomainFiles,
    ClientDocuments,
    LinkProber,
    MailRelay,
    Protocol,
):
    """Examines hosts, registries, policy files, documents of OAuth clients, and links.

    It also sends released mail.
    """

    def open(self) -> None:
        """Prepare the probes; raise an error for an invalid configuration."""

    def stop(self) -> None:
        """Stop the probes under way."""


class Resolvers(Struct, frozen=True):
    """The DNS resolvers.

    ``plain`` and ``lists`` cache answers. ``fresh_lists`` does not, so that a self-test sees
    current answers. ``stubs`` are closed at the end. The last of them is used by ``lists``.
    ``internet`` is the resolver of the system, unless the operator names one.
    """

    plain: Resolver
    lists: Resolver
    fresh_lists: Resolver
    stubs: tuple[StubResolver, ...] = ()
    internet: InternetResolver | None = None

    @property
    def servers_of_lists(self) -> list[str]:
        """The DNS servers to which blocklist queries are sent."""
        return [
            f"{server.host} {server.port}" for stub in self.stubs[-1:] for server in stub.servers
        ]

    def close(self) -> Deferred[Any]:
        """End all queries with a timeout. Fires when all sockets are closed."""
        return DeferredList([stub.close() for stub in self.stubs])


def open_resolvers(
    config: Config,
    reactor: Any,
    random_bytes: RandomBytes,
    watch: Callable[[Resolver], Resolver] = lambda resolver: resolver,
) -> Resolvers:
    """Build the resolvers of a configuration. Nothing is sent yet.

    :param watch: wraps the resolvers, for example for a progress display.
    """

    def stub(texts: tuple[str, ...]) -> StubResolver:
        servers = tuple(map(parse_server, texts)) or system_servers()
        return StubResolver(cast(DnsReactor, reactor), servers, ResolverSettings(), random_bytes)

    def caching(behind: Resolver) -> Resolver:
        return watch(CachingResolver(behind, AnswerCache(CacheLimits()), reactor))

    plain = stub(config.dns.resolvers)
    # An operator who names resolvers may mean a DNS without the Internet.
    internet = None if config.dns.resolvers else InternetResolver(plain, reactor)
    trusted: Resolver = internet or plain
    answers = caching(trusted)
    if not config.blocklists.resolvers:
        return Resolvers(answers, answers, trusted, (plain,), internet)
    lists = stub(config.blocklists.resolvers)
    return Resolvers(answers, caching(lists), lists, (plain, lists), internet)


def daily_budgets(config: Config) -> dict[str, int]:
    """Return the budgets of zones that replace those of the catalogue."""
    pairs = parse_pairs(config.blocklists.daily_budgets)
    return {zone: int(number) for zone, number in pairs.items()}


def configured_catalogue(config: Config) -> Catalogue:
    """Read the catalogue of a configuration.

    :raises ConfigError: it cannot be read; the message names the file and the entry.
    """
    return load_catalogue(config.blocklists, allow_special_use=config.dns.allow_special_use)


def load_catalogue(options: BlocklistOptions, *, allow_special_use: bool) -> Catalogue:
    """Read the operator's catalogue of blocklists, or the one of the package.

    :raises ConfigError: it cannot be read; the message names the file and the entry.
    """
    source = options.catalogue or "the catalogue of the package"
    try:
        text = packaged_catalogue_text()
        if options.catalogue:
            text = Path(options.catalogue).read_text("utf-8")
        return _read_catalogue(text, options.keys, options.disabled, allow_special_use)
    except (OSError, UnicodeDecodeError, InvalidCatalogue) as error:
        raise ConfigError(f"[blocklists] {source}: {error}") from None


@lru_cache(maxsize=8)
def _read_catalogue(
    text: str, keys: tuple[str, ...], disabled: tuple[str, ...], allow_special_use: bool
) -> Catalogue:
    """Read a catalogue. Each one is read once in a process."""
    return parse_catalogue(
        text, keys=parse_pairs(keys), disabled=disabled, allow_special_use=allow_special_use
    )


class CheckRuntime(Struct):
    """Dependencies of domain checks, in a daemon or in a command without one.

    :param config: a reload replaces it. Options that need a restart keep their values.
    :param probes: examines hosts, registries, policy files and links.
    :param persistent_state: keeps the state that must survive restarts, if the cluster does not.
    """

    config: Config
    clocks: ClockAndRandomness
    resolvers: Resolvers
    probes: OutsideProbes
    cluster: Cluster
    persistent_state: PersistentState

    @property
    def now(self) -> Now:
        """The time of day."""
        return self.clocks.now

    @property
    def clock(self) -> IReactorTime:
        """The clock of timeouts and periodic work."""
        return self.clocks.clock

    def close(self) -> Deferred[Any]:
        """Stop the probes and close the resolvers. Fires when all sockets are closed."""
        self.probes.stop()
        return self.resolvers.close()


class DomainChecks(Struct, frozen=True):
    """Checks of a domain that share one set of query budgets for blocklists."""

    lists: QueryBlocklists
    blocklists: CheckBlocklists
    reputation: ComputeReputation
    domain: DescribeDomain


class Checks(Struct, frozen=True):
    """All checks of a domain. ``watched`` is used by watches."""

    catalogue: Catalogue
    budgets: ListBudgets
    health: ZoneHealthCheck
    selectors: LearnedSelectors
    mx: CheckMx
    turns: CheckSlots
    lists: QueryBlocklists
    blocklists: CheckBlocklists
    reputation: ComputeReputation
    domain: DescribeDomain
    watched: CollectFacts
    queries: tuple[QueryBlocklists, ...]

    def with_tested_lists(self) -> AbstractAsyncContextManager[None]:
        """Run the self-test of blocklists beside the checks, as in the daemon.

        For commands without a daemon.
        """
        return self.health.testing_in_background(self.lists.deadline)


def build_checks(runtime: CheckRuntime) -> Checks:
    """Build all checks of a domain.

    :raises ConfigError: a file that the configuration names is not usable.
    """
    config, cluster, persistent_state = runtime.config, runtime.cluster, runtime.persistent_state
    plain, probes, clocks = (
        runtime.resolvers.plain,
        runtime.probes,
        runtime.clocks,
    )
    daily = daily_budgets(config)
    # A copy, since a reload changes it.
    catalogue = copy(configured_catalogue(config))
    selectors = LearnedSelectors(persistent_state.selectors, runtime.now)
    budgets = ListBudgets(daily, persistent_state.counters, runtime.now)
    health = ZoneHealthCheck(
        catalogue.blocklists,
        runtime.resolvers.fresh_lists,
        runtime.resolvers.servers_of_lists,
        budgets,
        CachedValues(persistent_state.memory, "health", BlocklistHealth),
        tested=cluster.notifications("lists"),
        clocks=clocks,
    )

    def build(
        of: ListBudgets, kept: CachedValues[Reputation], *, verifies_fixes: bool
    ) -> DomainChecks:
        allow_private = config.network.allow_private
        lists = QueryBlocklists(
            runtime.resolvers.lists, of, health, runtime.clock, config.blocklists.deadline
        )
        blocklists = CheckBlocklists(
            catalogue, plain, lists, runtime.clock, allow_private=allow_private
        )
        sources = ReputationSources(plain, blocklists, probes, probes, selectors.of)
        reputation = ComputeReputation(
            sources,
            kept,
            clocks,
            allow_private=allow_private,
            verifies_fixes=verifies_fixes,
        )
        domain = DescribeDomain(
            plain,
            probes,
            selectors.of,
            clocks,
            is_validating=config.dns.validating,
            allow_private=allow_private,
            verifies_fixes=verifies_fixes,
        )
        return DomainChecks(lists, blocklists, reputation, domain)

    asked = build(
        budgets, CachedValues(cluster.memory, "reputation", Reputation), verifies_fixes=True
    )
    # Watches leave most blocklist queries to clients, and have no cache and no self-test.
    watched = build(
        WatchBudgets(daily, persistent_state.counters, runtime.now),
        CachedValues(NullCache(), "watched", Reputation),
        verifies_fixes=False,
    )
    return Checks(
        catalogue=catalogue,
        budgets=budgets,
        health=health,
        selectors=selectors,
        mx=CheckMx(plain, selectors.of, runtime.clock, allow_private=config.network.allow_private),
        turns=CheckSlots(runtime.clock),
        lists=asked.lists,
        blocklists=asked.blocklists,
        reputation=asked.reputation,
        domain=asked.domain,
        watched=CollectFacts(
            watched.reputation,
            watched.domain,
            watched.blocklists,
            plain,
            probes,
            clocks=clocks,
        ),
        queries=(asked.lists, watched.lists),
    )


def check_services(runtime: CheckRuntime, checks: Checks) -> list[Service]:
    """Return the services that test the blocklists, save selectors and close the sockets."""
    checks.health.expect(FIRST_TEST_AFTER + FIRST_TEST_PATIENCE)
    return [
        PeriodicService(
            "testing the blocklists",
            LOOK_INTERVAL,
            checks.health.refresh,
            runtime.clock,
            begins_after=FIRST_TEST_AFTER,
        ),
        PeriodicService(
            "keeping selectors",
            SAVE_INTERVAL,
            checks.selectors.save,
            runtime.clock,
            ends_with_round=True,
        ),
        # Stopped before the self-tests, so that a running round ends at once.
        ChecksService(runtime.close),
    ]
