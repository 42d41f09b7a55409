"""Which clients are offered TLS, and which may send a password without it."""

from collections.abc import Callable
from enum import Enum

from twisted.internet.interfaces import IOpenSSLContextFactory

from mailcheck.core.network_addresses import IpNetwork, is_local_client, parse_ip_address


def client_ip_of(host: str) -> str:
    """Return a peer's address in canonical form: without a zone, IPv4-mapped addresses as IPv4.

    Any other value, such as the path of a UNIX socket, is returned unchanged.
    """
    address = parse_ip_address(host.partition("%")[0])
    return host if address is None else str(address)


def is_in_networks(client_ip: str, networks: tuple[IpNetwork, ...]) -> bool:
    """Return whether the address of a client is in one of the networks."""
    if not networks:
        return False
    address = parse_ip_address(client_ip)
    return address is not None and any(address in network for network in networks)


TlsPolicy = Callable[[str], IOpenSSLContextFactory | None]
"""Returns the certificate that STARTTLS offers to a client address, or `None`."""


class AuthWithoutTls(Enum):
    """The clients that may send a key over a plaintext connection."""

    PRIVATE = "private"
    NEVER = "never"
    ALWAYS = "always"

    def allows(self, client_ip: str) -> bool:
        """Return whether this client may."""
        if self is AuthWithoutTls.PRIVATE:
            return is_local_client(client_ip)
        return self is AuthWithoutTls.ALWAYS


def offer_no_tls(client_ip: str) -> None:
    """Offer STARTTLS to no client."""


def offer_to_all(certificate: IOpenSSLContextFactory | None) -> TlsPolicy:
    """Offer a certificate to all clients, which can verify it."""
    return lambda client_ip: certificate


def offer_to_public(certificate: IOpenSSLContextFactory | None) -> TlsPolicy:
    """Offer a self-signed certificate to public clients only.

    Mail servers accept any certificate (RFC 7435). Most programs that a developer runs on a laptop
    reject a certificate that they cannot verify.
    """
    return lambda client_ip: None if is_local_client(client_ip) else certificate
