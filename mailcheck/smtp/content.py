"""DATA and BDAT: reading a message, storing it, and replying to the client."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from twisted.internet.defer import Deferred, maybeDeferred, succeed
from twisted.python.failure import Failure

from mailcheck.connections.lines import CommandError
from mailcheck.core.faults import Fault, Meeting
from mailcheck.core.identifiers import DeliveryId
from mailcheck.core.network_addresses import counting_key
from mailcheck.ports.mail_receiver import ReceiverReply
from mailcheck.smtp import replies
from mailcheck.smtp.commands import parse_bdat
from mailcheck.smtp.protocol import MailProtocol, require_no_argument
from mailcheck.smtp.settings import SMALL_CHUNK
from mailcheck.smtp.transaction import (
    ChunkReader,
    DataReader,
    LineEnds,
    MessageBuffer,
    Stage,
    Transaction,
    undo_dots_after_lf,
)

T = TypeVar("T")

SendReply = Callable[[DeliveryId], Deferred[None] | None]
"""Sends the reply to a stored mail, now or later, or simulates a fault instead."""

CLOSING = 421
"""Code of a reply after which the server closes the connection (RFC 5321 3.8)."""

StoreMail = Callable[[SendReply], Deferred[None]]
"""Stores a mail and sends the reply to it."""


def data(connection: MailProtocol, argument: bytes) -> None:
    """Read a message up to the final dot (RFC 5321 4.1.1.4)."""
    try:
        require_no_argument(argument)
        transaction = _ready_transaction(connection)
        if transaction.stage is not Stage.ENVELOPE:
            raise CommandError(replies.BDAT_IS_OPEN)
    except CommandError as refusal:
        if not connection.has_more_input:
            raise
        # A client that did not wait for 354 sends its message anyway. No line of it may be taken
        # for a command.
        connection.half_close_with(refusal.reply)
        return
    message = _begin_message(connection, transaction, Stage.DATA)
    connection.read(
        DataReader(message),
        transaction.deadline,
        partial(_finish_mail, connection, transaction, message, has_doubled_dots=True),
    )
    connection.reply(replies.GO_AHEAD)


def bdat(connection: MailProtocol, argument: bytes) -> None:
    """Read a chunk (RFC 3030 2). A rejected chunk is read and discarded: the client sends it."""
    try:
        size, is_last = parse_bdat(argument)
    except CommandError as refusal:
        # A chunk of unknown size follows, so its end cannot be found.
        connection.half_close_with(refusal.reply)
        return
    try:
        transaction = _ready_transaction(connection)
        if transaction.stage is Stage.CHUNK_REFUSED:
            raise CommandError(replies.BDAT_HAS_FAILED)
    except CommandError as refusal:
        deadline = connection.clock.seconds() + connection.limits.message
        _read_chunk(connection, size, None, deadline, partial(connection.reject, refusal.reply))
        return
    message = transaction.message or _begin_message(connection, transaction, Stage.CHUNKS)
    if size >= SMALL_CHUNK:
        connection.commands -= 1

    def finish_chunk() -> None:
        if is_last:
            _finish_mail(connection, transaction, message)
            return
        refusal = _drop_reason(message)
        if refusal is None:
            connection.reply(replies.OK)
            return
        transaction.stage = Stage.CHUNK_REFUSED
        _reject_mail(connection, transaction, refusal)

    _read_chunk(connection, size, message, transaction.deadline, finish_chunk)


def _ready_transaction(connection: MailProtocol) -> Transaction:
    transaction = connection.transaction
    if transaction is None:
        raise CommandError(replies.MAIL_FIRST)
    if not transaction.recipients:
        raise CommandError(replies.NO_RECIPIENTS)
    return transaction


def _begin_message(
    connection: MailProtocol, transaction: Transaction, stage: Stage
) -> MessageBuffer:
    message = MessageBuffer(
        connection.limits.message_size, connection.memory, counting_key(connection.client.ip)
    )
    transaction.message = message
    transaction.stage = stage
    connection.receiver.traffic.note_progress(transaction)
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


def _finish_mail(
    connection: MailProtocol,
    transaction: Transaction,
    message: MessageBuffer,
    *,
    has_doubled_dots: bool = False,
) -> None:
    """Store a complete mail, and reply when it is on disk."""
    refusal, line_ends = _drop_reason(message), message.line_ends
    raw_message = message.take()
    connection.end_transaction()
    if refusal is not None:
        _reject_mail(connection, transaction, refusal)
        return
    if line_ends is not LineEnds.CRLF:
        bad_ending = None
        if line_ends is LineEnds.INVALID:
            bad_ending = replies.BARE_CONTENT
        elif transaction.session.account_id is None and not connection.settings.is_auth_optional:
            # An authenticated program may end its lines with LF, and so may one that need not
            # authenticate. Its mail is not relayed, so no other server can be tricked into seeing
            # a second mail inside it.
            bad_ending = replies.BARE_LINE_FEED
        if bad_ending is not None:
            # Sender and receiver may disagree where the mail ends. Further input could be part of
            # the mail, so it is not read.
            connection.half_close_with(bad_ending)
            _record_refusal(connection, transaction, bad_ending)
            return
        if has_doubled_dots:
            raw_message = undo_dots_after_lf(raw_message)
    envelope = transaction.envelope(connection.transcript)
    deliver = partial(connection.receiver.deliver, transaction.session, envelope, raw_message)
    complete_at = connection.clock.seconds()
    answer = partial(_reply_delivered, connection, transaction, len(raw_message), complete_at)
    reject = partial(_reject_undelivered, connection, transaction)
    fault = connection.receiver.find_fault(connection.client.signed_in, envelope.recipients)
    if fault is None:
        connection.call(deliver, partial(answer, partial(_accept, connection)), reject)
        return

    def store_mail(send_reply: SendReply) -> Deferred[None]:
        return maybeDeferred(deliver).addCallback(partial(answer, send_reply))

    connection.wait_for(
        fault.addCallback(partial(_simulate_fault, connection, transaction, store_mail)),
        lambda _: None,
        reject,
    )


def _drop_reason(message: MessageBuffer) -> bytes | None:
    """Return the reply to a message that was too large to keep, or `None`."""
    if message.is_too_large:
        return replies.MESSAGE_TOO_LARGE
    if message.is_evicted:
        return replies.TOO_MUCH_AT_ONCE
    return None


def _reject_mail(connection: MailProtocol, transaction: Transaction, refusal: bytes) -> None:
    """Reject a mail with accepted recipients, and record it for clients that wait for it."""
    connection.reject(refusal)
    _record_refusal(connection, transaction, refusal)


def _reply_delivered(
    connection: MailProtocol,
    transaction: Transaction,
    size: int,
    complete_at: float,
    send_reply: SendReply,
    delivery_id: DeliveryId,
) -> Deferred[None] | None:
    """Write a stored mail to the journal, and send the reply to it."""
    connection.reset_error_count()
    connection.journal.note_delivery(
        transaction.session,
        transaction.envelope_sender,
        delivery_id,
        len(transaction.recipients),
        size,
        connection.clock.seconds() - complete_at,
    )
    return send_reply(delivery_id)


def _accept(connection: MailProtocol, delivery_id: DeliveryId) -> None:
    """Reply that a mail is stored."""
    connection.reply(replies.delivered(delivery_id))


def _simulate_fault(
    connection: MailProtocol, transaction: Transaction, store_mail: StoreMail, fault: Fault | None
) -> Deferred[None]:
    """Simulate the fault that one of the recipients asks for, or store the mail."""
    if fault is None:
        return store_mail(partial(_accept, connection))
    match fault.meeting:
        case Meeting.DELAYED:
            return _delay(connection, transaction, store_mail, fault.seconds)
        case Meeting.ANSWERED_AS:
            return _answer_as_receiver(connection, transaction, store_mail, fault)
        case Meeting.DROPPED_AFTER:
            return store_mail(lambda _: connection.close_silently())
        case Meeting.DROPPED:
            connection.close_silently()
            reason = f"{fault.tag}: the connection was closed instead of a reply"
            _record_refusal(connection, transaction, reason.encode())
        case _:
            code, enhanced = fault.reply
            text = f"{fault.tag}: refused as this tag requests"
            refusal = replies.reply(code, text, enhanced)
            replied = connection.reject_slowly(refusal)
            _record_refusal(connection, transaction, refusal)
            return replied or succeed(None)
    return succeed(None)


def _delay(
    connection: MailProtocol, transaction: Transaction, store_mail: StoreMail, seconds: int
) -> Deferred[None]:
    """Store the mail, and reply later."""

    def send_reply(delivery_id: DeliveryId) -> Deferred[None]:
        return connection.reply_after(float(seconds), replies.delivered(delivery_id))

    return _with_slow_reply(connection, transaction, store_mail, send_reply)


def _answer_as_receiver(
    connection: MailProtocol, transaction: Transaction, store_mail: StoreMail, fault: Fault
) -> Deferred[None]:
    """Store the mail, and reply as the receiver that a recipient's tag names."""
    recipient = next(known for known in transaction.recipients.values() if known.tag == fault.tag)

    def send_reply(delivery_id: DeliveryId) -> Deferred[None]:
        found = connection.receiver.reply_as_receiver(recipient, delivery_id)
        return found.addCallback(send, delivery_id)

    def send(answer: ReceiverReply, delivery_id: DeliveryId) -> None:
        line = replies.as_receiver(answer, delivery_id)
        if answer.code == CLOSING:
            connection.close_with(line)
        else:
            connection.reply(line)

    return _with_slow_reply(connection, transaction, store_mail, send_reply)


def _with_slow_reply(
    connection: MailProtocol,
    transaction: Transaction,
    store_mail: StoreMail,
    send_reply: SendReply,
) -> Deferred[None]:
    """Store the mail, and hold one of the slow replies of its accounts until the reply is sent."""
    held = connection.slow_replies
    accounts = {recipient.account_id for recipient in transaction.recipients.values()}
    if any(held[account] >= connection.limits.slow_replies for account in accounts):
        replied = connection.reject_slowly(replies.TOO_MANY_SLOW)
        _record_refusal(connection, transaction, replies.TOO_MANY_SLOW)
        return replied or succeed(None)
    held.update(accounts)

    def give_back(done: T) -> T:
        held.subtract(accounts)
        for account in accounts:
            if not held[account]:
                del held[account]
        return done

    return store_mail(send_reply).addBoth(give_back)


def _reject_undelivered(
    connection: MailProtocol, transaction: Transaction, failure: Failure
) -> Deferred[None] | None:
    refusal = connection.failure_reply(failure)
    replied = connection.reject_slowly(refusal)
    _record_refusal(connection, transaction, refusal)
    return replied


def _record_refusal(connection: MailProtocol, transaction: Transaction, refusal: bytes) -> None:
    connection.receiver.record_refusal(
        transaction.session,
        transaction.envelope_sender,
        tuple(transaction.recipients.values()),
        refusal.decode("ascii").strip(),
    )
