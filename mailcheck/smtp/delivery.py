"""The end of a mail: it is handed over, or turned away."""

from functools import partial

from twisted.internet.defer import maybeDeferred
from twisted.python.failure import Failure

from mailcheck.core.identifiers import DeliveryId
from mailcheck.smtp import replies
from mailcheck.smtp.data import MessageBuffer
from mailcheck.smtp.protocol import MailProtocol
from mailcheck.smtp.transaction import Transaction


def finish_mail(connection: MailProtocol, transaction: Transaction, message: MessageBuffer) -> None:
    """Hand over a mail that has come in whole, and reply when it is on disk."""
    refusal = why_dropped(message)
    has_stray_control = message.has_stray_control
    raw_message = message.take()
    connection.end_transaction()
    if refusal is not None:
        turn_away(connection, transaction, refusal)
        return
    if has_stray_control:
        # By its line ends this sender and we may not agree where the mail
        # ended. What comes next could be more of it: nobody listens.
        connection.close(replies.BARE_CONTENT)
        _record(connection, transaction, replies.BARE_CONTENT)
        return
    answer = maybeDeferred(
        connection.receiver.deliver,
        transaction.session,
        transaction.envelope(connection.transcript),
        raw_message,
    )
    connection.wait_for(
        answer,
        partial(_delivered, connection, transaction, len(raw_message), connection.clock.seconds()),
        partial(_not_delivered, connection, transaction),
    )


def why_dropped(message: MessageBuffer) -> bytes | None:
    """Give the reply to a message that was too much to be kept."""
    if message.is_too_large:
        return replies.MESSAGE_TOO_LARGE
    if message.is_crowded_out:
        return replies.TOO_MUCH_AT_ONCE
    return None


def turn_away(connection: MailProtocol, transaction: Transaction, refusal: bytes) -> None:
    """Refuse a mail whose recipients were accepted, and note it for those who wait for it."""
    connection.refuse(refusal)
    _record(connection, transaction, refusal)


def _delivered(
    connection: MailProtocol,
    transaction: Transaction,
    size: int,
    complete_at: float,
    delivery_id: DeliveryId,
) -> None:
    connection.forgive()
    connection.journal.note_delivery(
        transaction.session,
        transaction.envelope_sender,
        delivery_id,
        transaction.recipient_count,
        size,
        connection.clock.seconds() - complete_at,
    )
    connection.reply(replies.reply(250, f"OK, delivery {delivery_id}", "2.0.0"))


def _not_delivered(connection: MailProtocol, transaction: Transaction, failure: Failure) -> None:
    refusal = connection.explain(failure)
    connection.reply(refusal)
    _record(connection, transaction, refusal)


def _record(connection: MailProtocol, transaction: Transaction, refusal: bytes) -> None:
    connection.receiver.record_refusal(
        transaction.session,
        transaction.envelope_sender,
        transaction.recipients,
        refusal.decode("ascii").strip(),
    )
