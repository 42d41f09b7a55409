"""What trusted proxies say of a request (RFC 7239's older siblings): X-Forwarded-For and -Proto."""

from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network

from twisted.web.server import Request

from mailcheck.core.network_addresses import IpAddress, is_local_client, parse_ip_address
from mailcheck.web.site.request_headers import header_values

Network = IPv4Network | IPv6Network

LOCAL_PEER = "127.0.0.1"
"""Stands for a peer without an address: a UNIX socket."""

SCHEMES = frozenset({"http", "https"})


class ClientAddresses:
    """Believes trusted proxies only, and each list from its end: there are their own words."""

    def __init__(self, trusted_proxies: Sequence[Network]) -> None:
        self._trusted_proxies = trusted_proxies

    def client_ip(self, request: Request) -> str:
        """Give the client's address; the last one that no trusted proxy stands for."""
        host = _peer(request)
        peer = parse_ip_address(host)
        forwarded = _listed(request, b"X-Forwarded-For")
        while forwarded and self._is_trusted(peer):
            nearer = parse_ip_address(forwarded.pop())
            if nearer is None:
                break
            peer = nearer
        return host if peer is None else str(peer)

    def client_scheme(self, request: Request) -> str | None:
        """Give how the client reached the proxy, ``http`` or ``https``; nothing where none says."""
        if not self._is_trusted(parse_ip_address(_peer(request))):
            return None
        scheme = next(reversed(_listed(request, b"X-Forwarded-Proto")), "").lower()
        return scheme if scheme in SCHEMES else None

    def is_shared(self, host: str) -> bool:
        """Tell whether many clients may come from a peer's address.

        A trusted proxy, this machine, a private network: all of a CI farm may be behind it.
        """
        return is_local_client(host) or self._is_trusted(parse_ip_address(host))

    def _is_trusted(self, peer: IpAddress | None) -> bool:
        return peer is not None and any(peer in network for network in self._trusted_proxies)


def _peer(request: Request) -> str:
    return getattr(request.getClientAddress(), "host", None) or LOCAL_PEER


def _listed(request: Request, name: bytes) -> list[str]:
    """Give the words of a field that is a list, over all of its lines."""
    lines = header_values(request, name)
    return [word.strip() for line in lines for word in line.split(",")]
