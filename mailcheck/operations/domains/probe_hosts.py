"""What the operations need of probes, and the probing of all mail hosts of a domain.

Every method fires with a value, whatever the host does, within a deadline of
its own. Cancelling stops waiting; a probe that is under way goes on for the
others and for the memory: a host is not asked again because a client went away.
"""

from enum import Enum
from typing import Protocol

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from mailcheck.checks.hosts.mta_sts import PolicyFetch
from mailcheck.checks.hosts.mx import MxVerdict
from mailcheck.checks.hosts.registration import RegistrationVerdict
from mailcheck.checks.hosts.starttls import (
    ProbeOutcome,
    StarttlsProbe,
    StarttlsVerdict,
    judge_starttls,
)
from mailcheck.operations.concurrency import run_all

MAX_PROBED_HOSTS = 4
"""Mail hosts of one domain that are probed, best first (DECISIONS.md section 2)."""


class OutboundPort(Enum):
    """Whether connections to port 25 leave this network."""

    OPEN = "open"
    BLOCKED = "blocked"
    """Not even hosts that take every connection can be reached."""
    UNKNOWN = "unknown"


class StarttlsProber(Protocol):
    """Looks what encryption mail hosts offer."""

    def probe(self, exchange: str) -> Deferred[StarttlsProbe]:
        """Probe one host, by its name in the MX record; at most once in ten minutes."""

    def outbound_port(self) -> Deferred[OutboundPort]:
        """Say whether probing is possible from here: asked where hosts were unreachable."""


class RegistrationFinder(Protocol):
    """Asks registries about domains."""

    def find_registration(self, domain: str) -> Deferred[RegistrationVerdict]:
        """Find the registration that a name (lower-case A-labels) belongs to."""


class PolicyFetcher(Protocol):
    """Fetches MTA-STS policy files."""

    def fetch_policy(self, domain: str) -> Deferred[PolicyFetch]:
        """Fetch the policy of a domain (lower-case A-labels), as a sending server would."""


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
