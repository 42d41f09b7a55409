"""EHLO and HELO, and what an EHLO offers."""

from mailcheck.smtp.commands import parse_helo
from mailcheck.smtp.protocol import MailProtocol
from mailcheck.smtp.replies import reply_lines


def ehlo(connection: MailProtocol, argument: bytes) -> None:
    """Start, or start again, with the extensions (RFC 5321 4.1.1.1)."""
    connection.client.greet(parse_helo(argument), is_extended=True)
    connection.transaction = None
    connection.reply(reply_lines(250, [connection.settings.host_name, *_offers(connection)]))


def helo(connection: MailProtocol, argument: bytes) -> None:
    """Start, or start again, without them."""
    connection.client.greet(parse_helo(argument), is_extended=False)
    connection.transaction = None
    connection.reply(reply_lines(250, [connection.settings.host_name]))


def _offers(connection: MailProtocol) -> list[str]:
    offers = [
        f"SIZE {connection.limits.message_size}",
        "8BITMIME",
        "SMTPUTF8",
        "PIPELINING",
        "CHUNKING",
        "ENHANCEDSTATUSCODES",
        "HELP",
    ]
    client = connection.client
    if client.tls is None and connection.settings.tls_for(client.claimed_ip) is not None:
        offers.append("STARTTLS")
    return offers
