"""What the operations need of hosts out there: mail hosts, registries, policy files.

Every method fires with a value, whatever the host does, within a deadline of
its own. Cancelling stops waiting; a probe that is under way goes on for the
others and for the memory: a host is not asked again because a client went away.
"""

from enum import Enum
from typing import Protocol

from twisted.internet.defer import Deferred

from mailcheck.checks.registration import RegistrationVerdict
from mailcheck.checks.starttls import StarttlsProbe
from mailcheck.checks.transport_policy.mta_sts import PolicyFetch

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
