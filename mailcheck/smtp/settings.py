"""How one listening port behaves: its limits, its certificates, and whom it believes."""

from collections.abc import Callable
from enum import Enum
from ipaddress import IPv4Network, IPv6Network

from msgspec import Struct, field
from twisted.internet.interfaces import IOpenSSLContextFactory

from mailcheck.core.network_addresses import IpAddress, is_local_client, parse_ip_address

MAX_AUTH_LINE = 12_288
"""Octets of a line of an AUTH exchange, RFC 4954 4."""

MAX_HELD_INPUT = 65_536
"""Octets read ahead while a reply is awaited; beyond it the client is not read from."""

SMALL_CHUNK = 1_024
"""A BDAT chunk of fewer octets costs a command; larger ones are bounded by the message size."""


class Limits(Struct, frozen=True):
    """The limits of a receiver; sizes in octets, times in seconds."""

    message_size: int = 26_214_400
    """25 MiB: what Gmail takes, so that nothing is too large for us alone. Advertised by SIZE."""

    held_bytes: int = 536_870_912
    """All messages on their way in together: twenty of the largest. When they are more, the client
    that holds most gets 452 for his newest, and tries again; a machine out of memory answers
    nobody."""

    recipients: int = 100
    """Of one mail: RFC 5321 4.5.3.1.8 asks for at least 100; 452 for the others."""

    command_line: int = 2_048
    """RFC 5321 4.5.3.1.4 has 512, to which extensions add (AUTH 500 for MAIL, RFC 4954 3);
    Postfix has the same number."""

    commands: int = 1_000
    """Since the last mail that was accepted: ten for each recipient of the largest mail."""

    errors: int = 20
    """Since the last mail that was accepted, then 421; Postfix's smtpd_hard_error_limit."""

    auth_failures: int = 3
    """A program has one key; a person may mistype it."""

    connections: int = 5_000
    """In all: below the file limit that the daemon sets itself. For one more client's first the
    connection makes room that has been idle longest without a mail."""

    connections_per_address: int = 100
    """Of one public client (an IPv6 client is its /64): twice Postfix's, which is made for
    relays. Private and loopback clients are exempt: behind one of them may be all of a CI farm."""

    first_command: float = 30
    """From the greeting to the end of the first command: who has something to send knows it by
    then, and who only holds connections needs ten times as many. Postfix gives 10 under stress."""

    idle: float = 300
    """To the end of the next command, and between two pieces of a message: RFC 5321 4.5.3.2.7."""

    message: float = 900
    """From DATA to its final dot: 25 MiB at 30 kB/s, the slowest line worth waiting for."""

    proxy_header: float = 5
    """A proxy sends it at once; HAProxy's document asks for 3 at least (one retransmission)."""

    closing: float = 5
    """For a client to take in our last words and go, before it is cut off."""

    slow_replies: int = 20
    """That come late on request, of one account at a time; 451 for the mails beyond."""

    free_refusals: int = 3
    """Mistyped addresses that are answered at once, and refusals that a client does not wait for;
    from the next one on each takes longer."""

    longest_delay: float = 10
    """Spoils guessing; an honest client waits 5 minutes for a reply to RCPT
    (RFC 5321 4.5.3.2.3)."""


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


class SmtpSettings(Struct, frozen=True):
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
