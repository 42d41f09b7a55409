"""The address a request really came from (RFC 7239's older sibling X-Forwarded-For)."""

from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address

from twisted.web.server import Request

Network = IPv4Network | IPv6Network

LOCAL_PEER = "127.0.0.1"
"""Stands for a peer without an address: a UNIX socket."""


class ClientAddresses:
    """Believes X-Forwarded-For from trusted proxies only, read from its end."""

    def __init__(self, trusted_proxies: Sequence[Network]) -> None:
        self._trusted_proxies = trusted_proxies

    def client_ip(self, request: Request) -> str:
        """Give the client's address; the last one that no trusted proxy stands for."""
        peer: str = getattr(request.getClientAddress(), "host", None) or LOCAL_PEER
        forwarded = [
            address.strip()
            for value in request.requestHeaders.getRawHeaders("X-Forwarded-For", ())
            for address in value.split(",")
        ]
        while forwarded and self._is_trusted(peer):
            nearer = forwarded.pop()
            if not _is_address(nearer):
                break
            peer = nearer
        return peer

    def _is_trusted(self, peer: str) -> bool:
        if not _is_address(peer):
            return False
        address = ip_address(peer)
        return any(address in network for network in self._trusted_proxies)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
