"""The store of deliverability tests. One method is one transaction."""

import json
from collections.abc import Sequence

from twisted.internet.defer import Deferred

from mailcheck.core.content import HeaderSummary
from mailcheck.core.deliverability_tests import (
    DeliverabilityResult,
    DeliverabilityTest,
    ListedTest,
    ReceivedMail,
    State,
    StoredReport,
)
from mailcheck.core.identifiers import AccountId, DeliverabilityTestId, DeliveryId, MessageId
from mailcheck.core.instants import Instant
from mailcheck.operations.deliverability.ports import Claimed, Lease, ListedTestPage
from mailcheck.storage import deliverability_analysis as analysis
from mailcheck.storage import deliverability_life as life
from mailcheck.storage.deliverability_rows import (
    DELIVERABILITY_COLUMNS,
    DELIVERABILITY_WIDTH,
    deliverability_test_of,
)
from mailcheck.storage.engine import Engine, Row, Transaction, Value
from mailcheck.storage.inbox_rows import SESSION_COLUMNS, session_of


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


def read_tests(
    transaction: Transaction, account_id: AccountId, now: Instant, limit: int, offset: int
) -> ListedTestPage:
    """Read a page of an account's tests, newest first."""
    rows = transaction.rows(
        f"SELECT {DELIVERABILITY_COLUMNS}, tenths, "
        "delivery.author_address, delivery.author_name, delivery.subject, "
        "delivery.envelope_sender "
        "FROM deliverability_test LEFT JOIN delivery ON delivery.id = delivery_id "
        "WHERE account_id = ? AND forget_at > ? "
        "ORDER BY created_at DESC, deliverability_test.id DESC LIMIT ? OFFSET ?",
        (account_id, now, limit, offset),
    )
    ((total,),) = transaction.rows(
        "SELECT COUNT(*) FROM deliverability_test WHERE account_id = ? AND forget_at > ?",
        (account_id, now),
    )
    return ListedTestPage(tuple(_listed(row, now) for row in rows), total)


def _listed(row: Row, now: Instant) -> ListedTest:
    tenths, *header, envelope_sender = row[DELIVERABILITY_WIDTH:]
    return ListedTest(
        deliverability_test_of(row, now),
        tenths,
        None if header[0] is None else HeaderSummary(*header),
        envelope_sender or "",
    )


def read_mail(transaction: Transaction, test_id: DeliverabilityTestId) -> ReceivedMail | None:
    """Read the mail of a test; nothing when there is none."""
    row = transaction.row(
        "SELECT delivery.envelope_sender, deliverability_test.received_at, "
        f"delivery.raw_message, deliverability_test.transcript, delivery.id, {SESSION_COLUMNS} "
        "FROM deliverability_test JOIN delivery ON delivery.id = delivery_id "
        "WHERE deliverability_test.id = ?",
        (test_id,),
    )
    if row is None:
        return None
    envelope_sender, received_at, raw_message, transcript, delivery_id, *session = row
    return ReceivedMail(
        session=session_of(tuple(session)),
        envelope_sender=envelope_sender,
        received_at=Instant(received_at),
        raw_message=bytes(raw_message),
        transcript=tuple(json.loads(transcript)),
        delivery_id=DeliveryId(delivery_id),
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
        self, test_id: DeliverabilityTestId, holder: str, failure: str, retry_at: Instant
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
