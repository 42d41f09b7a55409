"""What one SMTP client may use up. One table; every number with its reason or source."""

from dataclasses import dataclass

MAX_AUTH_LINE = 12_288
"""Octets of a line of an AUTH exchange, RFC 4954 4."""

MAX_HELD_INPUT = 65_536
"""Octets read ahead while a reply is awaited; beyond it the client is not read from."""

SMALL_CHUNK = 1_024
"""A BDAT chunk of fewer octets costs a command; larger ones are bounded by the message size."""


@dataclass(frozen=True, slots=True)
class Limits:
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
    """In all: below the file limit that the daemon sets itself."""

    connections_per_address: int = 100
    """Of one public client (an IPv6 client is its /64): twice Postfix's, which is made for
    relays. Private and loopback clients are exempt: behind one of them may be all of a CI farm."""

    idle: float = 300
    """To the end of the next command, and between two pieces of a message: RFC 5321 4.5.3.2.7."""

    message: float = 900
    """From DATA to its final dot: 25 MiB at 30 kB/s, the slowest line worth waiting for."""

    proxy_header: float = 5
    """A proxy sends it at once; HAProxy's document asks for 3 at least (one retransmission)."""

    closing: float = 5
    """For a client to take in our last words and go, before it is cut off."""

    free_unknown_recipients: int = 3
    """Mistyped addresses that are answered at once; from the next one on each waits longer."""

    longest_delay: float = 10
    """Spoils guessing; an honest client waits 5 minutes for a reply to RCPT
    (RFC 5321 4.5.3.2.3)."""
