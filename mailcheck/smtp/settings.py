"""The settings of one listening port: limits, certificates and trusted hosts."""

from collections.abc import Callable
from enum import Enum
from ipaddress import IPv4Network, IPv6Network

from msgspec import Struct, field
from twisted.internet.interfaces import IOpenSSLContextFactory

from mailcheck.core.network_addresses import IpAddress, is_local_client, parse_ip_address

MAX_AUTH_LINE = 12_288
"""Maximum number of octets of a line of an AUTH exchange, RFC 4954 4."""

MAX_HELD_INPUT = 65_536
"""Octets buffered while an answer is pending. When they are exceeded, reading stops."""

SMALL_CHUNK = 1_024
"""Octets from which a BDAT chunk is not counted as a command. The size of the message limits such
chunks."""


class Limits(Struct, frozen=True):
    """The limits of a receiver; sizes in octets, times in seconds."""

    message_size: int = 26_214_400
    """25 MiB as for Gmail, so that no message is too large for this server alone. Shown by SIZE."""

    held_bytes: int = 536_870_912
    """Maximum memory of all incoming messages together: twenty of the largest. When it is exceeded,
    the client that uses most gets 452 for its newest message and can retry. Running out of memory
    would affect all clients."""

    recipients: int = 100
    """Maximum number of recipients of one mail; more get 452. RFC 5321 4.5.3.1.8 requires at least
    100."""

    command_line: int = 2_048
    """RFC 5321 4.5.3.1.4 has 512 octets, to which extensions add (AUTH 500 for MAIL, RFC 4954 3).
    Postfix has the same limit."""

    commands: int = 1_000
    """Commands since the last accepted mail: ten for each recipient of the largest mail."""

    errors: int = 20
    """Errors since the last accepted mail, then 421. Like Postfix's smtpd_hard_error_limit."""

    auth_failures: int = 3
    """A program has one key; a person may mistype it."""

    connections: int = 5_000
    """Maximum number of connections, below the file limit that the daemon sets. When it is reached,
    the connection that has been idle longest without a mail is closed for a client without one."""

    connections_per_address: int = 100
    """Maximum number for a public client (an IPv6 client is its /64): twice Postfix's limit, which
    is made for relays. Private and loopback clients are exempt, since a CI farm may share one."""

    first_command: float = 30
    """Seconds from the greeting to the end of the first command. A client with mail needs less. A
    client that only holds connections needs ten times as many of them. Postfix uses 10 s under
    stress."""

    idle: float = 300
    """Seconds to the end of the next command, or between two pieces of a message: RFC 5321
    4.5.3.2.7."""

    message: float = 900
    """Seconds from DATA to its final dot: 25 MiB at 30 kB/s, the slowest supported line."""

    proxy_header: float = 5
    """Seconds. A proxy sends the header at once; HAProxy's document asks for at least 3 s, one
    retransmission."""

    closing: float = 5
    """Seconds in which a client may read the last reply and close the connection."""

    slow_replies: int = 20
    """Maximum number of delayed replies that tags of one account request at the same time. Further
    mails get 451."""

    free_refusals: int = 3
    """Number of rejections without a delay. Unknown addresses count, and rejections for which the
    client does not wait."""

    longest_delay: float = 10
    """Maximum delay in seconds. It slows down guessing; clients wait up to 5 minutes for a reply to
    RCPT (RFC 5321 4.5.3.2.3)."""


IpNetwork = IPv4Network | IPv6Network


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
    address: IpAddress | None = parse_ip_address(client_ip)
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


def offer_to_all(certificate: IOpenSSLContextFactory) -> TlsPolicy:
    """Offer a certificate to all clients, which can verify it."""
    return lambda client_ip: certificate


def offer_to_public(certificate: IOpenSSLContextFactory) -> TlsPolicy:
    """Offer a self-signed certificate to public clients only.

    Mail servers accept any certificate (RFC 7435). Most programs that a developer runs on a laptop
    reject a certificate that they cannot verify.
    """
    return lambda client_ip: None if is_local_client(client_ip) else certificate


class SmtpSettings(Struct, frozen=True):
    """The settings of one port.

    ``host_name`` is sent in the greeting. Hosts of ``proxy_protocol_from`` must send a PROXY header
    first. Hosts of ``xclient_from`` may use XCLIENT and XFORWARD. ``is_submission`` requires AUTH.
    """

    host_name: str
    limits: Limits = field(default_factory=Limits)
    is_submission: bool = False
    tls_for: TlsPolicy = offer_no_tls
    auth_without_tls: AuthWithoutTls = AuthWithoutTls.PRIVATE
    proxy_protocol_from: tuple[IpNetwork, ...] = ()
    xclient_from: tuple[IpNetwork, ...] = ()
