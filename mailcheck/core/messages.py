"""Mails that are being received, and stored messages.

The structures made for every mail are not tracked by the garbage collector, since they cannot
be part of a cycle.
"""

from dataclasses import dataclass, field

from msgspec import Struct, msgpack

from mailcheck.core.addresses import UNTAGGED, Mailbox
from mailcheck.core.content import Extracted, HeaderSummary, MessageContent
from mailcheck.core.cursors import START, Position
from mailcheck.core.domains.receiver_reports import ReportKind
from mailcheck.core.identifiers import (
    AccountId,
    DeliverabilityTestId,
    DeliveryId,
    MessageId,
)
from mailcheck.core.instants import HOUR, SECOND, Instant

UNDO_TIME = 30 * SECOND
"""How long a deletion on the pages can be undone. The message is hidden at once."""

NULL_REVERSE_PATH = ""
"""The empty MAIL FROM of bounces and other notifications (RFC 5321 4.5.5)."""


SYSTEM_FLAGS = ("\\Answered", "\\Flagged", "\\Deleted", "\\Draft")
"""The flags of a message that are neither its read mark nor keywords (RFC 9051 2.3.2)."""


_SPACE, _WRITTEN_SPACE = " ", "=20"


_encode_delivery = msgpack.Encoder().encode


def keywords_in(flags: str) -> list[str]:
    """Return the keywords, as IMAP writes them, among flags that are separated by spaces."""
    return [word for word in flags.split() if not word.startswith("\\")]


def encode_keyword(text: str) -> str:
    """Return a keyword as IMAP writes it, without spaces."""
    return _SPACE.join(text.split()).replace(_SPACE, _WRITTEN_SPACE)


def read_keyword(written: str) -> str:
    """Return the text of a keyword that IMAP writes like this."""
    return written.replace(_WRITTEN_SPACE, _SPACE)


class TlsFacts(Struct, frozen=True, array_like=True, gc=False):
    """Negotiated TLS parameters: ``version`` like ``TLSv1.3``, ``cipher`` as OpenSSL names it."""

    version: str
    cipher: str


class Session(Struct, frozen=True, array_like=True, gc=False):
    """Facts of an SMTP connection at the beginning of a transaction.

    ``account_id`` is the account that authenticated, on the submission port. ``user_name`` is the
    name that a client has given on a listener that needs no key.
    """

    client_ip: str
    helo_name: str
    is_extended: bool
    tls: TlsFacts | None = None
    account_id: AccountId | None = None
    user_name: str = ""


class Recipient(Struct, frozen=True, array_like=True, gc=False):
    """An accepted RCPT TO: the address as it was written, and the account that it belongs to.

    With a ``test_id`` it is the address of that deliverability test, with a ``report_kind`` the
    address for such reports, and otherwise an inbox address. ``retention_hours`` is that of the
    inbox, if it is not the configured one.
    """

    address: str
    account_id: AccountId
    tag: str
    test_id: DeliverabilityTestId | None = None
    report_kind: ReportKind | None = None
    retention_hours: int | None = None

    @property
    def is_inbox(self) -> bool:
        """Whether it is an inbox address."""
        return self.test_id is None and self.report_kind is None


PROVIDER_TITLES = {
    "resend": "Resend",
    "postmark": "Postmark",
    "sendgrid": "SendGrid",
    "mailgun": "Mailgun",
    "ses": "Amazon SES",
    "brevo": "Brevo",
    "mailtrap": "Mailtrap",
}
"""The providers whose APIs are offered, by the name that paths and searches have."""

SMTP = "smtp"
"""How most mail comes; other mail has the name of a provider whose API was called."""


class Posted(Struct, frozen=True, array_like=True, gc=False):
    """The request to a provider's API that a mail was made from.

    ``request`` is its JSON without secrets, and with long texts cut.
    """

    provider: str
    request: str


class SubmittedMail(Struct, frozen=True):
    """A mail that was made from a request. ``recipients`` are To, Cc and Bcc, distinct."""

    envelope_sender: str
    recipients: tuple[Mailbox, ...]
    raw_message: bytes
    posted: Posted
    keywords: tuple[str, ...] = ()


class Envelope(Struct, frozen=True, array_like=True, gc=False):
    """The sender and the distinct recipients of a mail, and how it came.

    ``transcript`` is the SMTP conversation, in lines that begin with ``C:`` or ``S:``. It is
    recorded for deliverability tests only and empty for inbox mail. ``posted`` is `None` for mail
    that came over SMTP. ``keywords`` are those of the new messages, as IMAP writes them.
    """

    envelope_sender: str
    recipients: tuple[Recipient, ...]
    transcript: tuple[str, ...] = ()
    posted: Posted | None = None
    keywords: tuple[str, ...] = ()

    @property
    def via(self) -> str:
        """How the mail came: `SMTP`, or the name of a provider."""
        return SMTP if self.posted is None else self.posted.provider

    @property
    def request(self) -> str:
        """The request to a provider's API, or an empty text."""
        return "" if self.posted is None else self.posted.request


class Delivery(Struct, frozen=True, array_like=True, gc=False):
    """A mail to be stored: ``raw_message`` once, and one message for each inbox recipient.

    It is pickled as MessagePack, since pickling its parts takes five times as long.
    """

    id: DeliveryId
    session: Session
    envelope: Envelope
    raw_message: bytes
    received_at: Instant
    expires_at: Instant
    message_ids: tuple[MessageId, ...]
    share_tokens: tuple[str, ...]

    def message(
        self, number: int, position: Position, header: HeaderSummary, added_octets: int = 0
    ) -> "MessageSummary":
        """Return the message for the recipient with this index, stored at a position.

        :param added_octets: see `count_added_octets`; only the store needs it.
        """
        recipient = self.envelope.recipients[number]
        expires_at = self.expires_at
        if recipient.retention_hours is not None:
            expires_at = Instant(self.received_at + recipient.retention_hours * HOUR)
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
            expires_at=expires_at,
            share_token=self.share_tokens[number],
            via=self.envelope.via,
            flags=" ".join(sorted(self.envelope.keywords)),
            added_octets=added_octets,
        )

    def __reduce__(self) -> tuple[object, tuple[bytes]]:
        return _decode_delivery, (_encode_delivery(self),)


def count_added_octets(raw_message: bytes) -> int:
    """Return by how many octets a mail grows when each line ends with CRLF."""
    is_ended = not raw_message or raw_message.endswith(b"\n")
    bare = raw_message.count(b"\n") - raw_message.count(b"\r\n")
    return bare if is_ended else bare + 2


_DECODER = msgpack.Decoder(Delivery)


def _decode_delivery(packed: bytes) -> Delivery:
    """Return the delivery that ``__reduce__`` has encoded."""
    return _DECODER.decode(packed)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A rejected mail for an inbox, shown to clients that wait for it.

    The store gives it a ``position`` of the inbox like a message, so it is ordered exactly
    relative to cursors. ``count`` is the number of mails rejected for the same tag in the same
    minute, if the tag requests a fault. The other fields are those of the last one.
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
    """A tag of an inbox, the number of its messages, and when the newest one arrived."""

    tag: str
    message_count: int
    latest_at: Instant


class MessageSummary(Struct, frozen=True):
    """The fields of a stored message that filters and lists need.

    ``is_read``: the message was opened on the dashboard. ``via``: see `Envelope.via`. ``flags``
    are separated by spaces. ``added_octets``: see `count_added_octets`; 0 if it was not stored.
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
    via: str = SMTP
    flags: str = ""
    added_octets: int = 0

    @property
    def keywords(self) -> list[str]:
        """The keywords, as text."""
        return list(map(read_keyword, keywords_in(self.flags)))


class ListedMessage(Struct, frozen=True):
    """A message in a list: its summary and the extracted content."""

    summary: MessageSummary
    extracted: Extracted


class StoredMessage(Struct, frozen=True, eq=False, weakref=True):
    """A stored message: its summary, how it was received, and its content.

    Instances are compared by identity. All clients that one mail wakes get the same instance,
    so it is rendered once. ``request``: see `Envelope.request`.
    """

    summary: MessageSummary
    envelope_sender: str
    session: Session
    content: MessageContent
    request: str = ""
