"""Mail that programs post to the API of a provider: received as on the submission port."""

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct, field
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from mailcheck.core.accounts import Caller
from mailcheck.core.errors import (
    AddressUsed,
    ConnectionDropped,
    ExpectedFailure,
    FaultMet,
    InboxFull,
    LimitExceeded,
    MailTooLarge,
    OutOfSpace,
    RecipientUnknown,
    StoreUnavailable,
)
from mailcheck.core.faults import Fault, Meeting
from mailcheck.core.identifiers import AccountId, DeliveryId
from mailcheck.core.messages import Envelope, Recipient, Session, SubmittedMail
from mailcheck.ports.mail_receiver import MailJournal, MailReceiver

SLOW_REPLIES = 20
"""Maximum number of delayed answers of an account at the same time, as for SMTP."""

REJECTIONS = (AddressUsed, FaultMet, InboxFull, OutOfSpace, RecipientUnknown, StoreUnavailable)
"""The failures of a mail that are recorded for clients that wait for it."""


class _Accepted(Struct, frozen=True):
    mail: SubmittedMail
    recipients: tuple[Recipient, ...]
    fault: Fault | None


class SubmitMail(Struct, frozen=True, eq=False):
    """Passes mail to the receiver of the SMTP server, in the order of its commands.

    :param max_size: maximum number of bytes of a mail.
    """

    receiver: MailReceiver
    journal: MailJournal
    clock: IReactorTime
    max_size: int
    _slow: Counter[AccountId] = field(default_factory=Counter)

    async def submit(
        self, caller: Caller, session: Session, mails: Sequence[SubmittedMail]
    ) -> list[DeliveryId]:
        """Store all mails of a request, or none if one of them is rejected at its recipients.

        :return: the id of each mail, when all of them are on disk.
        :raises ConnectionDropped: a fault asks for it. The mails may be stored.
        :raises ExpectedFailure: a mail is rejected; see `MailReceiver`.
        """
        accepted = [await self._accept(caller, session, mail) for mail in mails]
        delivered = [await self._deliver(session, mail) for mail in accepted]
        await self._meet_late(caller, accepted)
        return delivered

    async def submit_each(
        self, caller: Caller, session: Session, mails: Sequence[SubmittedMail]
    ) -> list[DeliveryId | ExpectedFailure]:
        """Store each mail of a request that is not rejected.

        :return: the id of each mail on disk, or its failure.
        :raises ConnectionDropped: a fault asks for it. The mails may be stored.
        """
        results: list[DeliveryId | ExpectedFailure] = []
        stored: list[_Accepted] = []
        for mail in mails:
            try:
                accepted = await self._accept(caller, session, mail)
                results.append(await self._deliver(session, accepted))
                stored.append(accepted)
            except ConnectionDropped:
                raise
            except ExpectedFailure as failure:
                results.append(failure)
        await self._meet_late(caller, stored)
        return results

    async def _meet_late(self, caller: Caller, stored: Sequence[_Accepted]) -> None:
        """Apply the faults of stored mails: wait for the longest delay, or drop the connection."""
        slowest = max((_delay_of(mail.fault) for mail in stored), default=0)
        if slowest:
            await self._wait(caller.account_id, slowest)
        for accepted in stored:
            if accepted.fault is not None and accepted.fault.meeting is Meeting.DROPPED_AFTER:
                raise ConnectionDropped(f"{accepted.fault.tag}: the connection is closed")

    async def _accept(self, caller: Caller, session: Session, mail: SubmittedMail) -> _Accepted:
        """Do what SMTP does until the end of DATA. A mail that meets a fault is recorded."""
        if len(mail.raw_message) > self.max_size:
            raise MailTooLarge(
                f"the mail has {len(mail.raw_message):,} bytes; the maximum is {self.max_size:,}"
            )
        recipients: list[Recipient] = []
        for mailbox in mail.recipients:
            found = self.receiver.accept_recipient(session, mail.envelope_sender, mailbox)
            recipients.append(await found if isinstance(found, Deferred) else found)
        everyone = tuple(recipients)
        finding = self.receiver.find_fault(caller, everyone)
        fault = None if finding is None else await finding
        try:
            _meet(fault)
        except (FaultMet, ConnectionDropped) as failure:
            self._record(session, mail, everyone, failure)
            raise
        if fault is not None and fault.meeting is Meeting.DELAYED:
            self._require_slow_place(caller.account_id)
        return _Accepted(mail, everyone, fault)

    async def _deliver(self, session: Session, accepted: _Accepted) -> DeliveryId:
        mail, began = accepted.mail, self.clock.seconds()
        envelope = Envelope(
            mail.envelope_sender, accepted.recipients, posted=mail.posted, keywords=mail.keywords
        )
        try:
            delivery_id = await self.receiver.deliver(session, envelope, mail.raw_message)
        except REJECTIONS as failure:
            self._record(session, mail, accepted.recipients, failure)
            raise
        self.journal.note_delivery(
            session,
            mail.envelope_sender,
            delivery_id,
            len(accepted.recipients),
            len(mail.raw_message),
            self.clock.seconds() - began,
        )
        return delivery_id

    def _record(
        self,
        session: Session,
        mail: SubmittedMail,
        recipients: tuple[Recipient, ...],
        failure: ExpectedFailure,
    ) -> None:
        self.receiver.record_refusal(session, mail.envelope_sender, recipients, str(failure))

    def _require_slow_place(self, account_id: AccountId) -> None:
        if self._slow[account_id] >= SLOW_REPLIES:
            raise LimitExceeded("too many delayed answers for this inbox at the same time", 1)

    async def _wait(self, account_id: AccountId, seconds: int) -> None:
        self._slow[account_id] += 1
        try:
            await deferLater(self.clock, seconds)
        finally:
            self._slow[account_id] -= 1
            if not self._slow[account_id]:
                del self._slow[account_id]


def _meet(fault: Fault | None) -> None:
    """Raise the failure of a fault that rejects the whole mail."""
    if fault is None:
        return
    if fault.meeting is Meeting.DROPPED:
        raise ConnectionDropped(f"{fault.tag}: the connection was closed instead of an answer")
    if fault.meeting is Meeting.REFUSED_MAIL:
        raise FaultMet(f"{fault.tag}: refused as this tag requests", fault.reply)


def _delay_of(fault: Fault | None) -> int:
    return 0 if fault is None or fault.meeting is not Meeting.DELAYED else fault.seconds
