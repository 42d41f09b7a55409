"""Builds the domain checks from a configuration: for the daemon, and for the command line alone."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, cast

from msgspec import Struct
from twisted.internet.defer import Deferred, DeferredList

from mailcheck.assembly.cluster import Cluster, Lasting
from mailcheck.checks.dnsbl.catalogue import (
    BadCatalogue,
    Catalogue,
    packaged_catalogue_text,
    parse_catalogue,
)
from mailcheck.config.options import BlocklistOptions, Config
from mailcheck.config.reading import ConfigError
from mailcheck.config.rules import parse_pairs
from mailcheck.core.identifiers import RandomBytes
from mailcheck.daemon.periodic import PeriodicService
from mailcheck.dns.caching_resolver import AnswerCache, CacheLimits, CachingResolver
from mailcheck.dns.exchange import DnsReactor
from mailcheck.dns.resolution import ResolverSettings
from mailcheck.dns.resolver import StubResolver
from mailcheck.dns.servers import parse_server, system_servers
from mailcheck.operations.domains.check_blocklists import AskBlocklists, CheckBlocklists
from mailcheck.operations.domains.check_mx import CheckMx
from mailcheck.operations.domains.compute_reputation import (
    ComputeReputation,
    Reputation,
    ReputationSources,
)
from mailcheck.operations.domains.describe_domain import DescribeDomain
from mailcheck.operations.domains.known_selectors import SAVE_INTERVAL, LearnedSelectors
from mailcheck.operations.domains.watches.look import (
    LookAtWatched,
    NothingRemembered,
    WatchersBudgets,
)
from mailcheck.operations.domains.zone_health import (
    FIRST_TEST_AFTER,
    FIRST_TEST_PATIENCE,
    LOOK_INTERVAL,
    HealthOfLists,
    ListBudgets,
    ZoneHealthCheck,
)
from mailcheck.operations.kept_values import KeptValues
from mailcheck.operations.places import CheckTurns
from mailcheck.ports.clocks import TimeAndChance
from mailcheck.ports.probes import LinkProber, PolicyFetcher, RegistrationFinder, StarttlsProber
from mailcheck.ports.resolver import Resolver


class OutsideProbes(StarttlsProber, RegistrationFinder, PolicyFetcher, LinkProber, Protocol):
    """Whoever looks at hosts, registries, policy files and the links of mails."""

    def open(self) -> None:
        """Get ready; says what is wrong with the configuration."""

    def stop(self) -> None:
        """End what is under way."""


class Resolvers(Struct, frozen=True):
    """Who answers questions.

    ``plain`` and ``lists`` remember answers; ``fresh_lists`` does not, so that
    a self-test sees what a list says now. ``stubs`` are closed in the end; the last one is
    behind ``lists``.
    """

    plain: Resolver
    lists: Resolver
    fresh_lists: Resolver
    stubs: tuple[StubResolver, ...] = ()

    @property
    def servers_of_lists(self) -> list[str]:
        """The DNS servers that blocklist queries are sent to."""
        return [
            f"{server.host} {server.port}" for stub in self.stubs[-1:] for server in stub.servers
        ]

    def close(self) -> Deferred[Any]:
        """End all questions as timed out; fires when all sockets are closed."""
        return DeferredList([stub.close() for stub in self.stubs])


def open_resolvers(
    config: Config,
    reactor: Any,
    random_bytes: RandomBytes,
    watch: Callable[[Resolver], Resolver] = lambda resolver: resolver,
) -> Resolvers:
    """Make the resolvers that a configuration names; nothing is sent yet.

    :param watch: what stands between them and those who ask, such as a progress display.
    """

    def stub(texts: tuple[str, ...]) -> StubResolver:
        servers = tuple(map(parse_server, texts)) or system_servers()
        return StubResolver(cast(DnsReactor, reactor), servers, ResolverSettings(), random_bytes)

    def caching(behind: StubResolver) -> Resolver:
        return watch(CachingResolver(behind, AnswerCache(CacheLimits()), reactor))

    plain = stub(config.dns.resolvers)
    answers = caching(plain)
    if not config.blocklists.resolvers:
        return Resolvers(answers, answers, plain, (plain,))
    lists = stub(config.blocklists.resolvers)
    return Resolvers(answers, caching(lists), lists, (plain, lists))


def load_catalogue(options: BlocklistOptions, *, allow_special_use: bool) -> Catalogue:
    """Read the catalogue of the operator, or the one of the package.

    :raises ConfigError: it can't be read; names the file and the entry.
    """
    source = options.catalogue or "the catalogue of the package"
    try:
        text = packaged_catalogue_text()
        if options.catalogue:
            text = Path(options.catalogue).read_text("utf-8")
        return _read_catalogue(text, options.keys, options.disabled, allow_special_use)
    except (OSError, UnicodeDecodeError, BadCatalogue) as error:
        raise ConfigError(f"[blocklists] {source}: {error}") from None


@lru_cache(maxsize=8)
def _read_catalogue(
    text: str, keys: tuple[str, ...], disabled: tuple[str, ...], allow_special_use: bool
) -> Catalogue:
    """Read a catalogue; once for all who have the same in one process."""
    return parse_catalogue(
        text, keys=parse_pairs(keys), disabled=disabled, allow_special_use=allow_special_use
    )


class ChecksAssembly:
    """Every check of a domain, put together.

    :raises ConfigError: a file that the configuration names can't be used.
    """

    def __init__(
        self,
        config: Config,
        time_and_chance: TimeAndChance,
        resolvers: Resolvers,
        probes: OutsideProbes,
        cluster: Cluster,
        lasting: Lasting | None = None,
    ) -> None:
        """``lasting`` has what a restart must not forget, where the cluster does forget it."""
        lasting = lasting or cluster
        self._config = config
        self._time_and_chance = time_and_chance
        self._clock = clock = time_and_chance.clock
        self.resolvers = resolvers
        self._probes = probes
        self._allow_private = config.network.allow_private
        self._now = time_and_chance.now
        self.catalogue = load_catalogue(
            config.blocklists, allow_special_use=config.dns.allow_special_use
        )
        self._build_blocklists(cluster, lasting)
        self.mx = CheckMx(resolvers.plain, clock, allow_private=self._allow_private)
        self.selectors = LearnedSelectors(lasting.selectors, self._now)
        self.turns = CheckTurns(clock)
        self._build_wholes(probes, cluster)
        self.watched = self._build_watched(lasting)

    def _build_blocklists(self, cluster: Cluster, lasting: Lasting) -> None:
        options, resolvers = self._config.blocklists, self.resolvers
        self.budgets = ListBudgets(
            _as_numbers(parse_pairs(options.daily_budgets)), lasting.counters, self._now
        )
        self.health = ZoneHealthCheck(
            self.catalogue.blocklists,
            resolvers.fresh_lists,
            resolvers.servers_of_lists,
            self.budgets,
            KeptValues(lasting.memory, "health", HealthOfLists),
            cluster.wake_ups("lists"),
            self._time_and_chance,
        )
        self.lists = AskBlocklists(
            resolvers.lists, self.budgets, self.health, self._clock, options.deadline
        )
        self.blocklists = CheckBlocklists(
            self.catalogue,
            resolvers.plain,
            self.lists,
            self._clock,
            allow_private=self._allow_private,
        )

    def _build_wholes(self, probes: OutsideProbes, cluster: Cluster) -> None:
        plain, time_and_chance = self.resolvers.plain, self._time_and_chance
        sources = ReputationSources(plain, self.blocklists, probes, probes, self.selectors.of)
        kept: KeptValues[Reputation] = KeptValues(cluster.memory, "reputation", Reputation)
        self.reputation = ComputeReputation(
            sources, kept, time_and_chance, allow_private=self._allow_private
        )
        self.domain = DescribeDomain(
            plain,
            probes,
            self.selectors.of,
            time_and_chance,
            is_validating=self._config.dns.validating,
            allow_private=self._allow_private,
        )

    def _build_watched(self, lasting: Lasting) -> LookAtWatched:
        """Build what watches look with: it leaves lists to others, remembers and proves nothing."""
        plain, probes, time_and_chance = self.resolvers.plain, self._probes, self._time_and_chance
        clock = self._clock
        options, is_private = self._config.blocklists, self._allow_private
        budgets = WatchersBudgets(
            _as_numbers(parse_pairs(options.daily_budgets)), lasting.counters, self._now
        )
        lists = AskBlocklists(self.resolvers.lists, budgets, self.health, clock, options.deadline)
        blocklists = CheckBlocklists(self.catalogue, plain, lists, clock, allow_private=is_private)
        sources = ReputationSources(plain, blocklists, probes, probes, self.selectors.of)
        reputation = ComputeReputation(
            sources,
            KeptValues(NothingRemembered(), "watched", Reputation),
            time_and_chance,
            allow_private=is_private,
            is_proving=False,
        )
        domain = DescribeDomain(
            plain,
            probes,
            self.selectors.of,
            time_and_chance,
            is_validating=self._config.dns.validating,
            allow_private=is_private,
            is_proving=False,
        )
        return LookAtWatched(reputation, domain, blocklists, plain, probes, time_and_chance)

    def services(self) -> Iterator[PeriodicService]:
        """Give what tests the blocklists again and again, and what keeps selectors."""
        self.health.expect(FIRST_TEST_AFTER + FIRST_TEST_PATIENCE)
        yield PeriodicService(
            "testing the blocklists",
            LOOK_INTERVAL,
            self.health.look,
            self._clock,
            begins_after=FIRST_TEST_AFTER,
        )
        yield PeriodicService(
            "keeping selectors",
            SAVE_INTERVAL,
            self.selectors.save,
            self._clock,
            ends_with_round=True,
        )

    def with_tested_lists(self) -> AbstractAsyncContextManager[None]:
        """Judge lists by a self-test that runs beside the checks, as the daemon's checks are.

        For commands without a daemon.
        """
        return self.health.tested_beside(self._config.blocklists.deadline)

    def close(self) -> Deferred[Any]:
        """End what is under way; fires when all sockets are closed."""
        self._probes.stop()
        return self.resolvers.close()


def _as_numbers(pairs: Mapping[str, str]) -> dict[str, int]:
    return {zone: int(number) for zone, number in pairs.items()}
