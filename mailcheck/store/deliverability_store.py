"""The store of deliverability tests. One method is one transaction."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mailcheck.core.addresses import UNTAGGED
from mailcheck.core.content import HeaderSummary
from mailcheck.core.cursors import START
from mailcheck.core.deliverability_tests import (
    DeliverabilityResult,
    DeliverabilityTest,
    ListedTest,
    ReceivedMail,
    State,
    StoredReport,
    local_part_of,
)
from mailcheck.core.identifiers import AccountId, DeliverabilityTestId, DeliveryId, MessageId
from mailcheck.core.instants import Instant
from mailcheck.core.messages import MessageSummary
from mailcheck.operations.deliverability.ports import Claimed, ListedTestPage
from mailcheck.operations.ports import Lease, MessageRow
from mailcheck.store import deliverability_analysis as analysis
from mailcheck.store import deliverability_life as life
from mailcheck.store.deliverability_rows import (
    DELIVERABILITY_COLUMNS,
    DELIVERABILITY_WIDTH,
    deliverability_test_of,
)
from mailcheck.store.engine import Engine, Row, Transaction, Value, escape_like
from mailcheck.store.inbox_rows import SESSION_COLUMNS, session_of

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred


def read_result(
    transaction: Transaction, condition: str, values: Sequence[Value], now: Instant
) -> DeliverabilityResult | None:
    """Read a test with what is known of it."""
    row = transaction.row(
        f"SELECT {DELIVERABILITY_COLUMNS}, tenths, document, failure "
        f"FROM deliverability_test WHERE {condition} AND forget_at > ?",
        [*values, now],
    )
    if row is None:
        return None
    test = deliverability_test_of(row, now)
    tenths, document, failure = row[DELIVERABILITY_WIDTH:]
    report = StoredReport(tenths, document) if test.state is State.COMPLETED else None
    return DeliverabilityResult(test, report, failure if test.state is State.ERROR else "")


CONTENT_ONLY = '%"contentOnly":true%'
"""In a report that is kept: what a mail says has its quotation marks escaped there."""

_LISTED = f"""
    SELECT {DELIVERABILITY_COLUMNS}, tenths,
    CASE WHEN document LIKE '{CONTENT_ONLY}' THEN 1 ELSE 0 END,
    delivery.author_address, delivery.author_name, delivery.subject, delivery.envelope_sender
    FROM deliverability_test LEFT JOIN delivery ON delivery.id = delivery_id
    WHERE account_id = ? AND forget_at > ?
"""

_NEWEST_FIRST = "ORDER BY created_at DESC, deliverability_test.id DESC LIMIT ? OFFSET ?"


def read_tests(
    transaction: Transaction, account_id: AccountId, now: Instant, limit: int, offset: int
) -> ListedTestPage:
    """Read a page of an account's tests, newest first."""
    rows = transaction.rows(f"{_LISTED} {_NEWEST_FIRST}", (account_id, now, limit, offset))
    ((total,),) = transaction.rows(
        "SELECT COUNT(*) FROM deliverability_test WHERE account_id = ? AND forget_at > ?",
        (account_id, now),
    )
    return ListedTestPage(tuple(_listed(row, now) for row in rows), total)


def read_tests_of_domain(
    transaction: Transaction, account_id: AccountId, domain: str, now: Instant, limit: int
) -> Sequence[ListedTest]:
    """Read the newest completed tests of mails whose author is of a domain."""
    rows = transaction.rows(
        f"{_LISTED} AND state = 'completed' AND delivery.author_key LIKE ? ESCAPE '!' "
        f"{_NEWEST_FIRST}",
        (account_id, now, f"%@{escape_like(domain)}>", limit, 0),
    )
    return tuple(_listed(row, now) for row in rows)


def _listed(row: Row, now: Instant) -> ListedTest:
    tenths, is_content_only, *header, envelope_sender = row[DELIVERABILITY_WIDTH:]
    return ListedTest(
        deliverability_test_of(row, now),
        tenths,
        None if header[0] is None else HeaderSummary(*header),
        envelope_sender or "",
        bool(is_content_only),
    )


def read_message(transaction: Transaction, test_id: DeliverabilityTestId) -> MessageRow | None:
    """Read the mail of a test as a message; nothing when there is none."""
    row = transaction.row(
        "SELECT deliverability_test.account_id, delivery.id, delivery.author_address, "
        "delivery.author_name, delivery.subject, delivery.size, "
        "deliverability_test.received_at, deliverability_test.forget_at, "
        f"deliverability_test.share_token, delivery.envelope_sender, {SESSION_COLUMNS} "
        "FROM deliverability_test JOIN delivery ON delivery.id = delivery_id "
        "WHERE deliverability_test.id = ?",
        (test_id,),
    )
    if row is None:
        return None
    account_id, delivery_id, *header, size, received_at, forget_at, token, sender = row[:10]
    summary = MessageSummary(
        id=MessageId(test_id),
        account_id=AccountId(account_id),
        delivery_id=DeliveryId(delivery_id),
        position=START,
        recipient=local_part_of(test_id),
        tag=UNTAGGED,
        header=HeaderSummary(*header),
        size=size,
        received_at=Instant(received_at),
        expires_at=Instant(forget_at),
        share_token=token,
    )
    return MessageRow(summary, sender, session_of(row[10:]))


def read_mail(transaction: Transaction, test_id: DeliverabilityTestId) -> ReceivedMail | None:
    """Read the mail of a test; nothing when there is none."""
    row = transaction.row(
        "SELECT delivery.envelope_sender, deliverability_test.received_at, "
        "delivery.raw_message, deliverability_test.transcript, delivery.id, "
        f"deliverability_test.account_id, {SESSION_COLUMNS} "
        "FROM deliverability_test JOIN delivery ON delivery.id = delivery_id "
        "WHERE deliverability_test.id = ?",
        (test_id,),
    )
    if row is None:
        return None
    envelope_sender, received_at, raw_message, transcript, delivery_id, account_id, *session = row
    return ReceivedMail(
        session=session_of(tuple(session)),
        envelope_sender=envelope_sender,
        received_at=Instant(received_at),
        raw_message=bytes(raw_message),
        transcript=tuple(json.loads(transcript)),
        delivery_id=DeliveryId(delivery_id),
        account_id=AccountId(account_id),
    )


class SqlDeliverabilityStore:
    """Fills the port `DeliverabilityStore` on any engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add(self, test: DeliverabilityTest, forget_at: Instant) -> Deferred[None]:
        """Add a pending test."""
        return self._engine.write(life.add, (test, forget_at))

    def add_of_message(
        self, test: DeliverabilityTest, message_id: MessageId, forget_at: Instant
    ) -> Deferred[bool]:
        """Add a test of a stored message, in processing; false when there is no such one."""
        return self._engine.write(life.add_of_message, (test, message_id, forget_at))

    def find(
        self, account_id: AccountId, test_id: DeliverabilityTestId, now: Instant
    ) -> Deferred[DeliverabilityResult | None]:
        """Find a test of the account."""
        condition = "id = ? AND account_id = ?"
        return self._engine.read(lambda t: read_result(t, condition, (test_id, account_id), now))

    def find_any(
        self, test_id: DeliverabilityTestId, now: Instant
    ) -> Deferred[DeliverabilityResult | None]:
        """Find a test whosever it is."""
        return self._engine.read(lambda t: read_result(t, "id = ?", (test_id,), now))

    def page(
        self, account_id: AccountId, now: Instant, limit: int, offset: int
    ) -> Deferred[ListedTestPage]:
        """List the account's tests, newest first."""
        return self._engine.read(lambda t: read_tests(t, account_id, now, limit, offset))

    def read_mail(self, test_id: DeliverabilityTestId) -> Deferred[ReceivedMail | None]:
        """Read the mail of a test; nothing when there is none."""
        return self._engine.read(lambda t: read_mail(t, test_id))

    def find_message(self, test_id: DeliverabilityTestId) -> Deferred[MessageRow | None]:
        """Give the mail of a test as a message of no inbox; nothing when there is none."""
        return self._engine.read(lambda t: read_message(t, test_id))

    def of_domain(
        self, account_id: AccountId, domain: str, now: Instant, limit: int
    ) -> Deferred[Sequence[ListedTest]]:
        """List the account's newest completed tests of mails by an author of a domain."""
        return self._engine.read(lambda t: read_tests_of_domain(t, account_id, domain, now, limit))

    def delete(
        self, account_id: AccountId, test_id: DeliverabilityTestId, now: Instant
    ) -> Deferred[bool]:
        """Delete a test for good, with its mail where nothing else needs that."""
        return self._engine.write(life.delete, (test_id, account_id, now))

    def claim(self, lease: Lease, now: Instant, limit: int) -> Deferred[Claimed]:
        """Look at ``limit`` tests at most that wait to be analysed."""
        return self._engine.write(analysis.claim, (lease, now, limit))

    def renew(
        self, lease: Lease, test_ids: Sequence[DeliverabilityTestId]
    ) -> Deferred[frozenset[DeliverabilityTestId]]:
        """Hold tests for longer; gives those that are still the holder's."""
        return self._engine.write(analysis.renew, (lease, tuple(test_ids)))

    def release(self, holder: str, *, is_attempt: bool) -> Deferred[None]:
        """Let go of all that a holder has."""
        return self._engine.write(analysis.release, (holder, is_attempt))

    def complete(
        self, test_id: DeliverabilityTestId, holder: str, report: StoredReport
    ) -> Deferred[bool]:
        """Keep the report; false when the test is not the holder's any more."""
        return self._engine.write(analysis.complete, (test_id, holder, report))

    def fail_attempt(
        self, test_id: DeliverabilityTestId, holder: str, failure: str, retry_at: Instant | None
    ) -> Deferred[State | None]:
        """Note that an analysis has failed."""
        return self._engine.write(analysis.fail_attempt, (test_id, holder, failure, retry_at))

    def recheck(
        self, account_id: AccountId, test_id: DeliverabilityTestId, now: Instant
    ) -> Deferred[State | None]:
        """Put a test that is completed or in error back into processing."""
        return self._engine.write(life.recheck, (account_id, test_id, now))

    def replace_share_token(
        self, account_id: AccountId, test_id: DeliverabilityTestId, token: str, now: Instant
    ) -> Deferred[bool]:
        """Give a test a new share token; false when there is no such test."""
        return self._engine.write(life.replace_share_token, (token, test_id, account_id, now))

    def expire(self, now: Instant, limit: int) -> Deferred[int]:
        """Move at most ``limit`` tests whose address has expired without a mail."""
        return self._engine.write(life.expire, (now, limit))

    def forget(self, now: Instant, limit: int) -> Deferred[int]:
        """Delete at most ``limit`` tests for good."""
        return self._engine.write(life.forget, (now, limit))
