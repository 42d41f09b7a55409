"""The transaction that everything waits for: mails in, positions handed out, quotas kept."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

from msgspec import Struct

from mailcheck.checks.content.header import summarize_header
from mailcheck.core.accounts import InboxState, Quota
from mailcheck.core.addresses import fold_tag
from mailcheck.core.cursors import Position
from mailcheck.core.deliverability_tests import State, Trigger, next_state
from mailcheck.core.errors import AddressUsed, InboxFull, RecipientUnknown
from mailcheck.core.identifiers import AccountId, DeliverabilityTestId, DeliveryId
from mailcheck.core.instants import Instant
from mailcheck.core.messages import Delivery, Recipient
from mailcheck.core.receiver_reports import MAX_WAITING, MAX_WAITING_BYTES, ReportKind, ReportState
from mailcheck.store.deliverability_store import move
from mailcheck.store.engine import Repeatable, Transaction, Value
from mailcheck.store.inbox_rows import LockedInboxes

Numbered = tuple[int, Recipient]


class Overtaken(Exception):
    """Another daemon has moved a test since its row was read."""


class Judged(Struct, frozen=True):
    """What a mail brings: messages for these recipients, and its mail to these tests."""

    messages: Sequence[Numbered]
    tests: Sequence[DeliverabilityTestId]


@dataclass(slots=True)
class _Addressed:
    """A test as the mails of the group move it; ``first`` is its mail when it came with them."""

    state: State
    created_at: Instant
    expires_at: Instant
    forget_at: Instant
    delivery_id: DeliveryId | None
    first: Delivery | None = None


class AddressedTests:
    """The tests that a group of mails is for."""

    def __init__(self, transaction: Transaction, test_ids: Iterable[DeliverabilityTestId]) -> None:
        self._transaction = transaction
        wanted = list(test_ids)
        rows = transaction.rows(
            "SELECT id, state, created_at, expires_at, forget_at, delivery_id "
            f"FROM deliverability_test WHERE id IN ({', '.join('?' * len(wanted))})",
            wanted,
        )
        self._taken: list[tuple[DeliverabilityTestId, Delivery]] = []
        self._tests = {row[0]: _Addressed(State(row[1]), *row[2:]) for row in rows}

    def judge(self, delivery: Delivery) -> Judged | RecipientUnknown | AddressUsed:
        """Say what a mail brings to whom, or why it is refused for all.

        What an identical mail has brought before is left out: a sender that
        did not hear our 250 sends it again.
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
                return AddressUsed("this test has got its mail already")
        messages = tuple(
            (number, recipient)
            for number, recipient in recipients
            if recipient.is_inbox and recipient.address.casefold() not in repeated
        )
        return Judged(messages, fresh)

    def take(self, delivery: Delivery, test_ids: Sequence[DeliverabilityTestId]) -> None:
        """Let a mail be that of these tests, for the mails that follow in the group."""
        for test_id in test_ids:
            test = self._tests[test_id]
            test.state = next_state(test.state, Trigger.MAIL_STORED)
            test.first, test.delivery_id = delivery, delivery.id
            self._taken.append((test_id, delivery))

    def write(self) -> None:
        """Move the tests that have got a mail; the deliveries themselves are stored already.

        :raises Overtaken: nothing of the group may be kept.
        """
        for test_id, delivery in self._taken:
            test = self._tests[test_id]
            changes: dict[str, Value] = {
                "received_at": delivery.received_at,
                "delivery_id": delivery.id,
                "transcript": json.dumps(delivery.envelope.transcript),
                # The time for which results are kept begins with the mail.
                "forget_at": test.forget_at + delivery.received_at - test.created_at,
            }
            if not move(self._transaction, test_id, State.PENDING, Trigger.MAIL_STORED, changes):
                raise Overtaken(test_id)

    def _is_identical(self, test: _Addressed, delivery: Delivery) -> bool:
        sender = delivery.envelope.envelope_sender
        if test.first is not None:
            first = test.first
            return first.envelope.envelope_sender == sender and (
                first.raw_message == delivery.raw_message
            )
        # The size is compared first: most others need not be read.
        row = self._transaction.row(
            "SELECT raw_message FROM delivery WHERE id = ? AND envelope_sender = ? AND size = ?",
            (test.delivery_id, sender, len(delivery.raw_message)),
        )
        return row is not None and bytes(row[0]) == delivery.raw_message

    def _reached(self, test: _Addressed) -> set[str]:
        """Give the inbox addresses that the mail of a test has reached with it."""
        if test.first is not None:
            recipients = test.first.envelope.recipients
            return {one.address.casefold() for one in recipients if one.is_inbox}
        rows = self._transaction.rows(
            "SELECT recipient_key FROM message WHERE delivery_id = ?", (test.delivery_id,)
        )
        return {row[0] for row in rows}


def _takes_mail(test: _Addressed, now: Instant) -> bool:
    if test.state is State.PENDING:
        return now < test.expires_at
    return test.delivery_id is not None


# Rows of receiver_report as they are added: what was not read yet is empty.
INTO_REPORT = """
    receiver_report (
        id, account_id, kind, state, received_at, reason, domain, reporter, organisation,
        report_key, begins_at, ends_at, policy, messages, failing, problems,
        attempts, delivery_id, body
    )
"""

_WAITING = """
    SELECT COUNT(*), CAST(COALESCE(SUM(COALESCE(delivery.size, LENGTH(receiver_report.body))), 0)
    AS BIGINT) FROM receiver_report LEFT JOIN delivery ON delivery.id = delivery_id
    WHERE account_id = ? AND state = 'waiting'
"""

FULL = "too many reports wait to be read; try again later"


def is_full(transaction: Transaction, account_id: AccountId) -> bool:
    """Tell whether as many reports of an account wait as may; its inbox is locked."""
    ((count, size),) = transaction.rows(_WAITING, (account_id,))
    return bool(count >= MAX_WAITING or size >= MAX_WAITING_BYTES)


class ReportMails:
    """The reports that a group of mails brings."""

    def __init__(self, transaction: Transaction, recipients: Iterable[Recipient]) -> None:
        self._transaction = transaction
        accounts = {one.account_id for one in recipients if one.report_kind is not None}
        self._full = {one for one in accounts if is_full(transaction, one)}
        self._rows: list[Sequence[Value]] = []

    def refuse(self, delivery: Delivery) -> InboxFull | None:
        """Say why a mail is not taken."""
        if self._full and any(account in self._full for account, _ in _reports_of(delivery)):
            return InboxFull(FULL)
        return None

    def take(self, delivery: Delivery) -> bool:
        """Take the reports that a mail brings; tells whether it brings any."""
        found = _reports_of(delivery)
        for number, (account_id, kind) in enumerate(found):
            # As unique as a message's id, which no message has.
            report_id = delivery.message_ids[number]
            facts: tuple[Value, ...] = (
                report_id,
                account_id,
                kind.value,
                ReportState.WAITING.value,
                delivery.received_at,
            )
            nothing_read: tuple[Value, ...] = ("", "", "", "", "", None, None, "", 0, 0, "[]")
            self._rows.append((*facts, *nothing_read, 0, delivery.id, None))
        return bool(found)

    def write(self) -> None:
        """Add them; the deliveries themselves are stored already."""
        if self._rows:
            self._transaction.insert(INTO_REPORT, self._rows)


def _reports_of(delivery: Delivery) -> list[tuple[AccountId, ReportKind]]:
    """Give whose reports a mail brings, each account's once."""
    recipients = delivery.envelope.recipients
    return list(
        dict.fromkeys(
            (one.account_id, one.report_kind) for one in recipients if one.report_kind is not None
        )
    )


_INTO_DELIVERY = """
    delivery (
        id, received_at, envelope_sender, client_ip, helo_name, is_extended,
        tls_version, tls_cipher, author_address, author_name, subject,
        author_key, subject_key, size, raw_message
    )
"""

_ADD_MESSAGES = """
    INSERT INTO message (
        id, account_id, position, delivery_id, recipient, recipient_key,
        tag, tag_key, received_at, expires_at, size, share_token
    ) {rows}
"""

# A row for each tag; those of one inbox have its last position. Runs before the tags are counted.
_ADVANCE_INBOX = """
    UPDATE inbox SET last_position = change.position,
        message_count = message_count + change.messages, byte_count = byte_count + change.octets,
        tag_count = tag_count + change.tags
    FROM (
        SELECT column1 AS owner, MAX(column6) AS position,
            SUM(column4) AS messages, SUM(column7) AS octets,
            SUM(CASE WHEN EXISTS (
                SELECT 1 FROM inbox_tag WHERE account_id = column1 AND tag_key = column2
            ) THEN 0 ELSE 1 END) AS tags
        FROM ({rows}) AS given GROUP BY column1
    ) AS change WHERE account_id = change.owner
"""

_COUNT_TAG = """
    INSERT INTO inbox_tag (account_id, tag_key, tag, message_count, latest_at)
    SELECT column1, column2, column3, column4, column5 FROM ({rows}) AS given WHERE TRUE
    ON CONFLICT (account_id, tag_key) DO UPDATE SET
        tag = excluded.tag,
        message_count = inbox_tag.message_count + excluded.message_count,
        latest_at = excluded.latest_at
"""

_Outcome = tuple[Position, ...] | RecipientUnknown | AddressUsed | InboxFull


@dataclass(slots=True)
class _TagCount:
    tag: str = ""
    count: int = 0
    latest_at: int = 0
    octets: int = 0


@dataclass(slots=True)
class _Counters:
    """An inbox's counters as the mails of one group advance them."""

    quota: Quota
    last_position: int
    message_count: int
    byte_count: int
    more_messages: int = 0
    more_bytes: int = 0

    @classmethod
    def of(cls, inbox: InboxState) -> "_Counters":
        return cls(inbox.quota, inbox.last_position, inbox.message_count, inbox.byte_count)

    @property
    def totals(self) -> tuple[int, int]:
        """Messages and bytes, with those of the group."""
        return self.message_count + self.more_messages, self.byte_count + self.more_bytes

    def has_room_for(self, messages: int, size: int) -> bool:
        stored, octets = self.totals
        return (
            stored + messages <= self.quota.max_messages
            and octets + messages * size <= self.quota.max_bytes
        )

    def add(self, size: int) -> Position:
        self.last_position += 1
        self.more_messages += 1
        self.more_bytes += size
        return Position(self.last_position)


class DeliverMails:
    """Writes a group of deliveries; the outcome of each is its positions or why not.

    A delivery is stored for all its recipients or for none, so that a sender
    who tries again does not make copies. Positions are those of its messages:
    the address of a deliverability test gets none.
    """

    locks_all_first: ClassVar[bool] = True

    def __init__(self, default_quota: Quota) -> None:
        self._default_quota = default_quota

    def __reduce__(self) -> tuple[object, tuple[int, int]]:
        return _deliver_mails, (self._default_quota.max_messages, self._default_quota.max_bytes)

    def accounts(self, transaction: Transaction, deliveries: Sequence[Delivery]) -> set[AccountId]:
        """Say whose inboxes the mails are for."""
        return {
            recipient.account_id
            for delivery in deliveries
            for recipient in delivery.envelope.recipients
        }

    def __call__(self, transaction: Transaction, deliveries: Sequence[Delivery]) -> list[_Outcome]:
        """Write all that there is room for, in the order in which they came."""
        accounts = self.accounts(transaction, deliveries)
        others = [
            recipient
            for delivery in deliveries
            for recipient in delivery.envelope.recipients
            if not recipient.is_inbox
        ]
        test_ids = {one.test_id for one in others if one.test_id is not None}
        inboxes = LockedInboxes(transaction, accounts, self._default_quota)
        counters = {account: _Counters.of(inbox) for account, inbox in inboxes.states.items()}
        group = _Group(
            counters,
            AddressedTests(transaction, test_ids) if test_ids else None,
            ReportMails(transaction, others),
        )
        outcomes = [group.add(delivery) for delivery in deliveries]
        if inboxes.are_assumed and any(isinstance(one, InboxFull) for one in outcomes):
            raise Repeatable("an inbox seems to be full: it is read whether it is")
        group.write(transaction)
        for account, one in counters.items():
            if one.more_messages:
                messages, octets = one.totals
                inboxes.note(account, one.last_position, messages, octets)
        return outcomes

    def octets(self, delivery: Delivery) -> int:
        """Say how much a mail is to write."""
        return len(delivery.raw_message)

    def find_outcomes(
        self, transaction: Transaction, deliveries: Sequence[Delivery]
    ) -> list[tuple[Position, ...] | None]:
        """Give the positions of each mail that is stored; nothing for the others."""
        ids = [delivery.id for delivery in deliveries]
        marks = ", ".join("?" * len(ids))
        stored = {
            one
            for (one,) in transaction.rows(f"SELECT id FROM delivery WHERE id IN ({marks})", ids)
        }
        positions: dict[str, Position] = dict(
            transaction.rows(
                f"SELECT id, position FROM message WHERE delivery_id IN ({marks})", ids
            )
        )
        return [
            tuple(positions[one] for one in delivery.message_ids if one in positions)
            if delivery.id in stored
            else None
            for delivery in deliveries
        ]


@cache
def _deliver_mails(max_messages: int, max_bytes: int) -> DeliverMails:
    """Give the work of this process: what a pickled one becomes again."""
    return DeliverMails(Quota(max_messages, max_bytes))


class _Group:
    def __init__(
        self,
        counters: dict[AccountId, _Counters],
        tests: AddressedTests | None,
        reports: ReportMails,
    ) -> None:
        self._counters = counters
        self._tests = tests
        self._reports = reports
        self._deliveries: list[tuple[str | int | bytes | None, ...]] = []
        self._messages: list[tuple[str | int, ...]] = []
        self._tags: dict[tuple[AccountId, str], _TagCount] = {}

    def add(self, delivery: Delivery) -> _Outcome:
        judged = self._judge(delivery)
        if not isinstance(judged, Judged):
            return judged
        size = len(delivery.raw_message)
        refusal = self._refuse(judged.messages, size) or self._reports.refuse(delivery)
        if refusal is not None:
            return refusal
        has_report = self._reports.take(delivery)
        if judged.messages or judged.tests or has_report:
            self._deliveries.append(_delivery_row(delivery, size))
        if self._tests is not None:
            self._tests.take(delivery, judged.tests)
        return tuple(self._add_message(delivery, numbered, size) for numbered in judged.messages)

    def _judge(self, delivery: Delivery) -> Judged | RecipientUnknown | AddressUsed:
        if self._tests is None:
            recipients = enumerate(delivery.envelope.recipients)
            return Judged(tuple(one for one in recipients if one[1].is_inbox), ())
        return self._tests.judge(delivery)

    def _refuse(
        self, recipients: Sequence[Numbered], size: int
    ) -> RecipientUnknown | InboxFull | None:
        messages: dict[AccountId, int] = {}
        for _, recipient in recipients:
            messages[recipient.account_id] = messages.get(recipient.account_id, 0) + 1
        for account_id, count in messages.items():
            counters = self._counters.get(account_id)
            if counters is None:
                return RecipientUnknown("the inbox has been removed")
            if not counters.has_room_for(count, size):
                return InboxFull("the inbox is full; mail older than its retention makes room")
        return None

    def _add_message(self, delivery: Delivery, numbered: Numbered, size: int) -> Position:
        number, recipient = numbered
        position = self._counters[recipient.account_id].add(size)
        tag_key = fold_tag(recipient.tag)
        self._messages.append(
            (
                delivery.message_ids[number],
                recipient.account_id,
                position,
                delivery.id,
                recipient.address,
                recipient.address.casefold(),
                recipient.tag,
                tag_key,
                delivery.received_at,
                delivery.expires_at,
                size,
                delivery.share_tokens[number],
            )
        )
        tag = self._tags.setdefault((recipient.account_id, tag_key), _TagCount())
        tag.tag, tag.latest_at = recipient.tag, delivery.received_at
        tag.count += 1
        tag.octets += size
        return position

    def write(self, transaction: Transaction) -> None:
        transaction.insert(_INTO_DELIVERY, self._deliveries)
        # Position order of an inbox is insertion order; the counters follow.
        transaction.execute_over(_ADD_MESSAGES, self._messages)
        tags = [
            (
                account,
                key,
                tag.tag,
                tag.count,
                tag.latest_at,
                self._counters[account].last_position,
                tag.octets,
            )
            for (account, key), tag in self._tags.items()
        ]
        transaction.execute_over(_ADVANCE_INBOX, tags)
        transaction.execute_over(_COUNT_TAG, tags)
        if self._tests is not None:
            self._tests.write()
        self._reports.write()


def _delivery_row(delivery: Delivery, size: int) -> tuple[str | int | bytes | None, ...]:
    header = summarize_header(delivery.raw_message)
    session = delivery.session
    return (
        delivery.id,
        delivery.received_at,
        delivery.envelope.envelope_sender,
        session.client_ip,
        session.helo_name,
        int(session.is_extended),
        session.tls.version if session.tls else None,
        session.tls.cipher if session.tls else None,
        header.author_address,
        header.author_name,
        header.subject,
        header.author_key,
        header.subject_key,
        size,
        delivery.raw_message,
    )
