"""What a daemon asks and tells beyond itself, its store and its cluster: as it is configured."""

from typing import Any

from msgspec import Struct

from mailcheck.assembly.checks import OutsideProbes, Resolvers, open_resolvers
from mailcheck.assembly.cluster import Lasting
from mailcheck.assembly.probes import EventDialer, Probes
from mailcheck.assembly.scoring import FilterAssembly, assemble_filter
from mailcheck.assembly.workers import in_short_turns
from mailcheck.config.options import Config
from mailcheck.ports.clocks import TimeAndChance
from mailcheck.ports.workers import Worker


class Outside(Struct, frozen=True):
    """Everybody whom a daemon asks or tells; tests have all of them written down.

    :param probes: look at hosts, registries, policy files and links.
    :param receivers: those of webhooks and alerts.
    """

    resolvers: Resolvers
    probes: OutsideProbes
    receivers: EventDialer
    spamd: FilterAssembly


def open_outside(
    config: Config,
    reactor: Any,
    time_and_chance: TimeAndChance,
    worker: Worker,
    shared: Lasting,
) -> Outside:
    """Give those whom a configuration names; nothing is sent, read or started yet.

    :param worker: takes mails apart for the content filter.
    :param shared: keeps what was found out, and counts connections.
    """
    resolvers = open_resolvers(config, in_short_turns(reactor), time_and_chance.random_bytes)
    probes = Probes(config, reactor, time_and_chance, resolvers.plain, shared)
    return Outside(resolvers, probes, probes, assemble_filter(config, reactor, worker))
