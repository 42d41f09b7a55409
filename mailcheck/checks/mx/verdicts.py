"""What is known of a domain's mail hosts."""

from dataclasses import dataclass
from enum import Enum

from mailcheck.checks.findings import Finding
from mailcheck.checks.lookups import HostAddresses, Presence
from mailcheck.core.network_addresses import IpAddress


class HostProblem(Enum):
    """Why mail does not, or not everywhere, reach a mail host."""

    DEAD = "dead"
    """The name has no address."""
    NOT_PUBLIC = "not-public"
    """All its addresses are private or otherwise not reachable from the Internet."""
    PARTLY_PUBLIC = "partly-public"
    """Some of its addresses are."""
    ADDRESS_LITERAL = "address-literal"
    """An IP address stands where a host name must (RFC 5321 5.1)."""
    ALIAS = "alias"
    """The name is a CNAME, which an MX must not point at (RFC 2181 10.3)."""
    UNDETERMINED = "undetermined"
    """Its addresses could not be found out."""

    @property
    def stops_mail(self) -> bool:
        """Tell whether no mail can arrive over such a host."""
        return self in (HostProblem.DEAD, HostProblem.NOT_PUBLIC, HostProblem.ADDRESS_LITERAL)


@dataclass(frozen=True, slots=True)
class MailHost:
    """One MX record with what is behind its name."""

    exchange: str
    preference: int
    host: HostAddresses
    problem: HostProblem | None

    @property
    def addresses(self) -> tuple[IpAddress, ...]:
        """Give all its addresses, IPv4 before IPv6."""
        return self.host.addresses

    @property
    def is_usable(self) -> bool:
        """Tell whether it has an address that mail can be sent to."""
        return self.problem in (None, HostProblem.ALIAS, HostProblem.PARTLY_PUBLIC)


@dataclass(frozen=True, slots=True)
class MxVerdict:
    """The mail hosts of a domain, best first.

    ``presence`` is about the MX records themselves. ``implicit_host`` is the
    domain's own addresses where it has no MX: mail goes there (RFC 5321 5.1).
    """

    domain: str
    presence: Presence
    hosts: tuple[MailHost, ...]
    has_null_record: bool
    implicit_host: HostAddresses | None
    findings: tuple[Finding, ...]

    @property
    def is_null_mx(self) -> bool:
        """Tell whether the domain declares that it receives no mail (RFC 7505)."""
        return self.has_null_record and not self.hosts

    @property
    def best(self) -> MailHost | None:
        """Give the host that a sender reaches first: usable if any is."""
        return next((host for host in self.hosts if host.is_usable), next(iter(self.hosts), None))

    @property
    def is_implicit_mx(self) -> bool:
        """Tell whether mail goes to the domain's own address for want of an MX."""
        return self.implicit_host is not None and bool(self.implicit_host.addresses)
