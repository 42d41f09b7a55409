"""DATA and BDAT: the message itself."""

from collections.abc import Callable
from functools import partial

from mailcheck.core.network_addresses import counting_key
from mailcheck.smtp import replies
from mailcheck.smtp.commands import CommandError, parse_bdat
from mailcheck.smtp.data import ChunkReader, DataReader, MessageBuffer
from mailcheck.smtp.delivery import finish_mail, turn_away, why_dropped
from mailcheck.smtp.housekeeping import want_no_argument
from mailcheck.smtp.limits import SMALL_CHUNK
from mailcheck.smtp.protocol import MailProtocol
from mailcheck.smtp.transaction import Transaction


def data(connection: MailProtocol, argument: bytes) -> None:
    """Take in a message up to the final dot (RFC 5321 4.1.1.4)."""
    try:
        want_no_argument(argument)
        transaction = _ready_transaction(connection)
        if transaction.has_chunks:
            raise CommandError(replies.BDAT_IS_OPEN)
    except CommandError as refusal:
        if not connection.has_more_input:
            raise
        # A client that did not wait for 354 goes on with its message, whatever
        # we say: not one line of it may be taken for a command.
        connection.close(refusal.reply)
        return
    message = _begin_message(connection, transaction)
    connection.read(
        DataReader(message),
        transaction.deadline,
        partial(finish_mail, connection, transaction, message),
    )
    connection.reply(replies.GO_AHEAD)


def bdat(connection: MailProtocol, argument: bytes) -> None:
    """Take in a chunk (RFC 3030 2); also one that is refused, since it follows unasked."""
    try:
        size, is_last = parse_bdat(argument)
    except CommandError as refusal:
        # What follows is a chunk of unknown size: no way to find its end.
        connection.close(refusal.reply)
        return
    try:
        transaction = _ready_transaction(connection)
        if transaction.has_failed:
            raise CommandError(replies.BDAT_HAS_FAILED)
    except CommandError as refusal:
        deadline = connection.clock.seconds() + connection.limits.message
        _read_chunk(connection, size, None, deadline, partial(connection.refuse, refusal.reply))
        return
    message = transaction.message or _begin_message(connection, transaction)
    if size >= SMALL_CHUNK:
        connection.commands -= 1
    _read_chunk(
        connection,
        size,
        message,
        transaction.deadline,
        partial(_finish_chunk, connection, transaction, message, is_last),
    )


def _begin_message(connection: MailProtocol, transaction: Transaction) -> MessageBuffer:
    message = MessageBuffer(
        connection.limits.message_size, connection.memory, counting_key(connection.client.ip)
    )
    transaction.message = message
    transaction.deadline = connection.clock.seconds() + connection.limits.message
    return message


def _read_chunk(
    connection: MailProtocol,
    size: int,
    message: MessageBuffer | None,
    deadline: float,
    then: Callable[[], None],
) -> None:
    if size:
        connection.read(ChunkReader(size, message), deadline, then)
    else:
        then()


def _finish_chunk(
    connection: MailProtocol, transaction: Transaction, message: MessageBuffer, is_last: bool
) -> None:
    if is_last:
        finish_mail(connection, transaction, message)
        return
    refusal = why_dropped(message)
    if refusal is None:
        connection.reply(replies.OK)
        return
    transaction.has_failed = True
    turn_away(connection, transaction, refusal)


def _ready_transaction(connection: MailProtocol) -> Transaction:
    transaction = connection.transaction
    if transaction is None:
        raise CommandError(replies.MAIL_FIRST)
    if not transaction.recipient_count:
        raise CommandError(replies.NO_RECIPIENTS)
    return transaction
