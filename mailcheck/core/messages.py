"""A mail on its way in, and a mail as it is kept.

What is made for every mail is a Struct without a place in the garbage collector's lists: none
of them can be part of a cycle.
"""

from dataclasses import dataclass, field

from msgspec import Struct, msgpack

from mailcheck.core.addresses import UNTAGGED
from mailcheck.core.content import Extracted, HeaderSummary, MessageContent
from mailcheck.core.cursors import START, Position
from mailcheck.core.identifiers import (
    AccountId,
    DeliverabilityTestId,
    DeliveryId,
    MessageId,
)
from mailcheck.core.instants import Instant
from mailcheck.core.receiver_reports import ReportKind

NULL_REVERSE_PATH = ""
"""The empty MAIL FROM of bounces and other notifications (RFC 5321 4.5.5)."""


class TlsFacts(Struct, frozen=True, array_like=True, gc=False):
    """What was negotiated: ``version`` like ``TLSv1.3``, ``cipher`` in OpenSSL's spelling."""

    version: str
    cipher: str


class Session(Struct, frozen=True, array_like=True, gc=False):
    """Facts of one SMTP connection, as they stand when a transaction begins.

    ``account_id`` is the account that authenticated, on the submission port.
    """

    client_ip: str
    helo_name: str
    is_extended: bool
    tls: TlsFacts | None = None
    account_id: AccountId | None = None


class Recipient(Struct, frozen=True, array_like=True, gc=False):
    """One accepted RCPT TO: the address as it was written, and whose inbox it reaches.

    With a ``test_id`` it is the address of that account's deliverability test, with a
    ``report_kind`` that of its reports; else it is its inbox.
    """

    address: str
    account_id: AccountId
    tag: str
    test_id: DeliverabilityTestId | None = None
    report_kind: ReportKind | None = None

    @property
    def is_inbox(self) -> bool:
        """Tell whether it is the address of an inbox."""
        return self.test_id is None and self.report_kind is None


class Envelope(Struct, frozen=True, array_like=True, gc=False):
    """One SMTP transaction up to DATA. Recipients are distinct.

    ``transcript`` is the conversation, a line ``C: ...`` or ``S: ...`` each; it
    is there for deliverability tests alone, inbox mail has none.
    """

    envelope_sender: str
    recipients: tuple[Recipient, ...]
    transcript: tuple[str, ...] = ()


class Delivery(Struct, frozen=True, array_like=True, gc=False):
    """A mail to be stored: one message for each recipient with an inbox, ``raw_message`` once.

    To another process it goes as MessagePack: to pickle each of its parts takes five times as long.
    """

    id: DeliveryId
    session: Session
    envelope: Envelope
    raw_message: bytes
    received_at: Instant
    expires_at: Instant
    message_ids: tuple[MessageId, ...]
    share_tokens: tuple[str, ...]

    def message(self, number: int, position: Position, header: HeaderSummary) -> "MessageSummary":
        """Return the message of a recipient, as it is stored at a position of the inbox."""
        recipient = self.envelope.recipients[number]
        return MessageSummary(
            id=self.message_ids[number],
            account_id=recipient.account_id,
            delivery_id=self.id,
            position=position,
            recipient=recipient.address,
            tag=recipient.tag,
            header=header,
            size=len(self.raw_message),
            received_at=self.received_at,
            expires_at=self.expires_at,
            share_token=self.share_tokens[number],
        )

    def __reduce__(self) -> tuple[object, tuple[bytes]]:
        return _decode_delivery, (_encode_delivery(self),)


_encode_delivery = msgpack.Encoder().encode
_DECODER = msgpack.Decoder(Delivery)


def _decode_delivery(packed: bytes) -> Delivery:
    """Make a delivery of what its ``__reduce__`` gives."""
    return _DECODER.decode(packed)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A mail for an inbox that was refused: shown to those who wait for it in vain.

    It takes a ``position`` of the inbox as a message does, which the store gives it: whether
    it came before or after a cursor is never a guess. ``count`` is how many were refused for the
    same tag in the same minute, where the tag asks for a fault; all else is that of the last one.
    """

    account_id: AccountId
    recipient: str
    envelope_sender: str
    client_ip: str
    reason: str
    refused_at: Instant
    tag: str = UNTAGGED
    position: Position = field(default=START, compare=False)
    count: int = 1


class TagCount(Struct, frozen=True):
    """How many messages of an inbox carry a tag, and when the newest came."""

    tag: str
    message_count: int
    latest_at: Instant


class MessageSummary(Struct, frozen=True):
    """What filters and lists need of a stored message.

    ``is_read``: somebody has opened it on the dashboard.
    """

    id: MessageId
    account_id: AccountId
    delivery_id: DeliveryId
    position: Position
    recipient: str
    tag: str
    header: HeaderSummary
    size: int
    received_at: Instant
    expires_at: Instant
    share_token: str
    is_read: bool = False


class ListedMessage(Struct, frozen=True):
    """A message in a list: its summary, and what was extracted from it."""

    summary: MessageSummary
    extracted: Extracted


class StoredMessage(Struct, frozen=True, eq=False, weakref=True):
    """A whole message: its summary, how it came in, and what was derived from its bytes.

    Compared by identity: all who are woken by one mail get the same object,
    and what is rendered from it is rendered once.
    """

    summary: MessageSummary
    envelope_sender: str
    session: Session
    content: MessageContent
