"""MAIL and RCPT: who sends, and to whom."""

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.python.failure import Failure

from mailcheck.core.addresses import Mailbox
from mailcheck.core.errors import RecipientUnknown
from mailcheck.core.messages import Recipient
from mailcheck.smtp import replies
from mailcheck.smtp.commands import CommandError, parse_mail, parse_rcpt
from mailcheck.smtp.protocol import MailProtocol
from mailcheck.smtp.transaction import Transaction


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
    connection.transcript.begin_mail()
    connection.reply(replies.SENDER_OK)


def rcpt(connection: MailProtocol, argument: bytes) -> None:
    """Ask whether a recipient has an inbox here (RFC 5321 4.1.1.3)."""
    transaction = connection.transaction
    if transaction is None:
        raise CommandError(replies.MAIL_FIRST)
    if transaction.has_chunks:
        raise CommandError(replies.BDAT_IS_OPEN)
    mailbox = parse_rcpt(argument, is_utf8=transaction.is_utf8)
    if transaction.has(mailbox):
        connection.reply(replies.RECIPIENT_OK)
        return
    if transaction.recipient_count >= connection.limits.recipients:
        connection.reply(replies.TOO_MANY_RECIPIENTS)
        return
    answer = maybeDeferred(
        connection.receiver.accept_recipient,
        transaction.session,
        transaction.envelope_sender,
        mailbox,
    )
    connection.wait_for(
        answer,
        lambda recipient: _accept(connection, transaction, mailbox, recipient),
        lambda failure: _refuse(connection, failure),
    )


def _accept(
    connection: MailProtocol, transaction: Transaction, mailbox: Mailbox, recipient: Recipient
) -> None:
    transaction.add(mailbox, recipient)
    connection.reply(replies.RECIPIENT_OK)


def _refuse(connection: MailProtocol, failure: Failure) -> Deferred[None] | None:
    """Reply to a refused recipient; those who guess addresses wait longer and longer."""
    line = connection.explain(failure)
    if not isinstance(failure.value, RecipientUnknown):
        connection.reply(line)
        return None
    connection.unknown_recipients += 1
    excess = connection.unknown_recipients - connection.limits.free_unknown_recipients
    if excess <= 0:
        connection.reply(line)
        return None
    return connection.reply_after(min(2.0 ** (excess - 1), connection.limits.longest_delay), line)
