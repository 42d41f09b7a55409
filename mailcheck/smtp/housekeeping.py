"""The commands that move no mail."""

from mailcheck.smtp import replies
from mailcheck.smtp.commands import CommandError
from mailcheck.smtp.protocol import MailProtocol

_HELP = replies.reply_lines(
    214,
    [
        "2.0.0 Commands: EHLO HELO MAIL RCPT DATA BDAT RSET NOOP QUIT",
        "2.0.0 VRFY HELP STARTTLS AUTH",
        "2.0.0 RFC 5321 says what they do",
    ],
)


def want_no_argument(argument: bytes) -> None:
    """Refuse an argument where RFC 5321 4.1.1 has none.

    :raises CommandError: there is one (501).
    """
    if argument:
        raise CommandError(replies.NO_ARGUMENT)


def rset(connection: MailProtocol, argument: bytes) -> None:
    """Drop the mail that has begun (RFC 5321 4.1.1.5)."""
    want_no_argument(argument)
    connection.end_transaction()
    connection.reply(replies.OK)


def noop(connection: MailProtocol, argument: bytes) -> None:
    """Do nothing; an argument is allowed (RFC 5321 4.1.1.9)."""
    connection.reply(replies.OK)


def vrfy(connection: MailProtocol, argument: bytes) -> None:
    """Tell nobody which inboxes exist (RFC 5321 3.5.3 allows 252)."""
    if not argument:
        raise CommandError(replies.NOTHING_TO_VERIFY)
    connection.reply(replies.CANNOT_VERIFY)


def help_(connection: MailProtocol, argument: bytes) -> None:
    """List the commands."""
    connection.reply(_HELP)


def quit_(connection: MailProtocol, argument: bytes) -> None:
    """Part in peace."""
    want_no_argument(argument)
    connection.part(replies.BYE)


def not_implemented(connection: MailProtocol, argument: bytes) -> None:
    """Refuse a command that exists elsewhere."""
    raise CommandError(replies.NOT_IMPLEMENTED)


def http(connection: MailProtocol, argument: bytes) -> None:
    """Hang up on a browser that was sent here: no line of its request may become a command."""
    connection.close(replies.NO_HTTP)
