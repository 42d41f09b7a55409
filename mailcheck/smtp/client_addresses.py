"""The address a client comes from: how it is written, and whether it is one of ours."""

from ipaddress import IPv4Network, IPv6Network

from mailcheck.core.network_addresses import IpAddress, parse_ip_address

IpNetwork = IPv4Network | IPv6Network


def client_ip_of(host: str) -> str:
    """Write a peer's host in one form: no zone, an IPv4-mapped address as IPv4.

    What is no IP address (the path of a UNIX socket) stays as it is.
    """
    address = parse_ip_address(host.partition("%")[0])
    return host if address is None else str(address)


def is_in_networks(client_ip: str, networks: tuple[IpNetwork, ...]) -> bool:
    """Tell whether a client's address belongs to one of the networks."""
    if not networks:
        return False
    address: IpAddress | None = parse_ip_address(client_ip)
    return address is not None and any(address in network for network in networks)
