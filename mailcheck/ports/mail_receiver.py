"""What the SMTP receiver needs of the rest of the house."""

from typing import Protocol

from twisted.internet.defer import Deferred

from mailcheck.core.accounts import Caller
from mailcheck.core.addresses import Mailbox
from mailcheck.core.faults import Fault
from mailcheck.core.identifiers import DeliveryId
from mailcheck.core.messages import Envelope, Recipient, Session


class MailJournal(Protocol):
    """Keeps a record of what came in and what was refused."""

    def note_delivery(
        self,
        session: Session,
        envelope_sender: str,
        delivery_id: DeliveryId,
        recipients: int,
        size: int,
        seconds: float,
    ) -> None:
        """Note a mail that is on disk: ``seconds`` after its last octet had come."""

    def note_refusal(self, client_ip: str, command: str, reply: bytes) -> None:
        """Note a reply of 4xx or 5xx to a command, or to a client that sent none yet."""


class Traffic(Protocol):
    """Keeps in mind which mails are coming in: those that end together are stored together."""

    def note_progress(self, mail: object) -> None:
        """Take note that a mail is coming in, or has come a step further."""

    def note_end(self, mail: object) -> None:
        """Take note that it is there, or will not come."""


class MailReceiver(Protocol):
    """Says whose a recipient is and takes mails in.

    Expected failures are exceptions of `mailcheck.core.errors`, raised at once or by the
    Deferred; anything else is a fault of ours and temporary to the sender.
    """

    @property
    def traffic(self) -> Traffic:
        """Give who is to be told when a mail begins to come in, comes a step further, and ends."""

    def accept_recipient(
        self, session: Session, envelope_sender: str, mailbox: Mailbox
    ) -> Recipient | Deferred[Recipient]:
        """Find the inbox, or test, of a recipient; a bare ``postmaster`` has an empty domain.

        :raises RecipientUnknown: no such inbox, test or domain (550).
        :raises InboxFull: the inbox is over its quota (452).
        :raises OutOfSpace: the disk is (452).
        :raises OperatorMissing: postmaster's mail has no reader yet (451).
        :raises FaultMet: its tag asks for a refusal.
        :raises StoreUnavailable: can't tell now (451).
        """

    def find_fault(
        self, sender: Caller | None, recipients: tuple[Recipient, ...]
    ) -> Deferred[Fault | None] | None:
        """Find the fault that a whole mail is to meet, and count it for ``sender``'s setting.

        :return: nothing where it is certain that it meets none.
        """

    def deliver(
        self, session: Session, envelope: Envelope, raw_message: bytes
    ) -> Deferred[DeliveryId]:
        """Store a mail; fires when it is on disk, and only then.

        The identical mail for a test again succeeds and changes nothing.

        :raises RecipientUnknown: an inbox or test went away since RCPT (550).
        :raises AddressUsed: a test has got another mail already (550); nothing was stored.
        :raises InboxFull: an inbox filled up since RCPT (452); nothing was stored.
        :raises OutOfSpace: (452).
        :raises StoreUnavailable: (451).
        """

    def record_refusal(
        self,
        session: Session,
        envelope_sender: str,
        recipients: tuple[Recipient, ...],
        reason: str,
    ) -> None:
        """Note that a mail for these inboxes was refused, for those who wait for it."""

    def authenticate(self, secret: str) -> Deferred[Caller]:
        """Find the holder of an API key given as an SMTP AUTH password.

        :raises InvalidCredentials: unknown or revoked (535).
        :raises StoreUnavailable: can't tell now (454).
        """
