"""The address a client comes from: how it is written, counted, and whether it is near."""

from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_network

from mailcheck.core.network_addresses import IpAddress, parse_ip_address

IpNetwork = IPv4Network | IPv6Network

_LOCAL_NETWORKS: tuple[IpNetwork, ...] = tuple(
    ip_network(network)
    for network in (
        "127.0.0.0/8",  # loopback, RFC 1122 3.2.1.3
        "10.0.0.0/8",  # private, RFC 1918
        "172.16.0.0/12",
        "192.168.0.0/16",
        "169.254.0.0/16",  # link-local, RFC 3927
        "::1/128",  # loopback, RFC 4291 2.5.3
        "fc00::/7",  # private, RFC 4193
        "fe80::/10",  # link-local, RFC 4291 2.5.6
    )
)


def client_ip_of(host: str) -> str:
    """Write a peer's host in one form: no zone, an IPv4-mapped address as IPv4.

    What is no IP address (the path of a UNIX socket) stays as it is.
    """
    address = parse_ip_address(host.partition("%")[0])
    return host if address is None else str(address)


@lru_cache(maxsize=1024)
def is_local_client(client_ip: str) -> bool:
    """Tell whether a client is on this machine or in its private network."""
    address = parse_ip_address(client_ip)
    return address is None or any(address in network for network in _LOCAL_NETWORKS)


def is_in_networks(client_ip: str, networks: tuple[IpNetwork, ...]) -> bool:
    """Tell whether a client's address belongs to one of the networks."""
    if not networks:
        return False
    address: IpAddress | None = parse_ip_address(client_ip)
    return address is not None and any(address in network for network in networks)


def counting_key(client_ip: str) -> str:
    """Give what connections are counted by: the address, of IPv6 its /64.

    Whoever has one IPv6 address has a /64 of them (RFC 6177).
    """
    address = parse_ip_address(client_ip)
    if isinstance(address, IPv6Address):
        return str(IPv6Network((address, 64), strict=False))
    return client_ip
