"""IP addresses: which of them are globally reachable, and where to listen.

The tables are the IANA special-purpose registries (RFC 6890). They are part of this module since
the result of `ipaddress` for private addresses changes between releases of Python.

Listening addresses are ``host:port`` or Twisted's endpoint strings.
"""

import re
from functools import lru_cache
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

from msgspec import Struct

IpAddress = IPv4Address | IPv6Address
IpNetwork = IPv4Network | IPv6Network

DOCUMENTATION = "reserved for documentation"

_SPECIAL_V4: tuple[tuple[IPv4Network, str], ...] = tuple(
    (IPv4Network(network), reason)
    for network, reason in (
        ("0.0.0.0/8", "not an address of a host"),  # RFC 791 3.2
        ("10.0.0.0/8", "private"),  # RFC 1918
        ("100.64.0.0/10", "behind a provider's NAT"),  # RFC 6598
        ("127.0.0.0/8", "loopback"),  # RFC 1122 3.2.1.3
        ("169.254.0.0/16", "link-local"),  # RFC 3927
        ("172.16.0.0/12", "private"),  # RFC 1918
        ("192.0.0.0/24", "reserved for protocols"),  # RFC 6890 2.1
        ("192.0.2.0/24", DOCUMENTATION),  # RFC 5737
        ("192.31.196.0/24", "a sink of the DNS root"),  # RFC 7535
        ("192.52.193.0/24", "reserved for multicast tunnels"),  # RFC 7450
        ("192.88.99.0/24", "the 6to4 relay anycast"),  # RFC 7526
        ("192.168.0.0/16", "private"),  # RFC 1918
        ("192.175.48.0/24", "a sink of the DNS root"),  # RFC 7534
        ("198.18.0.0/15", "reserved for benchmarks"),  # RFC 2544
        ("198.51.100.0/24", DOCUMENTATION),  # RFC 5737
        ("203.0.113.0/24", DOCUMENTATION),  # RFC 5737
        ("224.0.0.0/4", "multicast"),  # RFC 5771
        ("240.0.0.0/4", "reserved"),  # RFC 1112 4, the limited broadcast included
    )
)

_GLOBAL_UNICAST_V6 = IPv6Network("2000::/3")  # RFC 4291 2.4: nothing else is assigned yet

_SPECIAL_V6: tuple[tuple[IPv6Network, str], ...] = tuple(
    (IPv6Network(network), reason)
    for network, reason in (
        ("::1/128", "loopback"),  # RFC 4291 2.5.3
        ("::/8", "reserved"),  # RFC 4291
        ("100::/64", "discard-only"),  # RFC 6666
        ("fc00::/7", "private"),  # RFC 4193
        ("fe80::/10", "link-local"),  # RFC 4291 2.5.6
        ("fec0::/10", "site-local"),  # RFC 3879
        ("ff00::/8", "multicast"),  # RFC 4291 2.7
        ("2001::/23", "reserved for protocols"),  # RFC 2928
        ("2001:db8::/32", DOCUMENTATION),  # RFC 3849
        ("2620:4f:8000::/48", "a sink of the DNS root"),  # RFC 7534
        ("3fff::/20", DOCUMENTATION),  # RFC 9637
    )
)

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

_NAT64 = IPv6Network("64:ff9b::/96")  # RFC 6052 2.1
_COMPATIBLE = IPv6Network("::/96")  # RFC 4291 2.5.5.1
_ISATAP_IDENTIFIERS = (0x00005EFE, 0x02005EFE)  # RFC 5214 6.1


def parse_ip_address(text: str) -> IpAddress | None:
    """Parse an IP address; return `None` if it is invalid. IPv4-mapped addresses become IPv4."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


@lru_cache(maxsize=1024)
def is_local_client(client_ip: str) -> bool:
    """Return whether a client is on this machine or in its private network."""
    address = parse_ip_address(client_ip)
    return address is None or any(address in network for network in _LOCAL_NETWORKS)


@lru_cache(1024)  # called for each mail, and a client sends many
def counting_key(client_ip: str) -> str:
    """Return the key for limits of a client: its IPv4 address, or the /64 of its IPv6 address.

    A client with one IPv6 address usually has a /64 of them (RFC 6177).
    """
    address = parse_ip_address(client_ip)
    if isinstance(address, IPv6Address):
        return str(IPv6Network((address.packed, 64), strict=False))
    return client_ip


def embedded_ipv4(address: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address embedded in a transition address, where packets end up."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    number = int(address)
    low = IPv4Address(number & 0xFFFFFFFF)
    if address in _NAT64 or (address in _COMPATIBLE and number > 0xFFFF):
        return low
    return low if _is_isatap(address) else None


def why_not_public(address: IpAddress) -> str | None:
    """Return why the address is not globally routable, as a phrase, or `None` if it is.

    A transition address (IPv4-mapped, 6to4, Teredo, NAT64, ISATAP) is as public
    as the IPv4 address in it. For ISATAP the prefix must be public as well.
    """
    if isinstance(address, IPv4Address):
        return next((reason for network, reason in _SPECIAL_V4 if address in network), None)
    inner = embedded_ipv4(address)
    if inner is not None:
        reason = why_not_public(inner)
        if reason is not None or not _is_isatap(address):
            return reason
    for network, reason in _SPECIAL_V6:
        if address in network:
            return reason
    return None if address in _GLOBAL_UNICAST_V6 else "reserved"


def _is_isatap(address: IPv6Address) -> bool:
    return int(address) >> 32 & 0xFFFFFFFF in _ISATAP_IDENTIFIERS


_ENDPOINT = re.compile(r"(tcp|tcp4|tcp6|unix|systemd|ssl|tls|fd):", re.ASCII)
_HOST_PORT = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<host>[^\[\]:]+)):(?P<port>\d{1,5})")
_ONLY_PORT = re.compile(r":?(\d{1,5})", re.ASCII)

_LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104
"""Addresses of this machine for those that stand for all of its addresses."""

BACKLOG = 4_096
"""Length of the accept queue. With Twisted's 50, 2,000 clients wait for up to 27 s."""


class ListenAddress(Struct, frozen=True):
    """A Twisted endpoint string. ``host`` and ``port`` are set for ``host:port`` only.

    ``setting`` names the option with the address, for errors.
    """

    endpoint: str
    host: str | None
    port: int | None
    setting: str = ""

    @property
    def url(self) -> str | None:
        """The URL for a browser on this machine, if the address is known."""
        host = self.local_host
        if host is None:
            return None
        host = f"[{host}]" if ":" in host and not host.startswith("[") else host
        return f"http://{host}:{self.port}"

    @property
    def local_host(self) -> str | None:
        """The host to which programs on this machine connect, or `None` if it is not known."""
        return None if self.host is None else _LOOPBACK.get(self.host, self.host)


def parse_listen_address(text: str) -> ListenAddress:
    """Parse a listening address.

    :raises ValueError: it is neither ``host:port`` nor an endpoint string.
    """
    if _ENDPOINT.match(text):
        return ListenAddress(text, None, None)
    match = _HOST_PORT.fullmatch(text)
    if match is None or int(match["port"]) > 65_535:
        port = _ONLY_PORT.fullmatch(text)
        if port is not None and int(port[1]) <= 65_535:
            raise ValueError(
                f"write host:port, such as 127.0.0.1:{port[1]} (this machine only) or "
                f"0.0.0.0:{port[1]}"
            )
        hint = "" if text else "; an empty list, [], listens nowhere"
        raise ValueError(f"write host:port, [IPv6]:port, or a Twisted endpoint{hint}")
    host = match["six"] or match["host"]
    escaped = host.replace(":", r"\:")
    endpoint = (
        f"tcp{6 if match['six'] else ''}:{match['port']}:interface={escaped}:backlog={BACKLOG}"
    )
    return ListenAddress(endpoint, host, int(match["port"]))
