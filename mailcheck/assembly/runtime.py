"""The parts that all others need, opened from the configuration.

Opening a runtime does not connect to anything or start anything.
"""

import os
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct
from twisted.application.service import IService

from mailcheck.api.urls import PublicUrls
from mailcheck.assembly.checks import CheckRuntime, OutsideProbes, Resolvers, open_resolvers
from mailcheck.assembly.cluster import PersistentState, open_cluster
from mailcheck.assembly.deployment import (
    memory_plan,
    naming,
    public_url,
    require_writable,
)
from mailcheck.assembly.probes import EventDialer, Probes
from mailcheck.assembly.scoring import FilterParts, build_filters
from mailcheck.assembly.workers import Workers, in_short_turns
from mailcheck.cluster.local import CountersOrAlone
from mailcheck.config.options import Config
from mailcheck.config.reading import ConfigError
from mailcheck.core.errors import StoreUnavailable
from mailcheck.core.identifiers import KEY_FILE, PASSWORD_FILE, RandomBytes
from mailcheck.core.instants import DAY, HOUR, SECOND
from mailcheck.core.memory.client_limits import MemoryPlan
from mailcheck.core.memory.instruments import Conditions, RedisFigures
from mailcheck.daemon.presence import Presence
from mailcheck.daemon.wall_clock import WallClock
from mailcheck.engines.database import DatabaseEngine
from mailcheck.engines.sqlite import IN_MEMORY, SqliteEngine, SqlitePresence
from mailcheck.operations.concurrency import MailTraffic, PacedQueue
from mailcheck.operations.incidents import Incidents
from mailcheck.ops.journal import ClientJournal, Pace
from mailcheck.ports.clocks import CallSoon, ClockAndRandomness, Now
from mailcheck.ports.cluster import Memory, RateCounters, SelectorStore
from mailcheck.ports.identity_provider import IdentityProvider
from mailcheck.ports.workers import Worker
from mailcheck.store.domains.local_state import SqlMemory, SqlRateCounters, SqlSelectors


class Outside(Struct, frozen=True):
    """The external services that the daemon uses, besides its store and its cluster.

    :param probes: examines hosts, registries, policy files and links.
    :param receivers: opens connections to receivers of webhooks and alerts.
    :param identity_provider: the company's sign-in service, if one is configured.
    """

    resolvers: Resolvers
    probes: OutsideProbes
    receivers: EventDialer
    filters: FilterParts
    identity_provider: IdentityProvider | None = None


class Runtime(CheckRuntime):
    """The parts that all other parts of a daemon need.

    :param reactor: runs on the clock of ``clocks``.
    :param turns: limits how long requests with long computations run without a pause.
    :param holder: the name under which this process holds leases.
    """

    reactor: Any
    memory: MemoryPlan
    workers: Workers
    engine: DatabaseEngine
    traffic: MailTraffic
    turns: PacedQueue
    conditions: Conditions
    pace: Pace
    clients: ClientJournal
    receivers: EventDialer
    filters: FilterParts
    identity_provider: IdentityProvider | None
    urls: PublicUrls
    holder: str
    redis_figures: RedisFigures
    cluster_services: Sequence[IService]

    @property
    def retention(self) -> int:
        """The retention of mail in milliseconds."""
        return int(self.config.inbox.retention_hours * HOUR)


def time_and_chance_of(
    config: Config, seconds: Callable[[], float], clock: Any, random_bytes: RandomBytes
) -> ClockAndRandomness:
    """Return the clocks of a daemon: ``seconds`` is the time of day, ``clock`` is monotonic."""
    longest = max(config.inbox.retention_hours * HOUR, config.tests.retention_days * DAY)
    wall_clock = WallClock(seconds, clock, longest / SECOND)
    return ClockAndRandomness(wall_clock.now, wall_clock.expiry_now, clock, random_bytes)


def open_runtime(
    config: Config,
    reactor: Any,
    clocks: ClockAndRandomness,
    workers: Workers,
    outside: Outside | None = None,
) -> Runtime:
    """Open a runtime.

    :param outside: replaces the configured external services.
    :raises ConfigError: a configured file or directory is not usable.
    """
    conditions, figures, pace = Conditions(), RedisFigures(), Pace()
    cluster, cluster_services = open_cluster(config, reactor, conditions, figures)
    traffic = MailTraffic(reactor, workers.call_soon)
    engine = database_engine(config, workers, traffic.call_batched)
    engine.incidents = Incidents(reactor.seconds, clocks.random_bytes)
    if outside is None:
        outside = open_outside(config, reactor, clocks, workers.analysis, cluster)
    return Runtime(
        config=config,
        clocks=clocks,
        resolvers=outside.resolvers,
        probes=outside.probes,
        cluster=cluster,
        persistent_state=cluster if config.cluster.redis else stored_state(engine, clocks.now),
        reactor=reactor,
        memory=memory_plan(config),
        workers=workers,
        engine=engine,
        traffic=traffic,
        turns=PacedQueue(reactor),
        conditions=conditions,
        pace=pace,
        clients=ClientJournal(pace),
        receivers=outside.receivers,
        filters=outside.filters,
        identity_provider=outside.identity_provider,
        urls=PublicUrls(public_url(config)),
        holder=lease_holder(config, clocks.random_bytes),
        redis_figures=figures,
        cluster_services=cluster_services,
    )


def open_outside(
    config: Config,
    reactor: Any,
    clocks: ClockAndRandomness,
    worker: Worker,
    shared: PersistentState,
) -> Outside:
    """Open the configured external services. Nothing is sent, read or started yet.

    :param worker: parses large mails for the content filter.
    :param shared: caches results of probes and counts connections.
    """
    resolvers = open_resolvers(config, in_short_turns(reactor), clocks.random_bytes)
    probes = Probes(config, reactor, clocks, resolvers.plain, shared)
    filters = build_filters(config, reactor, worker, memory_plan(config))
    provider = open_identity_provider(config, reactor)
    return Outside(resolvers, probes, probes, filters, provider)


def open_identity_provider(config: Config, reactor: Any) -> IdentityProvider | None:
    """Return the connection to the company's sign-in service, or `None` without one.

    :raises ConfigError: the file with certificate authorities is not usable.
    """
    if not config.oidc.issuer:
        return None
    # Imported only if needed, since few daemons have one.
    from mailcheck.probes.identity_provider import HttpIdentityProvider
    from mailcheck.probes.trust import NoAuthorities, find_trust_roots

    ca_file = config.oidc.ca_file or config.probes.ca_file
    if config.oidc.ca_file:
        try:
            find_trust_roots(ca_file)
        except NoAuthorities as problem:
            raise ConfigError(f"[oidc] ca_file: {problem}") from None
    return HttpIdentityProvider(reactor, lambda: find_trust_roots(ca_file))


def database_engine(config: Config, workers: Workers, gather: CallSoon) -> DatabaseEngine:
    """Create the engine of the configured database, without opening it.

    :param gather: schedules the end of a batch. Writes until then share a commit.
    :raises ConfigError: the directory of a SQLite file cannot be written.
    """
    url, writer, reader = config.storage.url, workers.writer, workers.reader
    if config.storage.is_shared:
        # Imported only if needed, since psycopg2 takes time and memory.
        from mailcheck.engines.postgresql import PostgresqlEngine

        return PostgresqlEngine(url, writer, reader, gather)
    path = config.storage.file
    if path != IN_MEMORY:
        with naming("[storage] url"):
            require_writable(Path(path).parent)
            if Path(path).is_dir():
                raise ValueError(f"{path} is a folder: name a file in it, like {path}/mail.db")
    state = Path(config.storage.state_directory)
    state_files = [state / name for name in (KEY_FILE, PASSWORD_FILE)]
    return SqliteEngine(path, writer, reader, gather, state_files)


def daemon_presence(config: Config, name: str) -> Presence | None:
    """Return the registration of this daemon in the database, under ``name``."""
    if not config.storage.is_shared:
        path = config.storage.file
        return None if path == IN_MEMORY else SqlitePresence(path)
    from mailcheck.engines.postgresql import PostgresqlPresence

    return PostgresqlPresence(config.storage.url, name=name, is_alone=not config.cluster.redis)


class StoredState(NamedTuple):
    """The state that a daemon without Redis has in the store, so that it survives restarts."""

    counters: RateCounters
    memory: Memory
    selectors: SelectorStore


def stored_state(engine: DatabaseEngine, now: Now) -> StoredState:
    """Return it. If the store is full, blocklist queries are counted in memory."""
    counters = CountersOrAlone(SqlRateCounters(engine), StoreUnavailable)
    return StoredState(counters, SqlMemory(engine, now), SqlSelectors(engine))


def lease_holder(config: Config, random_bytes: RandomBytes) -> str:
    """Return the name of this process among all on the same database.

    A SQLite file is used by one daemon, before and after a restart, which continues its work
    at once. On a server, other daemons wait for the end of its leases.
    """
    if not config.storage.is_shared:
        return "daemon"
    return f"{socket.gethostname()}:{os.getpid()}:{random_bytes(6).hex()}"
