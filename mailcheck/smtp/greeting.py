"""EHLO and HELO, and what an EHLO offers."""

from mailcheck.smtp.authentication import MECHANISMS, may_authenticate
from mailcheck.smtp.commands import parse_helo
from mailcheck.smtp.extended_client import (
    XCLIENT_ATTRIBUTES,
    XFORWARD_ATTRIBUTES,
    may_speak_for_others,
)
from mailcheck.smtp.protocol import MailProtocol
from mailcheck.smtp.replies import reply_lines


def ehlo(connection: MailProtocol, argument: bytes) -> None:
    """Start, or start again, with the extensions (RFC 5321 4.1.1.1)."""
    connection.client.greet(parse_helo(argument), is_extended=True)
    connection.end_transaction()
    connection.reply(reply_lines(250, [connection.settings.host_name, *_offers(connection)]))


def helo(connection: MailProtocol, argument: bytes) -> None:
    """Start, or start again, without them."""
    connection.client.greet(parse_helo(argument), is_extended=False)
    connection.end_transaction()
    connection.reply(reply_lines(250, [connection.settings.host_name]))


def _offers(connection: MailProtocol) -> list[str]:
    settings = connection.settings
    client = connection.client
    offers = [
        f"SIZE {connection.limits.message_size}",
        "8BITMIME",
        "SMTPUTF8",
        "PIPELINING",
        "CHUNKING",
        "ENHANCEDSTATUSCODES",
        "HELP",
    ]
    if client.tls is None and settings.tls_for(client.claimed_ip) is not None:
        offers.append("STARTTLS")
    if settings.is_submission and may_authenticate(connection):
        offers.append(f"AUTH {' '.join(MECHANISMS)}")
    if may_speak_for_others(connection):
        offers.append(f"XCLIENT {' '.join(XCLIENT_ATTRIBUTES)}")
        offers.append(f"XFORWARD {' '.join(XFORWARD_ATTRIBUTES)}")
    return offers
