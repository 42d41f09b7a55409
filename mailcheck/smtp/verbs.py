"""What a client may say: EHLO, STARTTLS, MAIL and RCPT, and every command by its verb."""

from collections.abc import Mapping
from functools import partial

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from mailcheck.core.errors import RecipientUnknown
from mailcheck.core.messages import Recipient
from mailcheck.smtp import replies
from mailcheck.smtp.auth_command import MECHANISMS, auth, may_authenticate
from mailcheck.smtp.commands import (
    CommandError,
    parse_helo,
    parse_mail,
    parse_rcpt,
)
from mailcheck.smtp.content import bdat, data
from mailcheck.smtp.extended_client import (
    XCLIENT_ATTRIBUTES,
    XFORWARD_ATTRIBUTES,
    may_speak_for_others,
    xclient,
    xforward,
)
from mailcheck.smtp.protocol import MailProtocol, Verb, want_no_argument
from mailcheck.smtp.replies import reply_lines
from mailcheck.smtp.transaction import Stage, Transaction

_HELP = replies.reply_lines(
    214,
    [
        "2.0.0 Commands: EHLO HELO MAIL RCPT DATA BDAT RSET NOOP QUIT",
        "2.0.0 VRFY HELP STARTTLS AUTH",
        "2.0.0 RFC 5321 says what they do",
    ],
)


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


def mail(connection: MailProtocol, argument: bytes) -> None:
    """Begin a mail (RFC 5321 4.1.1.2)."""
    client = connection.client
    if not client.helo_name:
        raise CommandError(replies.SAY_HELLO_FIRST)
    if connection.transaction is not None:
        raise CommandError(replies.MAIL_IS_OPEN)
    if connection.settings.is_submission and client.account_id is None:
        raise CommandError(replies.AUTH_REQUIRED)
    command = parse_mail(argument, has_auth=connection.settings.is_submission)
    if command.size > connection.limits.message_size:
        raise CommandError(replies.MESSAGE_TOO_LARGE)
    connection.transaction = Transaction(
        client.session(), command.envelope_sender, is_utf8=command.is_utf8
    )
    connection.receiver.traffic.moved(connection.transaction)
    connection.transcript.begin_mail()
    connection.reply(replies.SENDER_OK)


def rcpt(connection: MailProtocol, argument: bytes) -> None:
    """Ask whether a recipient has an inbox here (RFC 5321 4.1.1.3)."""
    transaction = connection.transaction
    if transaction is None:
        raise CommandError(replies.MAIL_FIRST)
    if transaction.stage is not Stage.ENVELOPE:  # RFC 3030 2: after BDAT none may follow
        raise CommandError(replies.BDAT_IS_OPEN)
    mailbox = parse_rcpt(argument, is_utf8=transaction.is_utf8)
    address = mailbox.folded
    if address in transaction.recipients:
        connection.reply(replies.RECIPIENT_OK)
        return
    if len(transaction.recipients) >= connection.limits.recipients:
        connection.reply(replies.TOO_MANY_RECIPIENTS)
        return

    def accept(recipient: Recipient) -> None:
        transaction.recipients[address] = recipient
        connection.reply(replies.RECIPIENT_OK)

    connection.ask(
        partial(
            connection.receiver.accept_recipient,
            transaction.session,
            transaction.envelope_sender,
            mailbox,
        ),
        accept,
        partial(_refuse, connection),
    )


def _refuse(connection: MailProtocol, failure: Failure) -> Deferred[None] | None:
    """Reply to a refused recipient."""
    line = connection.explain(failure)
    return connection.refuse_slowly(line, is_guess=isinstance(failure.value, RecipientUnknown))


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


VERBS: Mapping[bytes, Verb] = {
    b"AUTH": auth,
    b"BDAT": bdat,
    b"DATA": data,
    b"EHLO": ehlo,
    b"HELO": helo,
    b"HELP": help_,
    b"MAIL": mail,
    b"NOOP": noop,
    b"QUIT": quit_,
    b"RCPT": rcpt,
    b"RSET": rset,
    b"STARTTLS": starttls,
    b"VRFY": vrfy,
    b"XCLIENT": xclient,
    b"XFORWARD": xforward,
    # Commands that servers know and we do not have.
    b"ETRN": not_implemented,
    b"EXPN": not_implemented,
    b"SAML": not_implemented,
    b"SEND": not_implemented,
    b"SOML": not_implemented,
    b"TURN": not_implemented,
    # A request that a page in a browser was made to send here.
    b"CONNECT": http,
    b"DELETE": http,
    b"GET": http,
    b"HEAD": http,
    b"OPTIONS": http,
    b"PATCH": http,
    b"POST": http,
    b"PUT": http,
}
