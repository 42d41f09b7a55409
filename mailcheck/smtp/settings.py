"""How one listening port behaves."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from twisted.internet.interfaces import IOpenSSLContextFactory

from mailcheck.core.network_addresses import is_local_client
from mailcheck.smtp.client_addresses import IpNetwork
from mailcheck.smtp.limits import Limits

TlsPolicy = Callable[[str], IOpenSSLContextFactory | None]
"""Gives the certificate that a client address is offered by STARTTLS, or nothing."""


class AuthWithoutTls(Enum):
    """Which clients may send a key over a connection that is not encrypted."""

    PRIVATE = "private"
    NEVER = "never"
    ALWAYS = "always"

    def allows(self, client_ip: str) -> bool:
        """Tell whether this client may."""
        if self is AuthWithoutTls.PRIVATE:
            return is_local_client(client_ip)
        return self is AuthWithoutTls.ALWAYS


def offer_no_tls(client_ip: str) -> None:
    """Offer STARTTLS to nobody."""


def offer_to_all(certificate: IOpenSSLContextFactory) -> TlsPolicy:
    """Offer a certificate that clients can verify to all of them."""
    return lambda client_ip: certificate


def offer_to_public(certificate: IOpenSSLContextFactory) -> TlsPolicy:
    """Offer a self-signed certificate only to clients from outside.

    Mail servers take any certificate (RFC 7435); most programs that a
    developer runs on a laptop refuse one that they can't verify.
    """
    return lambda client_ip: None if is_local_client(client_ip) else certificate


@dataclass(frozen=True, slots=True)
class SmtpSettings:
    """One port of the receiver.

    ``host_name`` is what the greeting says. Hosts of ``proxy_protocol_from``
    must begin with a PROXY header; those of ``xclient_from`` may speak for
    other clients by XCLIENT and XFORWARD. ``is_submission`` asks for AUTH.
    """

    host_name: str
    limits: Limits = field(default_factory=Limits)
    is_submission: bool = False
    tls_for: TlsPolicy = offer_no_tls
    auth_without_tls: AuthWithoutTls = AuthWithoutTls.PRIVATE
    proxy_protocol_from: tuple[IpNetwork, ...] = ()
    xclient_from: tuple[IpNetwork, ...] = ()
