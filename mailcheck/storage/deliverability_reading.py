"""Reading deliverability tests."""

import json
from collections.abc import Sequence

from mailcheck.core.content import HeaderSummary
from mailcheck.core.deliverability_tests import (
    DeliverabilityResult,
    ListedTest,
    ReceivedMail,
    State,
    StoredReport,
)
from mailcheck.core.identifiers import AccountId, DeliverabilityTestId, DeliveryId
from mailcheck.core.instants import Instant
from mailcheck.operations.deliverability.ports import ListedTestPage
from mailcheck.storage.deliverability_rows import (
    DELIVERABILITY_COLUMNS,
    DELIVERABILITY_WIDTH,
    deliverability_test_of,
)
from mailcheck.storage.engine import Row, Transaction, Value
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
