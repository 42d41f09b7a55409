"""A mail receiver that stores mails in memory, and fails when the test says so."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TypeVar

from twisted.internet.defer import Deferred

from mailcheck.core.accounts import Caller, RequestLimits
from mailcheck.core.addresses import Mailbox, split_subaddress
from mailcheck.core.errors import ExpectedFailure, InvalidCredentials, RecipientUnknown
from mailcheck.core.faults import Fault, find_fault
from mailcheck.core.identifiers import AccountId, DeliveryId, KeyId
from mailcheck.core.messages import Envelope, Recipient, Session
from mailcheck.operations.deliverability.reply_as_receiver import find_requested_reply
from mailcheck.ops.journal import MailJournal, Pace
from mailcheck.ports.mail_receiver import ReceiverReply

T = TypeVar("T")

JOURNAL = MailJournal("mail", Pace())
"""For tests that do not read it."""


RECEIVER_REPLY = ReceiverReply(550, "5.7.26", "The sender is unauthenticated.", "Gmail: reject.")


@dataclass(frozen=True)
class Delivered:
    """A delivered mail."""

    session: Session
    envelope: Envelope
    raw_message: bytes


@dataclass(frozen=True)
class Refused:
    """A recorded refusal."""

    session: Session
    envelope_sender: str
    recipients: tuple[Recipient, ...]
    reason: str


class FakeTraffic:
    """Stores the mails in progress."""

    def __init__(self) -> None:
        self.arriving: list[object] = []

    def note_progress(self, mail: object) -> None:
        """Add a mail, unless it is known."""
        if mail not in self.arriving:
            self.arriving.append(mail)

    def note_end(self, mail: object) -> None:
        """Remove a mail, which must be known."""
        self.arriving.remove(mail)


@dataclass
class FakeMailReceiver:
    """Accepts mail for ``domain`` (and postmaster), except for local parts in ``unknown``.

    ``keys`` are the known API keys. The answers of the methods named in ``slow`` stay in
    ``pending`` until `answer` is called. ``failures`` contains exceptions by method name, which
    are raised instead of an answer.
    """

    domain: str = "inbox.example"
    keys: dict[str, AccountId] = field(default_factory=dict)
    unknown: frozenset[str] = frozenset({"nobody"})
    slow: frozenset[str] = frozenset()
    receiver_reply: ReceiverReply = RECEIVER_REPLY
    failures: dict[str, Exception] = field(default_factory=dict)
    delivered: list[Delivered] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    asked: list[tuple[Session, str, Mailbox]] = field(default_factory=list)
    secrets: list[str] = field(default_factory=list)
    pending: list[Deferred[None]] = field(default_factory=list)
    traffic: FakeTraffic = field(default_factory=FakeTraffic)

    def accept_recipient(
        self, session: Session, envelope_sender: str, mailbox: Mailbox
    ) -> Deferred[Recipient]:
        """Accept every local part of the domain that is not ``unknown``."""
        self.asked.append((session, envelope_sender, mailbox))
        return self._answer("accept_recipient", lambda: self._find(session, mailbox))

    def _find(self, session: Session, mailbox: Mailbox) -> Recipient:
        name, tag = split_subaddress(mailbox.local_part)
        if session.account_id is not None:
            return Recipient(str(mailbox), session.account_id, tag)
        domain = mailbox.domain.lower().rstrip(".")
        if domain not in (self.domain, "") or name in self.unknown:
            raise RecipientUnknown(f"No inbox {mailbox}")
        return Recipient(str(mailbox), AccountId(name), tag)

    def find_fault(
        self, sender: Caller | None, recipients: tuple[Recipient, ...]
    ) -> Deferred[Fault | None] | None:
        """Return the fault that the first tag asks for after the message."""
        found = [
            fault
            for one in recipients
            if (fault := find_fault(one.tag) or find_requested_reply(one.tag)) is not None
        ]
        return self._answer("find_fault", lambda: found[0]) if found else None

    def deliver(
        self, session: Session, envelope: Envelope, raw_message: bytes
    ) -> Deferred[DeliveryId]:
        """Store the mail."""
        return self._answer("deliver", lambda: self._keep(session, envelope, raw_message))

    def reply_as_receiver(
        self, recipient: Recipient, delivery_id: DeliveryId
    ) -> Deferred[ReceiverReply]:
        """Return ``receiver_reply``."""
        return self._answer("reply_as_receiver", lambda: self.receiver_reply)

    def _keep(self, session: Session, envelope: Envelope, raw_message: bytes) -> DeliveryId:
        self.delivered.append(Delivered(session, envelope, raw_message))
        return DeliveryId(f"delivery-{len(self.delivered)}")

    def record_refusal(
        self,
        session: Session,
        envelope_sender: str,
        recipients: tuple[Recipient, ...],
        reason: str,
    ) -> None:
        """Store the refusal."""
        if "record_refusal" in self.failures:
            raise self.failures["record_refusal"]
        self.refused.append(Refused(session, envelope_sender, recipients, reason))

    def authenticate(self, name: str, password: str, client_ip: str) -> Deferred[Caller]:
        """Look up the password in ``keys``."""
        self.secrets.append(password)

        def look() -> Caller:
            if password not in self.keys:
                raise InvalidCredentials("No such key")
            return Caller(self.keys[password], KeyId(password), RequestLimits(60, 1_000))

        return self._answer("authenticate", look)

    def watched(
        self, caller: Caller, end: Callable[[ExpectedFailure], None]
    ) -> AbstractContextManager[None]:
        """Never end anything."""
        return nullcontext()

    def answer(self) -> None:
        """Send the oldest pending answer."""
        self.pending.pop(0).callback(None)

    def _answer(self, method: str, compute: Callable[[], T]) -> Deferred[T]:
        failure = self.failures.get(method)

        def look(_: None) -> T:
            if failure is not None:
                raise failure
            return compute()

        waiting: Deferred[None] = Deferred()
        answer = waiting.addCallback(look)
        if method in self.slow:
            self.pending.append(waiting)
        else:
            waiting.callback(None)
        return answer
