"""DATA and BDAT: the message itself, and its way to the receiver and back to the client."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from twisted.internet.defer import Deferred, maybeDeferred, succeed
from twisted.python.failure import Failure

from mailcheck.core.faults import Fault, Meeting
from mailcheck.core.identifiers import DeliveryId
from mailcheck.core.network_addresses import counting_key
from mailcheck.smtp import replies
from mailcheck.smtp.commands import CommandError, parse_bdat
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

Say = Callable[[bytes], Deferred[None] | None]
"""Says the reply to a mail that is on disk, now or later, or something else in its place."""

Store = Callable[[Say], Deferred[None]]
"""Stores a mail, and has the reply to it said."""


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
        # A client that did not wait for 354 goes on with its message, whatever
        # we say: not one line of it may be taken for a command.
        connection.close(refusal.reply)
        return
    message = _begin_message(connection, transaction, Stage.DATA)
    connection.read(
        DataReader(message),
        transaction.deadline,
        partial(_finish_mail, connection, transaction, message, has_doubled_dots=True),
    )
    connection.reply(replies.GO_AHEAD)


def bdat(connection: MailProtocol, argument: bytes) -> None:
    """Read a chunk (RFC 3030 2). A refused one is read and dropped: the client sends it anyway."""
    try:
        size, is_last = parse_bdat(argument)
    except CommandError as refusal:
        # What follows is a chunk of unknown size: no way to find its end.
        connection.close(refusal.reply)
        return
    try:
        transaction = _ready_transaction(connection)
        if transaction.stage is Stage.CHUNK_REFUSED:
            raise CommandError(replies.BDAT_HAS_FAILED)
    except CommandError as refusal:
        deadline = connection.clock.seconds() + connection.limits.message
        _read_chunk(connection, size, None, deadline, partial(connection.refuse, refusal.reply))
        return
    message = transaction.message or _begin_message(connection, transaction, Stage.CHUNKS)
    if size >= SMALL_CHUNK:
        connection.commands -= 1

    def finish_chunk() -> None:
        if is_last:
            _finish_mail(connection, transaction, message)
            return
        refusal = _why_dropped(message)
        if refusal is None:
            connection.reply(replies.OK)
            return
        transaction.stage = Stage.CHUNK_REFUSED
        _turn_away(connection, transaction, refusal)

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
    connection.receiver.traffic.moved(transaction)
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
    """Hand over a mail that has come in whole, and reply when it is on disk."""
    refusal, line_ends = _why_dropped(message), message.line_ends
    raw_message = message.take()
    connection.end_transaction()
    if refusal is not None:
        _turn_away(connection, transaction, refusal)
        return
    if line_ends is not LineEnds.CRLF:
        strays = None
        if line_ends is LineEnds.STRAY:
            strays = replies.BARE_CONTENT
        elif transaction.session.account_id is None:
            # A program that has signed in may end its lines with LF: its mail goes no further
            # than here, so no other server can be told a second mail inside of it.
            strays = replies.BARE_LINE_FEED
        if strays is not None:
            # By its line ends this sender and we may not agree where the mail
            # ended. What comes next could be more of it: nobody listens.
            connection.close(strays)
            _record(connection, transaction, strays)
            return
        if has_doubled_dots:
            raw_message = undo_dots_after_lf(raw_message)
    envelope = transaction.envelope(connection.transcript)
    deliver = partial(connection.receiver.deliver, transaction.session, envelope, raw_message)
    complete_at = connection.clock.seconds()
    answer = partial(_answer, connection, transaction, len(raw_message), complete_at)
    refuse = partial(_not_delivered, connection, transaction)
    fault = connection.receiver.find_fault(connection.client.signed_in, envelope.recipients)
    if fault is None:
        connection.ask(deliver, partial(answer, connection.reply), refuse)
        return

    def store(say: Say) -> Deferred[None]:
        return maybeDeferred(deliver).addCallback(partial(answer, say))

    connection.wait_for(
        fault.addCallback(partial(_meet, connection, transaction, store)),
        lambda _: None,
        refuse,
    )


def _why_dropped(message: MessageBuffer) -> bytes | None:
    """Give the reply to a message that was too much to be kept."""
    if message.is_too_large:
        return replies.MESSAGE_TOO_LARGE
    if message.is_evicted:
        return replies.TOO_MUCH_AT_ONCE
    return None


def _turn_away(connection: MailProtocol, transaction: Transaction, refusal: bytes) -> None:
    """Refuse a mail whose recipients were accepted, and note it for those who wait for it."""
    connection.refuse(refusal)
    _record(connection, transaction, refusal)


def _answer(
    connection: MailProtocol,
    transaction: Transaction,
    size: int,
    complete_at: float,
    say: Say,
    delivery_id: DeliveryId,
) -> Deferred[None] | None:
    """Note a mail that is on disk, and say the reply to it."""
    connection.forgive()
    connection.journal.note_delivery(
        transaction.session,
        transaction.envelope_sender,
        delivery_id,
        len(transaction.recipients),
        size,
        connection.clock.seconds() - complete_at,
    )
    return say(replies.delivered(delivery_id))


def _meet(
    connection: MailProtocol, transaction: Transaction, store: Store, fault: Fault | None
) -> Deferred[None]:
    """Let a mail meet the fault that it asks for, whichever of its recipients asks."""
    if fault is None:
        return store(connection.reply)
    match fault.meeting:
        case Meeting.DELAYED:
            return _delay(connection, transaction, store, fault.seconds)
        case Meeting.DROPPED_AFTER:
            return store(lambda _: connection.vanish())
        case Meeting.DROPPED:
            connection.vanish()
            said = f"{fault.tag}: the connection was ended in place of the reply"
            _record(connection, transaction, said.encode())
        case _:
            code, enhanced = fault.reply
            refusal = replies.reply(code, f"{fault.tag}: refused on request", enhanced)
            replied = connection.reject_slowly(refusal)
            _record(connection, transaction, refusal)
            return replied or succeed(None)
    return succeed(None)


def _delay(
    connection: MailProtocol, transaction: Transaction, store: Store, seconds: int
) -> Deferred[None]:
    held = connection.slow_replies
    accounts = {one.account_id for one in transaction.recipients.values()}
    if any(held[one] >= connection.limits.slow_replies for one in accounts):
        replied = connection.reject_slowly(replies.TOO_MANY_SLOW)
        _record(connection, transaction, replies.TOO_MANY_SLOW)
        return replied or succeed(None)
    held.update(accounts)

    def give_back(done: T) -> T:
        held.subtract(accounts)
        for one in accounts:
            if not held[one]:
                del held[one]
        return done

    return store(partial(connection.reply_after, float(seconds))).addBoth(give_back)


def _not_delivered(
    connection: MailProtocol, transaction: Transaction, failure: Failure
) -> Deferred[None] | None:
    refusal = connection.explain(failure)
    replied = connection.reject_slowly(refusal)
    _record(connection, transaction, refusal)
    return replied


def _record(connection: MailProtocol, transaction: Transaction, refusal: bytes) -> None:
    connection.receiver.record_refusal(
        transaction.session,
        transaction.envelope_sender,
        tuple(transaction.recipients.values()),
        refusal.decode("ascii").strip(),
    )
