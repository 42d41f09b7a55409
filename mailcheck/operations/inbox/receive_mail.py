"""Receiving mail: finding the inbox of a recipient, checking its quota, and storing the mail.

This code runs for every mail, so inboxes are cached briefly. The storing transaction makes the
final check of inbox and quota.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial

from msgspec import Struct, field
from twisted.internet.defer import Deferred, fail, succeed
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailcheck.core.accounts import Caller, InboxState
from mailcheck.core.addresses import (
    INBOX_PREFIX,
    Mailbox,
    explain_bad_local_part,
    fold_tag,
    split_subaddress,
    without_subdomain,
)
from mailcheck.core.cursors import Position
from mailcheck.core.domains.watches import ALERT_TAG
from mailcheck.core.errors import (
    AddressUsed,
    FaultMet,
    InboxDisabled,
    InboxFull,
    OperatorMissing,
    OutOfSpace,
    RecipientUnknown,
)
from mailcheck.core.faults import MAIL_REFUSED, Fault, Meeting, find_fault
from mailcheck.core.identifiers import (
    AccountId,
    DeliveryId,
    MessageId,
    new_share_token,
    new_time_ordered_id,
)
from mailcheck.core.instants import DAY, SECOND, Instant
from mailcheck.core.memory.client_limits import DAY_WINDOW
from mailcheck.core.memory.keys import Key, key_of
from mailcheck.core.memory.recent import Recent
from mailcheck.core.messages import Delivery, Envelope, Recipient, Refusal, Session
from mailcheck.core.network_addresses import is_local_client
from mailcheck.core.rights import Scope
from mailcheck.operations.accounts.authenticate import End
from mailcheck.operations.accounts.log_in import LogIn
from mailcheck.operations.concurrency import MailTraffic
from mailcheck.operations.deliverability.receive_for_tests import ReceiveForTests
from mailcheck.operations.deliverability.reply_as_receiver import (
    ReplyAsReceiver,
    find_requested_reply,
)
from mailcheck.operations.inbox.feeds import MailHandoff
from mailcheck.operations.reports.receive_reports import ReceiveReports
from mailcheck.ports.clocks import ClockAndRandomness, Now
from mailcheck.ports.cluster import Hit, Memory, Notifications, RateCounters
from mailcheck.ports.mail_receiver import ReceiverReply
from mailcheck.store.mail_store import MailStore

GREYLISTED_PAIRS = 1_000
"""Maximum number of greylisted pairs of sender and recipient per inbox and UTC day, since each
is stored."""

RECEIVER_REPLIES = 1_000
"""Maximum number of requested replies of receivers per inbox and UTC day, since each needs an
analysis."""

GREYLIST_MEMORY = DAY
"""Time in which an accepted pair is accepted again without delay."""

UNCOUNTED = 2**31 - 1
"""Limit of the counter for a key's own fault; a day never reaches it."""


class RequestedFaults(Struct, frozen=True, eq=False):
    """Finds and applies simulated faults; with ``is_on`` false there are none.

    ``memory`` and ``counters`` are shared by all daemons.
    """

    memory: Memory
    counters: RateCounters
    now: Now
    is_on: bool

    def at_recipient(self, tag: str) -> Fault | None:
        """Return the fault of a recipient at RCPT."""
        fault = find_fault(tag) if self.is_on else None
        return fault if fault is not None and fault.meeting.is_at_recipient else None

    def meet(self, recipient: Recipient, fault: Fault, envelope_sender: str) -> Deferred[Recipient]:
        """Apply a fault at RCPT. Fire with the recipient if it is accepted all the same.

        The Deferred fails with `FaultMet` if the recipient is rejected.
        """
        if fault.meeting is Meeting.GREYLISTED:
            return Deferred.fromCoroutine(self._greylist(recipient, fault, envelope_sender))
        return fail(FaultMet(f"{fault.tag}: refused as this tag requests", fault.reply))

    def of_mail(
        self, sender: Caller | None, recipients: Sequence[Recipient]
    ) -> Deferred[Fault | None] | None:
        """Return the fault of a whole mail: the first one of its recipients.

        :param sender: the authenticated account. The fault of its key applies if no tag has one.
        :return: `None` if there is certainly no fault.
        """
        if not self.is_on:
            return None
        for recipient in recipients:
            fault = find_fault(recipient.tag)
            if fault is not None and not fault.meeting.is_at_recipient:
                return succeed(fault)
            requested = find_requested_reply(recipient.tag)
            # A stranger could fill the quota of the account's tests through its inbox address.
            may_score = sender is not None or recipient.test_id is not None
            if requested is not None and may_score:
                return Deferred.fromCoroutine(self._count_reply(recipient, requested))
        if sender is None or sender.fails_every is None:
            return None
        return Deferred.fromCoroutine(self._count(sender, sender.fails_every))

    async def _count_reply(self, recipient: Recipient, fault: Fault) -> Fault:
        """Count a requested reply of a receiver, since each needs an analysis.

        A test has one analysis, so its mails are not counted.
        """
        if recipient.test_id is not None:
            return fault
        window = (DAY_WINDOW, DAY_WINDOW.index(self.now()), RECEIVER_REPLIES)
        ((count,),) = await self.counters.hit(
            Hit(key_of("receiver replies of", recipient.account_id), (window,))
        )
        if count > RECEIVER_REPLIES:
            problem = f"more than {RECEIVER_REPLIES} replies of receivers for this inbox today"
            raise FaultMet(f"{fault.tag}: {problem}", MAIL_REFUSED)
        return fault

    async def _greylist(
        self, recipient: Recipient, fault: Fault, envelope_sender: str
    ) -> Recipient:
        now = self.now()
        pair = recipient.address.casefold(), envelope_sender.casefold()
        name = key_of("greylisted", recipient.account_id, *pair)
        first_tried = await self.memory.recall(name)
        if first_tried is None:
            await self._require_room(recipient, fault)
            await self.memory.keep(name, str(now), GREYLIST_MEMORY)
            first_tried = str(now)
        left = fault.seconds * SECOND - (now - Instant(int(first_tried)))
        if left <= 0:
            return recipient
        wait = -(-left // SECOND)
        raise FaultMet(f"{fault.tag}: greylisted; try again in {wait} s", fault.reply)

    async def _require_room(self, recipient: Recipient, fault: Fault) -> None:
        """Count a new pair, since the number of stored pairs per inbox is limited."""
        window = (DAY_WINDOW, DAY_WINDOW.index(self.now()), GREYLISTED_PAIRS)
        ((count,),) = await self.counters.hit(
            Hit(key_of("greylisted of", recipient.account_id), (window,))
        )
        if count > GREYLISTED_PAIRS:
            problem = f"more than {GREYLISTED_PAIRS} pairs of sender and recipient today"
            raise FaultMet(f"{fault.tag}: {problem}", fault.reply)

    async def _count(self, sender: Caller, every: int) -> Fault | None:
        window = (DAY_WINDOW, DAY_WINDOW.index(self.now()), UNCOUNTED)
        ((count,),) = await self.counters.hit(Hit(key_of("mails of key", sender.key_id), (window,)))
        if count % every:
            return None
        which = "each mail" if every == 1 else f"mail {every} of {every}"
        return Fault(f"{which} of this key", Meeting.REFUSED_MAIL, MAIL_REFUSED)


OPERATOR_MAILBOXES = frozenset({"postmaster", "abuse"})
"""Mailboxes that an operator must be able to read (RFC 5321 4.5.1, RFC 2142)."""

INBOX_FRESHNESS = 2 * SECOND
"""Milliseconds for which an inbox is cached."""

SPACE_FRESHNESS = 1 * SECOND

KNOWN_INBOXES = 4_096
"""Maximum number of cached inboxes."""


OWN_SESSION = Session("127.0.0.1", "localhost", is_extended=True)
"""The session of mail from the daemon itself. Only such mail is accepted for `OWN_TAGS`."""

OWN_TAGS = frozenset({fold_tag(ALERT_TAG)})
"""Tags whose mail is always from the daemon, so that webhooks, programs and people can rely on
it."""

_Found = InboxState | Deferred[InboxState | None]
"""A cached inbox, or the pending result of a lookup in the store."""


class ReceiveSettings(Struct, frozen=True):
    """``domains`` are those of this server, in lower case; ``min_free`` bytes of disk stay free.

    ``submission_port`` accepts mail to any address from programs with a key; `None` without one.
    """

    domains: frozenset[str]
    retention: int
    min_free: int
    submission_port: int | None = None


class ReceiveMail(Struct, eq=False):
    """Implements the port `mailcheck.ports.mail_receiver.MailReceiver` of the SMTP server."""

    _log = Logger()

    store: MailStore
    log_in: LogIn
    notifications: Notifications[AccountId]
    traffic: MailTraffic
    hand_over: MailHandoff
    tests: ReceiveForTests
    replies: ReplyAsReceiver
    reports: ReceiveReports
    faults: RequestedFaults
    settings: ReceiveSettings
    clocks: ClockAndRandomness
    _inboxes: Recent[Key, InboxState] = field(
        default_factory=partial(Recent, KNOWN_INBOXES, INBOX_FRESHNESS)
    )
    _free_bytes: int | None = None
    _looked_at_disk: float = -SPACE_FRESHNESS

    def accept_recipient(
        self, session: Session, envelope_sender: str, mailbox: Mailbox
    ) -> Recipient | Deferred[Recipient]:
        """Return the inbox, test or report address of a recipient; the port lists the errors."""
        place = without_subdomain(mailbox, self.settings.domains)
        mailbox_name, tag = split_subaddress(place.local_part)
        # The prefix of inbox names differs from those of test and report addresses.
        if not mailbox_name.startswith(INBOX_PREFIX):
            other = self.tests.find_recipient(mailbox) or self.reports.find_recipient(mailbox)
            if other is not None:
                return other.addCallback(self._require_space_for)
        if fold_tag(tag) in OWN_TAGS and session is not OWN_SESSION:
            raise RecipientUnknown(f"the tag {tag} is reserved for mail from this service")
        found = self._find_inbox(session, place, mailbox_name)
        accepted: Recipient | Deferred[Recipient]
        if isinstance(found, InboxState):
            accepted = self._require_room(found, session, envelope_sender, mailbox, tag)
        else:
            accepted = found.addCallback(self._require_room, session, envelope_sender, mailbox, tag)
        fault = self.faults.at_recipient(tag)
        if fault is None:
            return accepted
        when_accepted = accepted if isinstance(accepted, Deferred) else succeed(accepted)
        return when_accepted.addCallback(self._meet, fault, session, envelope_sender)

    def find_fault(
        self, sender: Caller | None, recipients: tuple[Recipient, ...]
    ) -> Deferred[Fault | None] | None:
        """Return the fault of a whole mail."""
        return self.faults.of_mail(sender, recipients)

    def deliver(
        self, session: Session, envelope: Envelope, raw_message: bytes
    ) -> Deferred[DeliveryId]:
        """Store a mail. Fires when it is on disk; the port lists the errors."""
        received_at = self.clocks.now()
        self._require_space(received_at)
        count = len(envelope.recipients)
        delivery = Delivery(
            id=DeliveryId(new_time_ordered_id(received_at, self.clocks.random_bytes)),
            session=session,
            envelope=envelope,
            raw_message=raw_message,
            received_at=received_at,
            expires_at=Instant(received_at + self.settings.retention),
            message_ids=tuple(
                MessageId(new_time_ordered_id(received_at, self.clocks.random_bytes))
                for _ in range(count)
            ),
            share_tokens=tuple(new_share_token(self.clocks.random_bytes) for _ in range(count)),
        )
        stored = self.store.deliver(delivery)
        if self.hand_over.expect(delivery):
            self.traffic.flush()
        return stored.addCallbacks(self._announce, self._look_again, callbackArgs=(delivery,))

    def reply_as_receiver(
        self, recipient: Recipient, delivery_id: DeliveryId
    ) -> Deferred[ReceiverReply]:
        """Return the reply to a stored mail of the receiver that the recipient's tag names."""
        return Deferred.fromCoroutine(self.replies.reply(recipient, delivery_id))

    def record_refusal(
        self,
        session: Session,
        envelope_sender: str,
        recipients: tuple[Recipient, ...],
        reason: str,
    ) -> None:
        """Record that a mail for these inboxes was rejected, for clients that wait for it."""
        for recipient in recipients:
            if not recipient.is_inbox:
                continue
            noted = self.store.note_refusal(
                Refusal(
                    account_id=recipient.account_id,
                    recipient=recipient.address,
                    envelope_sender=envelope_sender,
                    client_ip=session.client_ip,
                    reason=reason,
                    refused_at=self.clocks.now(),
                    tag=recipient.tag,
                )
            )
            noted.addCallback(self._announce_refusal, recipient.account_id)
            noted.addErrback(self._log_lost_refusal)

    def authenticate(self, name: str, password: str, client_ip: str) -> Deferred[Caller]:
        """Return the caller that uses SMTP AUTH, with the scope `Scope.INBOX_WRITE`."""
        return Deferred.fromCoroutine(
            self.log_in.identify(name, password, client_ip, (Scope.INBOX_WRITE,))
        )

    def watched(self, caller: Caller, end: End) -> AbstractContextManager[None]:
        """Call ``end`` once if a client that has authenticated loses its access meanwhile."""
        return self.log_in.watched(caller, end)

    def _find_inbox(self, session: Session, mailbox: Mailbox, mailbox_name: str) -> _Found:
        if session.account_id is not None:
            account_id = session.account_id
            return self._look_up(
                key_of("account", account_id), lambda: self.store.find_account_inbox(account_id)
            )
        is_ours = mailbox.domain.lower().rstrip(".") in self.settings.domains
        problem = explain_bad_local_part(mailbox.local_part) if is_ours else None
        if problem is not None:
            raise RecipientUnknown(f"no inbox has the address {mailbox}: {problem}")
        if mailbox_name in OPERATOR_MAILBOXES and (is_ours or not mailbox.domain):
            found = self._look_up(key_of("operator"), self.store.find_operator_inbox)
            return found if isinstance(found, InboxState) else found.addCallback(_require_operator)
        if not is_ours and mailbox.domain:
            problem = f"{mailbox.domain} is not a domain of this server"
            raise RecipientUnknown(problem + self._advise_submission(session))
        if not is_ours or not mailbox_name.startswith(INBOX_PREFIX):
            problem = f"no inbox has the address {mailbox}"
            raise RecipientUnknown(problem + self._advise_submission(session))
        return self._look_up(
            key_of("mailbox", mailbox_name), lambda: self.store.find_inbox(mailbox_name)
        )

    def _advise_submission(self, session: Session) -> str:
        """Return how programs of the own network send mail to any address."""
        port = self.settings.submission_port
        if port is None or not is_local_client(session.client_ip):
            return ""
        return f"; to catch mail to any address, send it to port {port} with an API key as password"

    def _look_up(self, key: Key, find: Callable[[], Deferred[InboxState | None]]) -> _Found:
        known = self._inboxes.get(key, self.clocks.now())
        return known if known is not None else find().addCallback(self._remember, key)

    def _remember(self, inbox: InboxState | None, key: Key) -> InboxState | None:
        if inbox is not None and inbox.has_room:  # a full inbox may have space a moment later
            self._inboxes.put(key, inbox, self.clocks.now())
        return inbox

    def _require_room(
        self,
        inbox: InboxState | None,
        session: Session,
        envelope_sender: str,
        mailbox: Mailbox,
        tag: str,
    ) -> Recipient:
        if inbox is None:
            raise RecipientUnknown(f"no inbox has the address {mailbox}")
        recipient = Recipient(
            str(mailbox), inbox.account_id, tag, retention_hours=inbox.retention_hours
        )
        try:
            if inbox.is_disabled:
                raise InboxDisabled("the account of this inbox is disabled")
            if not inbox.has_room:
                raise InboxFull("the inbox is full; delete mail, or wait until old mail expires")
            return self._require_space_for(recipient)
        except (InboxDisabled, InboxFull, OutOfSpace) as failure:
            self.record_refusal(session, envelope_sender, (recipient,), str(failure))
            raise

    def _meet(
        self, recipient: Recipient, fault: Fault, session: Session, envelope_sender: str
    ) -> Deferred[Recipient]:
        def note(failure: Failure) -> Failure:
            failure.trap(FaultMet)
            self.record_refusal(session, envelope_sender, (recipient,), str(failure.value))
            return failure

        return self.faults.meet(recipient, fault, envelope_sender).addErrback(note)

    def _require_space_for(self, recipient: Recipient) -> Recipient:
        self._require_space(self.clocks.now())
        return recipient

    def _require_space(self, now: int) -> None:
        # If the clock was set back, the cached value must not stay valid.
        if not 0 <= now - self._looked_at_disk < SPACE_FRESHNESS:
            self._free_bytes = self.store.free_bytes()
            self._looked_at_disk = now
        free = self._free_bytes
        if free is not None and free < max(self.settings.min_free, 1):
            raise OutOfSpace("the server is short of disk space; try again later")

    def _announce(self, positions: tuple[Position, ...], delivery: Delivery) -> DeliveryId:
        recipients = delivery.envelope.recipients
        accounts = {recipient.account_id for recipient in recipients if recipient.is_inbox}
        if accounts:
            self.traffic.note_stored()
            self.hand_over.stored(delivery, positions)
        for account_id in accounts:
            self.notifications.publish(account_id)
        test_ids = [recipient.test_id for recipient in recipients if recipient.test_id is not None]
        if test_ids:
            self.tests.announce(test_ids)
        if any(recipient.report_kind is not None for recipient in recipients):
            self.reports.when_waiting()
        return delivery.id

    def _look_again(self, failure: Failure) -> Failure:
        """Clear the caches of inboxes and disk space, since the store has contradicted them."""
        self._inboxes.clear()
        self._looked_at_disk = -SPACE_FRESHNESS
        if isinstance(failure.value, AddressUsed):
            raise self.tests.explain(failure.value)
        return failure

    def _announce_refusal(self, _: None, account_id: AccountId) -> None:
        """Notify waiting clients of a rejection."""
        self.notifications.publish(account_id)

    def _log_lost_refusal(self, failure: Failure) -> None:
        self._log.warn(
            "a rejection could not be recorded: {reason}", reason=failure.getErrorMessage()
        )


def _require_operator(inbox: InboxState | None) -> InboxState | None:
    if inbox is None:
        raise OperatorMissing("no operator account exists yet to read mail for postmaster")
    return inbox
