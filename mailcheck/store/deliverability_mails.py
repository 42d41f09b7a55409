"""Mails to the addresses of tests and of reports, as a group of deliveries brings them."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from msgspec import Struct

from mailcheck.core.deliverability_tests import State, Trigger, next_state
from mailcheck.core.errors import AddressUsed, InboxFull, RecipientUnknown
from mailcheck.core.identifiers import AccountId, DeliverabilityTestId, DeliveryId
from mailcheck.core.instants import Instant
from mailcheck.core.messages import Delivery, Recipient
from mailcheck.core.receiver_reports import (
    MAX_WAITING,
    MAX_WAITING_BYTES,
    ReportKind,
    ReportState,
)
from mailcheck.store.deliverability_rows import move
from mailcheck.store.engine import Transaction, Value

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
