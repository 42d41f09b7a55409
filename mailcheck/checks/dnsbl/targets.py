"""What is asked about, and under which name (RFC 5782 2.1, 2.2, 2.4)."""

from dataclasses import dataclass
from ipaddress import IPv4Address

from mailcheck.checks.dnsbl.catalogue import Blocklist, TargetKind
from mailcheck.core.network_addresses import IpAddress


@dataclass(frozen=True, slots=True)
class Target:
    """One address or name. ``label`` is what stands before the zone in a question.

    ``is_shared`` marks an address of a mail provider that others use too: its
    listing says little about the one who asks.
    """

    value: str
    kind: TargetKind
    label: str
    is_shared: bool = False


def target_address(address: IpAddress, *, is_shared: bool = False) -> Target:
    """Make the target for an address: octets, or for IPv6 nibbles, in reverse."""
    if isinstance(address, IPv4Address):
        reverse = ".".join(reversed(str(address).split(".")))
        return Target(str(address), TargetKind.IPV4, reverse, is_shared)
    reverse = ".".join(reversed(f"{int(address):032x}"))
    return Target(str(address), TargetKind.IPV6, reverse, is_shared)


def target_domain(domain: str) -> Target:
    """Make the target for a domain name."""
    return Target(domain, TargetKind.DOMAIN, domain)


def query_name(blocklist: Blocklist, target: Target) -> str:
    """Give the name to ask for; the list must know the kind of target."""
    return f"{target.label}.{blocklist.query_zones[target.kind]}"
