"""The address a request really came from (RFC 7239's older sibling X-Forwarded-For)."""

from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network

from twisted.web.server import Request

from mailcheck.core.network_addresses import IpAddress, parse_ip_address
from mailcheck.web.request_headers import header_values

Network = IPv4Network | IPv6Network

LOCAL_PEER = "127.0.0.1"
"""Stands for a peer without an address: a UNIX socket."""


class ClientAddresses:
    """Believes X-Forwarded-For from trusted proxies only, read from its end."""

    def __init__(self, trusted_proxies: Sequence[Network]) -> None:
        self._trusted_proxies = trusted_proxies

    def client_ip(self, request: Request) -> str:
        """Give the client's address; the last one that no trusted proxy stands for."""
        host: str = getattr(request.getClientAddress(), "host", None) or LOCAL_PEER
        peer = parse_ip_address(host)
        forwarded = [
            address.strip()
            for value in header_values(request, b"X-Forwarded-For")
            for address in value.split(",")
        ]
        while forwarded and self._is_trusted(peer):
            nearer = parse_ip_address(forwarded.pop())
            if nearer is None:
                break
            peer = nearer
        return host if peer is None else str(peer)

    def _is_trusted(self, peer: IpAddress | None) -> bool:
        return peer is not None and any(peer in network for network in self._trusted_proxies)
