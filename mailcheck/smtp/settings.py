"""The settings of one SMTP port: limits, certificates and trusted hosts."""

from msgspec import Struct, field

from mailcheck.connections.policies import AuthWithoutTls, TlsPolicy, offer_no_tls
from mailcheck.connections.receive_path import LineLimits
from mailcheck.core.memory.client_limits import MAX_REJECTED_AT_ONCE, ConnectionLimits
from mailcheck.core.network_addresses import IpNetwork

SMALL_CHUNK = 1_024
"""Octets from which a BDAT chunk is not counted as a command. The size of the message limits such
chunks."""


class Limits(Struct, frozen=True):
    """The limits of a receiver; sizes in octets, times in seconds."""

    message_size: int = 26_214_400
    """25 MiB as for Gmail, so that no message is too large for this server alone. Shown by SIZE."""

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

    surplus: int = MAX_REJECTED_AT_ONCE
    """Maximum number of further connections, which get 421."""

    first_command: float = 30
    """Seconds from the greeting to the end of the first command. A client with mail needs less. A
    client that only holds connections needs ten times as many of them. Postfix uses 10 s under
    stress."""

    idle: float = 300
    """Seconds to the end of the next command, or between two pieces of a message: RFC 5321
    4.5.3.2.7."""

    message: float = 900
    """Seconds from DATA to its final dot: 25 MiB at 30 kB/s, the slowest supported line."""

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


class SmtpSettings(Struct, frozen=True):
    """The settings of one port.

    ``host_name`` is sent in the greeting. Hosts of ``proxy_protocol_from`` must send a PROXY header
    first. Hosts of ``xclient_from`` may use XCLIENT and XFORWARD. ``is_submission`` offers AUTH,
    which is required unless ``is_auth_optional``. ``is_private`` rejects clients outside of this
    machine and its private network. ``submission_port`` is named to local clients that want to log
    in on another port.
    """

    host_name: str
    limits: Limits = field(default_factory=Limits)
    is_submission: bool = False
    is_auth_optional: bool = False
    is_private: bool = False
    tls_for: TlsPolicy = offer_no_tls
    auth_without_tls: AuthWithoutTls = AuthWithoutTls.PRIVATE
    proxy_protocol_from: tuple[IpNetwork, ...] = ()
    xclient_from: tuple[IpNetwork, ...] = ()
    submission_port: int | None = None

    @property
    def connections(self) -> ConnectionLimits:
        """The limits of the number of connections."""
        limits = self.limits
        return ConnectionLimits(limits.connections, limits.connections_per_address, limits.surplus)

    @property
    def lines(self) -> LineLimits:
        """The limits of the receive path."""
        limits = self.limits
        return LineLimits(limits.command_line, limits.first_command, limits.idle, limits.closing)
