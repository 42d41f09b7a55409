"""Chooses where a daemon keeps cluster state: in its own memory, or in a shared Redis."""

from collections.abc import Callable, Collection
from typing import Any, Protocol

from twisted.application.service import IService
from twisted.internet.endpoints import (
    HostnameEndpoint,
    UNIXClientEndpoint,
    wrapClientTLS,
)
from twisted.internet.interfaces import IStreamClientEndpoint

from mailcheck.cluster.local import LocalCluster
from mailcheck.cluster.redis_address import RedisAddress, parse_redis_address
from mailcheck.config.options import Config
from mailcheck.config.reading import ConfigError
from mailcheck.core.memory.instruments import Conditions, RedisFigures
from mailcheck.daemon.periodic import PeriodicService
from mailcheck.ports.cluster import (
    Memory,
    Notifications,
    OwnerSemaphore,
    RateCounters,
    SelectorStore,
)
from mailcheck.probes.trust import NoAuthorities, find_trust_roots

CONNECT_SECONDS = 2.0

REDIS = "Redis"
"""Name of Redis in the log and in `mailcheck_well`."""


class PersistentState(Protocol):
    """Counters and cached results."""

    @property
    def counters(self) -> RateCounters:
        """The counters of requests."""

    @property
    def memory(self) -> Memory:
        """The cache of results."""

    @property
    def selectors(self) -> SelectorStore:
        """The known DKIM selectors."""


class Cluster(PersistentState, Protocol):
    """The state that daemons share. A single daemon has it in memory."""

    def notifications(self, channel: str) -> Notifications[Any]:
        """Return the notifications of one channel."""

    def semaphore(self, name: str, per_owner: int) -> OwnerSemaphore:
        """Return a semaphore with ``per_owner`` permits for each owner."""

    @property
    def own_name(self) -> str:
        """The hexadecimal name of this daemon among others; empty for a single daemon."""

    def note_present(self, names: Collection[str]) -> None:
        """Record the names of the daemons that the database knows."""

    def when_hints_are_lost(self, look: Callable[[], None]) -> None:
        """Call ``look`` whenever notifications may have been lost."""


def share_work(cluster: Cluster, kind: str, look: Callable[[], None]) -> Callable[[], None]:
    """Return a function that announces new work of a kind to all daemons.

    :param look: looks for work and starts what there is capacity for. It is called whenever
        work may have arrived, in this daemon or in another.
    """
    waiting: Notifications[str] = cluster.notifications(kind)
    waiting.listen(lambda _: look())
    cluster.when_hints_are_lost(look)
    return lambda: waiting.publish("some")


def open_cluster(
    config: Config, reactor: Any, conditions: Conditions, figures: RedisFigures
) -> tuple[Cluster, list[IService]]:
    """Return the configured cluster and the services that maintain its connections.

    :param conditions: notified of each loss and recovery of Redis.
    :raises ConfigError: the certificate authorities for Redis cannot be read.
    """
    if not config.cluster.redis:
        return LocalCluster(reactor), []
    # Imported here, since a single daemon does not need them.
    from mailcheck.cluster.redis import Redis
    from mailcheck.cluster.shared import RENEWAL, RedisCluster

    address = parse_redis_address(config.cluster.redis)
    endpoint = redis_endpoint(address, config.cluster.ca_file, reactor)

    def note(problem: str, cause: str) -> None:
        conditions.explain(REDIS, cause)
        conditions.set(REDIS, problem)

    redis = Redis(address, endpoint, reactor, note, figures)
    cluster = RedisCluster(redis, reactor)
    renewing = PeriodicService("renewing places", RENEWAL, cluster.renew, reactor)
    return cluster, [redis, cluster.others, renewing]


def redis_endpoint(address: RedisAddress, ca_file: str, reactor: Any) -> IStreamClientEndpoint:
    """Return the endpoint of Redis. With TLS, its certificate is verified.

    :raises ConfigError: there are no certificate authorities.
    """
    if address.path:
        return UNIXClientEndpoint(reactor, address.path, timeout=CONNECT_SECONDS)
    endpoint = HostnameEndpoint(reactor, address.host.encode(), address.port, CONNECT_SECONDS)
    if not address.is_tls:
        return endpoint
    try:
        return wrapClientTLS(find_trust_roots(ca_file).verify_as(address.host), endpoint)
    except NoAuthorities as problem:
        raise ConfigError(f"[cluster] ca_file: {problem}") from None
