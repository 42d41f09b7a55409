"""Probing all mail hosts of a domain."""

from twisted.internet.interfaces import IReactorTime

from mailcheck.checks.hosts.mx import MxVerdict
from mailcheck.checks.hosts.starttls import (
    ProbeOutcome,
    StarttlsProbe,
    StarttlsVerdict,
    judge_starttls,
)
from mailcheck.operations.concurrency import run_all
from mailcheck.ports.probes import StarttlsProber

MAX_PROBED_HOSTS = 4
"""Mail hosts of one domain that are probed, best first (DECISIONS.md section 2)."""


async def probe_hosts(
    mx: MxVerdict, prober: StarttlsProber, clock: IReactorTime, seconds: float
) -> StarttlsVerdict:
    """Probe the hosts that mail for a domain goes to, all at once.

    :param seconds: after which a host that is still being probed is not known.
    """

    async def probe(exchange: str) -> StarttlsProbe:
        unknown = StarttlsProbe(exchange, ProbeOutcome.NOT_PROBED)
        probing = prober.probe(exchange)
        return await probing.addTimeout(seconds, clock, lambda _, __: unknown)

    return judge_starttls(mx, await run_all(*map(probe, _exchanges(mx))))


def _exchanges(mx: MxVerdict) -> list[str]:
    if mx.is_null_mx:
        return []
    if mx.is_implicit_mx:
        return [mx.domain]
    return [host.exchange for host in mx.hosts if host.is_usable][:MAX_PROBED_HOSTS]
