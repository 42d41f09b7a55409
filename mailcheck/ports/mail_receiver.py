"""Protocols that the SMTP server needs from the other packages."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from msgspec import Struct
from twisted.internet.defer import Deferred

from mailcheck.core.accounts import Caller
from mailcheck.core.addresses import Mailbox
from mailcheck.core.errors import ExpectedFailure
from mailcheck.core.faults import Fault
from mailcheck.core.identifiers import DeliveryId
from mailcheck.core.messages import Envelope, Recipient, Session


class MailJournal(Protocol):
    """Records received and rejected mail."""

    def note_delivery(
        self,
        session: Session,
        envelope_sender: str,
        delivery_id: DeliveryId,
        recipients: int,
        size: int,
        seconds: float,
    ) -> None:
        """Record a stored mail, ``seconds`` after its last octet arrived."""

    def note_refusal(self, client_ip: str, command: str, reply: bytes) -> None:
        """Record a 4xx or 5xx reply to a command, or to a client that sent none yet."""


class Traffic(Protocol):
    """Tracks the mails being received, so that mails that end together are stored together."""

    def note_progress(self, mail: object) -> None:
        """Record that a mail is being received or has made progress."""

    def note_end(self, mail: object) -> None:
        """Record that a mail was received or aborted."""


class ReceiverReply(Struct, frozen=True):
    """The reply that a receiver gives to a mail; ``enhanced`` may be empty.

    ``note`` says in a sentence or two where the reply comes from.
    """

    code: int
    enhanced: str
    text: str
    note: str


class MailReceiver(Protocol):
    """Finds the account of a recipient and stores mail.

    Expected failures are exceptions of `mailcheck.core.errors`, raised at once or by the
    Deferred. Any other exception is a bug, and the sender gets a temporary failure.
    """

    @property
    def traffic(self) -> Traffic:
        """The tracker for the beginning, the progress and the end of incoming mails."""

    def accept_recipient(
        self, session: Session, envelope_sender: str, mailbox: Mailbox
    ) -> Recipient | Deferred[Recipient]:
        """Find the inbox or test of a recipient. A bare ``postmaster`` has an empty domain.

        :raises RecipientUnknown: the inbox, test or domain does not exist (550).
        :raises InboxFull: the inbox is over its quota (452).
        :raises OutOfSpace: the disk is full (452).
        :raises OperatorMissing: no account exists yet for postmaster's mail (451).
        :raises FaultMet: the tag requests a rejection.
        :raises StoreUnavailable: the store cannot answer now (451).
        """

    def find_fault(
        self, sender: Caller | None, recipients: tuple[Recipient, ...]
    ) -> Deferred[Fault | None] | None:
        """Find the fault for a whole mail, and count the mail for the setting of its sender's key.

        :return: `None` if there is certainly no fault.
        """

    def deliver(
        self, session: Session, envelope: Envelope, raw_message: bytes
    ) -> Deferred[DeliveryId]:
        """Store a mail. Fires when it is on disk, never earlier.

        Delivering an identical mail for a test again succeeds without a change.

        :raises RecipientUnknown: an inbox or test was deleted since RCPT (550).
        :raises AddressUsed: a test has received another mail (550); this mail was not stored.
        :raises InboxFull: an inbox reached its quota since RCPT (452); the mail was not stored.
        :raises OutOfSpace: the disk is full (452).
        :raises StoreUnavailable: the store cannot answer now (451).
        """

    def reply_as_receiver(
        self, recipient: Recipient, delivery_id: DeliveryId
    ) -> Deferred[ReceiverReply]:
        """Return the reply to a stored mail of the receiver that the recipient's tag names.

        Fires after the mail has been scored.
        """

    def record_refusal(
        self,
        session: Session,
        envelope_sender: str,
        recipients: tuple[Recipient, ...],
        reason: str,
    ) -> None:
        """Record a rejected mail for these inboxes, for clients that wait for it."""

    def authenticate(self, name: str, password: str, client_ip: str) -> Deferred[Caller]:
        """Find the account of a client that uses SMTP AUTH.

        The password is an API key, or the name and the password are those of an account.

        :raises InvalidCredentials: the password is not valid (535).
        :raises NotPermitted: the key may not submit mail (535).
        :raises LimitExceeded: there were too many failed attempts (454).
        :raises Overloaded: too many passwords are being verified (454).
        :raises StoreUnavailable: the store cannot answer now (454).
        """

    def watched(
        self, caller: Caller, end: Callable[[ExpectedFailure], None]
    ) -> AbstractContextManager[None]:
        """Call ``end`` once if a client that has authenticated loses its access meanwhile."""
