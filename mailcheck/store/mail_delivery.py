"""The transaction that stores mails: it assigns positions and enforces quotas."""

from collections.abc import Iterable, Sequence
from functools import cache, partial

from msgspec import Struct

from mailcheck.checks.content.header.fields import summarize_header
from mailcheck.core.accounts import InboxState, Quota
from mailcheck.core.addresses import fold_tag
from mailcheck.core.content import HeaderSummary
from mailcheck.core.cursors import Position
from mailcheck.core.deliverability_tests import State, Trigger, next_state
from mailcheck.core.domains.heartbeats import name_in_tag
from mailcheck.core.domains.receiver_reports import (
    MAX_WAITING,
    MAX_WAITING_BYTES,
    ReceiverReport,
    ReportId,
    ReportKind,
    ReportState,
)
from mailcheck.core.errors import AddressUsed, InboxFull, RecipientUnknown
from mailcheck.core.identifiers import AccountId, DeliverabilityTestId, DeliveryId
from mailcheck.core.instants import Instant
from mailcheck.core.messages import Delivery, MessageSummary, Recipient, count_added_octets
from mailcheck.ports.engine import MailWork, Transaction, Value
from mailcheck.store.deliverability_store import transition
from mailcheck.store.messages import ADD_MESSAGES, inbox_of, lock_inboxes, message_row
from mailcheck.store.routed_mails import RoutedMails
from mailcheck.store.transactions import insert, json_of, row_of, value_of

Numbered = tuple[int, Recipient]


class ConcurrentChange(Exception):
    """Another daemon has changed a test since its row was read."""


class DeliveryPlan(Struct, frozen=True):
    """The effects of a mail: messages for these recipients, and a mail for these tests."""

    messages: Sequence[Numbered]
    tests: Sequence[DeliverabilityTestId]


class _TestState(Struct):
    """The state of a test within the group; ``first`` is its mail if the group contains it."""

    state: State
    created_at: Instant
    expires_at: Instant
    forget_at: Instant
    delivery_id: DeliveryId | None
    first: Delivery | None = None


class AddressedTests:
    """The tests that a group of mails is addressed to."""

    def __init__(self, transaction: Transaction, test_ids: Iterable[DeliverabilityTestId]) -> None:
        self._transaction = transaction
        wanted = list(test_ids)
        rows = transaction.rows(
            "SELECT id, state, created_at, expires_at, forget_at, delivery_id "
            f"FROM deliverability_test WHERE id IN ({', '.join('?' * len(wanted))})",
            wanted,
        )
        self._taken: list[tuple[DeliverabilityTestId, Delivery]] = []
        self._tests = {row.id: value_of(_TestState, row) for row in rows}

    def plan(self, delivery: Delivery) -> DeliveryPlan | RecipientUnknown | AddressUsed:
        """Return the effects of a mail, or why it is rejected for all recipients.

        Effects that an identical mail had before are left out: a sender that missed our 250 sends
        the mail again.
        """
        recipients = tuple(enumerate(delivery.envelope.recipients))
        fresh: list[DeliverabilityTestId] = []
        repeated: set[str] = set()
        for _, recipient in recipients:
            if recipient.test_id is None:
                continue
            test = self._tests.get(recipient.test_id)
            if test is None or not _takes_mail(test, delivery.received_at):
                return RecipientUnknown("the test has expired")
            if test.state is State.PENDING:
                fresh.append(recipient.test_id)
            elif self._is_identical(test, delivery):
                repeated |= self._reached(test)
            else:
                return AddressUsed("this test has already received its mail")
        messages = tuple(
            (number, recipient)
            for number, recipient in recipients
            if recipient.is_inbox and recipient.address.casefold() not in repeated
        )
        return DeliveryPlan(messages, fresh)

    def take(self, delivery: Delivery, test_ids: Sequence[DeliverabilityTestId]) -> None:
        """Assign a mail to these tests, for the later mails of the group."""
        for test_id in test_ids:
            test = self._tests[test_id]
            test.state = next_state(test.state, Trigger.MAIL_STORED)
            test.first, test.delivery_id = delivery, delivery.id
            self._taken.append((test_id, delivery))

    def write(self) -> None:
        """Update the tests that received a mail; the deliveries are already stored.

        :raises ConcurrentChange: the whole group must be rolled back.
        """
        for test_id, delivery in self._taken:
            test = self._tests[test_id]
            changes: dict[str, Value] = {
                "received_at": delivery.received_at,
                "delivery_id": delivery.id,
                "transcript": json_of(delivery.envelope.transcript),
                # The retention of the results begins with the mail.
                "forget_at": test.forget_at + delivery.received_at - test.created_at,
            }
            if not transition(
                self._transaction, test_id, State.PENDING, Trigger.MAIL_STORED, changes
            ):
                raise ConcurrentChange(test_id)

    def _is_identical(self, test: _TestState, delivery: Delivery) -> bool:
        sender = delivery.envelope.envelope_sender
        if test.first is not None:
            first = test.first
            return first.envelope.envelope_sender == sender and (
                first.raw_message == delivery.raw_message
            )
        # The size is compared first, so that most other mails need not be read.
        row = self._transaction.row(
            "SELECT raw_message FROM delivery WHERE id = ? AND envelope_sender = ? AND size = ?",
            (test.delivery_id, sender, len(delivery.raw_message)),
        )
        return row is not None and row.raw_message == delivery.raw_message

    def _reached(self, test: _TestState) -> set[str]:
        """Return the inbox addresses that also received the mail of a test."""
        if test.first is not None:
            recipients = test.first.envelope.recipients
            return {recipient.address.casefold() for recipient in recipients if recipient.is_inbox}
        rows = self._transaction.rows(
            "SELECT recipient_key FROM message WHERE delivery_id = ?", (test.delivery_id,)
        )
        return {row.recipient_key for row in rows}


def _takes_mail(test: _TestState, now: Instant) -> bool:
    if test.state is State.PENDING:
        return now < test.expires_at
    return test.delivery_id is not None


_WAITING = """
    SELECT COUNT(*) AS reports,
    CAST(COALESCE(SUM(COALESCE(delivery.size, LENGTH(receiver_report.body))), 0) AS BIGINT) AS size
    FROM receiver_report LEFT JOIN delivery ON delivery.id = delivery_id
    WHERE account_id = ? AND state = 'waiting'
"""

FULL = "too many reports are waiting to be read; try again later"


def is_full(transaction: Transaction, account_id: AccountId) -> bool:
    """Return whether an account has the maximum of waiting reports. Its inbox must be locked."""
    (waiting,) = transaction.rows(_WAITING, (account_id,))
    return bool(waiting.reports >= MAX_WAITING or waiting.size >= MAX_WAITING_BYTES)


def report_row(
    report: ReceiverReport, *, delivery_id: str | None = None, body: bytes | None = None
) -> dict[str, Value]:
    """Return a row of ``receiver_report``; ``body`` is the report itself if it was posted."""
    columns = {"report_key": report.report_id, "delivery_id": delivery_id, "body": body}
    return row_of(report, "report_id", **columns, attempts=0)


class ReportMails:
    """The reports in a group of mails."""

    def __init__(self, transaction: Transaction, recipients: Iterable[Recipient]) -> None:
        self._transaction = transaction
        accounts = {
            recipient.account_id for recipient in recipients if recipient.report_kind is not None
        }
        self._full = {account for account in accounts if is_full(transaction, account)}
        self._rows: list[dict[str, Value]] = []

    def refuse(self, delivery: Delivery) -> InboxFull | None:
        """Return why a mail is rejected, or `None`."""
        if self._full and any(account in self._full for account, _ in _reports_of(delivery)):
            return InboxFull(FULL)
        return None

    def take(self, delivery: Delivery) -> bool:
        """Add the reports of a mail; return whether it has any."""
        found = _reports_of(delivery)
        for number, (account_id, kind) in enumerate(found):
            # As unique as the id of a message, and no message has it.
            report_id = ReportId(delivery.message_ids[number])
            report = ReceiverReport(
                report_id, account_id, kind, ReportState.WAITING, delivery.received_at
            )
            self._rows.append(report_row(report, delivery_id=delivery.id))
        return bool(found)

    def write(self) -> None:
        """Insert the reports; the deliveries are already stored."""
        insert(self._transaction, "receiver_report", self._rows)


def _reports_of(delivery: Delivery) -> list[tuple[AccountId, ReportKind]]:
    """Return the accounts and kinds of the reports in a mail, without duplicates."""
    recipients = delivery.envelope.recipients
    return list(
        dict.fromkeys(
            (recipient.account_id, recipient.report_kind)
            for recipient in recipients
            if recipient.report_kind is not None
        )
    )


MOST_WAITING = 100
"""Maximum number of beats of a heartbeat that wait for their verdict. Anybody can send mail to its
address, so more are not analysed, and do not count."""

# A beat is waiting from now on. The number always changes, so that a run that is under way does
# not overwrite it.
_MAKE_DUE = """
    UPDATE watch SET next_run_at = CASE WHEN next_run_at > ? THEN ? ELSE next_run_at - 1 END
    WHERE id = ?
"""

_ADD_BEAT = """
    INSERT INTO heartbeat_beat (id, watch_id, delivery_id, received_at, attempts)
    VALUES (?, ?, ?, ?, 0)
"""

_FIND = """
    SELECT id, (
        SELECT COUNT(*) FROM heartbeat_beat WHERE watch_id = watch.id AND verdict IS NULL
    ) AS waiting FROM watch
    WHERE account_id = ? AND target = ? AND kind = 'heartbeat' AND is_paused = 0
"""


def _note_beats(transaction: Transaction, messages: Sequence[MessageSummary]) -> None:
    """Record new messages for the heartbeats whose tags they have. Their inboxes are locked."""
    for message in messages:
        name = name_in_tag(message.tag)
        found = transaction.row(_FIND, (message.account_id, name))
        if found is None or found.waiting >= MOST_WAITING:
            continue
        at = message.received_at
        transaction.execute(_ADD_BEAT, (message.id, found.id, message.delivery_id, at))
        transaction.execute(_MAKE_DUE, (at, at, found.id))


# One row per tag; rows of an inbox have its last position. Runs before the tags are counted.
_ADVANCE_INBOX = """
    WITH given (account_id, tag_key, message_count, byte_count, last_position) AS ({rows})
    UPDATE inbox SET last_position = change.last_position,
        message_count = inbox.message_count + change.message_count,
        byte_count = inbox.byte_count + change.byte_count,
        tag_count = inbox.tag_count + change.tag_count
    FROM (
        SELECT given.account_id, MAX(given.last_position) AS last_position,
            SUM(given.message_count) AS message_count, SUM(given.byte_count) AS byte_count,
            SUM(CASE WHEN EXISTS (
                SELECT 1 FROM inbox_tag
                WHERE inbox_tag.account_id = given.account_id AND inbox_tag.tag_key = given.tag_key
            ) THEN 0 ELSE 1 END) AS tag_count
        FROM given GROUP BY given.account_id
    ) AS change WHERE inbox.account_id = change.account_id
"""

_COUNT_TAG = """
    INSERT INTO inbox_tag (account_id, tag_key, tag, message_count, latest_at) {rows}
    ON CONFLICT (account_id, tag_key) DO UPDATE SET
        tag = excluded.tag,
        message_count = inbox_tag.message_count + excluded.message_count,
        latest_at = excluded.latest_at
"""

_Outcome = tuple[Position, ...] | RecipientUnknown | AddressUsed | InboxFull


class _TagCount(Struct):
    tag: str = ""
    message_count: int = 0
    byte_count: int = 0
    latest_at: int = 0


class _Counters:
    """The counters of an inbox while the mails of a group are added."""

    def __init__(self, inbox: InboxState) -> None:
        self.last_position = inbox.last_position
        self._message_count = inbox.message_count
        self._byte_count = inbox.byte_count
        self._quota = inbox.quota

    def has_room_for(self, messages: int, size: int) -> bool:
        return (
            self._message_count + messages <= self._quota.max_messages
            and self._byte_count + messages * size <= self._quota.max_bytes
        )

    def add(self, size: int) -> Position:
        self.last_position = Position(self.last_position + 1)
        self._message_count += 1
        self._byte_count += size
        return self.last_position


class DeliverMails(MailWork):
    """Writes a group of deliveries; the outcome of each is its positions or a failure.

    A delivery is stored for all its recipients or for none, so that a retry does not create copies.
    Only messages have positions; a test address has none.
    """

    locks_all_first = True

    def __init__(self, default_quota: Quota) -> None:
        self._default_quota = default_quota

    def __reduce__(self) -> tuple[object, tuple[int, int]]:
        return _deliver_mails, (self._default_quota.max_messages, self._default_quota.max_bytes)

    def accounts(self, transaction: Transaction, deliveries: Sequence[Delivery]) -> set[AccountId]:
        """Return the accounts of the recipients."""
        return {
            recipient.account_id
            for delivery in deliveries
            for recipient in delivery.envelope.recipients
        }

    def __call__(self, transaction: Transaction, deliveries: Sequence[Delivery]) -> list[_Outcome]:
        """Write the deliveries for which there is room, in the order of their arrival."""
        accounts = self.accounts(transaction, deliveries)
        others = [
            recipient
            for delivery in deliveries
            for recipient in delivery.envelope.recipients
            if not recipient.is_inbox
        ]
        test_ids = {recipient.test_id for recipient in others if recipient.test_id is not None}
        inboxes = lock_inboxes(transaction, accounts)
        counters = {
            row.account_id: _Counters(inbox_of(row, self._default_quota)) for row in inboxes
        }
        with_routes = [row.account_id for row in inboxes if row.has_routes]
        group = _Group(
            counters,
            AddressedTests(transaction, test_ids) if test_ids else None,
            ReportMails(transaction, others),
            RoutedMails(transaction, with_routes) if with_routes else None,
        )
        outcomes = [group.add(delivery) for delivery in deliveries]
        group.write(transaction)
        return outcomes

    def octets(self, delivery: Delivery) -> int:
        """Return the size of a mail."""
        return len(delivery.raw_message)

    def find_outcomes(
        self, transaction: Transaction, deliveries: Sequence[Delivery]
    ) -> list[tuple[Position, ...] | None]:
        """Return the positions of each stored mail, and `None` for the others."""
        ids = [delivery.id for delivery in deliveries]
        marks = ", ".join("?" * len(ids))
        stored = {
            row.id
            for row in transaction.rows(f"SELECT id FROM delivery WHERE id IN ({marks})", ids)
        }
        positions: dict[str, Position] = dict(
            transaction.rows(
                f"SELECT id, position FROM message WHERE delivery_id IN ({marks})", ids
            )
        )
        return [
            tuple(
                positions[message_id]
                for message_id in delivery.message_ids
                if message_id in positions
            )
            if delivery.id in stored
            else None
            for delivery in deliveries
        ]


@cache
def _deliver_mails(max_messages: int, max_bytes: int) -> DeliverMails:
    """Return the work object of this process; the result of unpickling one."""
    return DeliverMails(Quota(max_messages, max_bytes))


class _Group:
    def __init__(
        self,
        counters: dict[AccountId, _Counters],
        tests: AddressedTests | None,
        reports: ReportMails,
        routed: RoutedMails | None,
    ) -> None:
        self._counters = counters
        self._tests = tests
        self._reports = reports
        self._routed = routed
        self._deliveries: list[dict[str, Value]] = []
        self._messages: list[tuple[Value, ...]] = []
        self._beats: list[MessageSummary] = []
        self._tags: dict[tuple[AccountId, str], _TagCount] = {}

    def add(self, delivery: Delivery) -> _Outcome:
        planned = self._plan(delivery)
        if not isinstance(planned, DeliveryPlan):
            return planned
        size = len(delivery.raw_message)
        refusal = self._refuse(planned.messages, size) or self._reports.refuse(delivery)
        if refusal is not None:
            return refusal
        has_report = self._reports.take(delivery)
        header = summarize_header(delivery.raw_message)
        if planned.messages or planned.tests or has_report:
            self._deliveries.append(delivery_row(delivery, header))
        if self._routed is not None:
            self._routed.take(delivery, header, planned.messages)
        if self._tests is not None:
            self._tests.take(delivery, planned.tests)
        add = partial(self._add_message, delivery, header, count_added_octets(delivery.raw_message))
        return tuple(add(number) for number, _ in planned.messages)

    def _plan(self, delivery: Delivery) -> DeliveryPlan | RecipientUnknown | AddressUsed:
        if self._tests is None:
            recipients = enumerate(delivery.envelope.recipients)
            return DeliveryPlan(
                tuple(recipient for recipient in recipients if recipient[1].is_inbox), ()
            )
        return self._tests.plan(delivery)

    def _refuse(
        self, recipients: Sequence[Numbered], size: int
    ) -> RecipientUnknown | InboxFull | None:
        messages: dict[AccountId, int] = {}
        for _, recipient in recipients:
            messages[recipient.account_id] = messages.get(recipient.account_id, 0) + 1
        for account_id, count in messages.items():
            counters = self._counters.get(account_id)
            if counters is None:
                return RecipientUnknown("the inbox has been deleted")
            if not counters.has_room_for(count, size):
                return InboxFull("the inbox is full; delete mail, or wait until old mail expires")
        return None

    def _add_message(
        self, delivery: Delivery, header: HeaderSummary, added_octets: int, number: int
    ) -> Position:
        account_id = delivery.envelope.recipients[number].account_id
        position = self._counters[account_id].add(len(delivery.raw_message))
        message = delivery.message(number, position, header, added_octets)
        self._messages.append(message_row(message))
        if name_in_tag(message.tag) is not None:
            self._beats.append(message)
        tag = self._tags.setdefault((account_id, fold_tag(message.tag)), _TagCount())
        tag.tag, tag.latest_at = message.tag, message.received_at
        tag.message_count += 1
        tag.byte_count += message.size
        return position

    def write(self, transaction: Transaction) -> None:
        insert(transaction, "delivery", self._deliveries)
        # The order of positions in an inbox is the order of insertion; the counters follow.
        transaction.execute_over(ADD_MESSAGES, self._messages)
        changes, tags = [], []
        for (account, key), tag in self._tags.items():
            position = self._counters[account].last_position
            changes.append((account, key, tag.message_count, tag.byte_count, position))
            tags.append((account, key, tag.tag, tag.message_count, tag.latest_at))
        transaction.execute_over(_ADVANCE_INBOX, changes)
        transaction.execute_over(_COUNT_TAG, tags)
        if self._tests is not None:
            self._tests.write()
        self._reports.write()
        if self._routed is not None:
            self._routed.write()
        _note_beats(transaction, self._beats)


def delivery_row(delivery: Delivery, header: HeaderSummary) -> dict[str, Value]:
    """Return the row of a mail."""
    session = delivery.session
    return {
        "id": delivery.id,
        "received_at": delivery.received_at,
        "envelope_sender": delivery.envelope.envelope_sender,
        "client_ip": session.client_ip,
        "helo_name": session.helo_name,
        "is_extended": int(session.is_extended),
        "tls_version": session.tls.version if session.tls else None,
        "tls_cipher": session.tls.cipher if session.tls else None,
        "user_name": session.user_name,
        "author_address": header.author_address,
        "author_name": header.author_name,
        "other_authors": header.other_authors,
        "subject": header.subject,
        "author_key": header.author_key,
        "subject_key": header.subject_key,
        "size": len(delivery.raw_message),
        "raw_message": delivery.raw_message,
        "request": delivery.envelope.request,
    }
