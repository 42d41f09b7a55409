"""Chooses what a daemon shares with others: nothing, or what one Redis holds."""

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
from mailcheck.cluster.redis import RedisFigures
from mailcheck.cluster.redis_address import RedisAddress, parse_redis_address
from mailcheck.config.options import Config
from mailcheck.config.reading import ConfigError
from mailcheck.core.instruments import Conditions
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
"""As the log, and `mailcheck_well`, call it."""


class PersistentState(Protocol):
    """What is counted and known of the outside."""

    @property
    def counters(self) -> RateCounters:
        """Count requests of all daemons."""

    @property
    def memory(self) -> Memory:
        """Keep what was found out."""

    @property
    def selectors(self) -> SelectorStore:
        """Keep which selectors domains sign with."""


class Cluster(PersistentState, Protocol):
    """What daemons share; one that is alone has it in memory."""

    def notifications(self, channel: str) -> Notifications[Any]:
        """Make the wake-ups of one kind."""

    def semaphore(self, name: str, per_owner: int) -> OwnerSemaphore:
        """Make places of which each owner may have so many."""

    @property
    def own_name(self) -> str:
        """Give the name by which the others know this daemon, in hexadecimal; alone it has none."""

    def note_present(self, names: Collection[str]) -> None:
        """Learn by their names which daemons the database knows."""

    def when_hints_are_lost(self, look: Callable[[], None]) -> None:
        """Call ``look`` whenever wake-ups may have been lost."""


def share_work(cluster: Cluster, kind: str, look: Callable[[], None]) -> Callable[[], None]:
    """Give what says that work of a kind waits: whoever has time takes it, in any daemon.

    :param look: sees what waits and takes of it what there is time for; called whenever some may
        wait, here or elsewhere.
    """
    waiting: Notifications[str] = cluster.notifications(kind)
    waiting.listen(lambda _: look())
    cluster.when_hints_are_lost(look)
    return lambda: waiting.publish("some")


def open_cluster(
    config: Config, reactor: Any, conditions: Conditions, figures: RedisFigures
) -> tuple[Cluster, list[IService]]:
    """Give what the configuration asks for, and the services that keep it up.

    :param conditions: are told of each loss and return of Redis.
    :raises ConfigError: the authorities that Redis is checked against can't be read.
    """
    if not config.cluster.redis:
        return LocalCluster(reactor), []
    # Imported here: a daemon that is alone needs none of it.
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
    """Give what connects to Redis; with TLS it must prove its name by a known authority.

    :raises ConfigError: there are no authorities to check it against.
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
