"""STARTTLS (RFC 3207)."""

from mailcheck.smtp import replies
from mailcheck.smtp.commands import CommandError
from mailcheck.smtp.housekeeping import want_no_argument
from mailcheck.smtp.protocol import MailProtocol


def starttls(connection: MailProtocol, argument: bytes) -> None:
    """Encrypt the connection.

    Input behind the command came in clear. It is not from whom the client
    will have talked to once TLS is on (CVE-2011-0411): it is dropped.
    """
    client = connection.client
    if client.tls is not None:
        raise CommandError(replies.TLS_IS_ON)
    certificate = connection.settings.tls_for(client.claimed_ip)
    if certificate is None:
        raise CommandError(replies.NOT_IMPLEMENTED)
    want_no_argument(argument)
    if connection.has_more_input:
        connection.drop_input()
        raise CommandError(replies.INPUT_BEFORE_TLS)
    connection.reply(replies.READY_FOR_TLS)
    connection.start_tls(certificate)
