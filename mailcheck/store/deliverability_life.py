"""What users and time do to deliverability tests: made, rechecked, shared, expired, forgotten."""

import json

from mailcheck.core.deliverability_tests import (
    MAX_HELD_BYTES,
    MAX_PENDING,
    TRANSITIONS,
    DeliverabilityTest,
    State,
    Trigger,
)
from mailcheck.core.errors import LimitExceeded, TooManyPendingTests, TooMuchHeldMail
from mailcheck.core.identifiers import AccountId, DeliverabilityTestId, MessageId
from mailcheck.core.instants import SECOND, Instant
from mailcheck.store.deliverability_rows import move
from mailcheck.store.engine import Transaction, Value, for_each, for_each_in, makes_room
from mailcheck.store.inbox_rows import lock_inboxes
from mailcheck.store.removing import drop_unshared

_INTO_TEST = """
    INSERT INTO deliverability_test (
        id, account_id, state, created_at, expires_at, forget_at, share_token,
        attempts, failure, received_at, delivery_id, transcript
    )
"""

_ANEW: dict[str, Value] = {"attempts": 0, "failure": "", "tenths": None, "document": None}


@for_each_in(lambda _, item: (item[0].account_id,))
def add(transaction: Transaction, item: tuple[DeliverabilityTest, Instant]) -> LimitExceeded | None:
    """Add a pending test, unless too many are, or too much mail is held."""
    test, forget_at = item
    lock_inboxes(transaction, (test.account_id,))
    refusal = _refuse_pending(transaction, test) or _refuse_held(transaction, test)
    if refusal is not None:
        return refusal
    transaction.execute(
        f"{_INTO_TEST} VALUES (?, ?, ?, ?, ?, ?, ?, 0, '', NULL, NULL, NULL)",
        _known(test, forget_at),
    )
    return None


@for_each_in(lambda _, item: (item[0].account_id,))
def add_of_message(
    transaction: Transaction, item: tuple[DeliverabilityTest, MessageId, Instant]
) -> bool | LimitExceeded:
    """Add a test that shares the mail of a message; false when the account has no such one."""
    test, message_id, forget_at = item
    lock_inboxes(transaction, (test.account_id,))
    refusal = _refuse_held(transaction, test)
    if refusal is not None:
        return refusal
    added = transaction.execute(
        f"{_INTO_TEST} SELECT ?, ?, ?, ?, ?, ?, ?, 0, '', received_at, delivery_id, ? "
        "FROM message WHERE id = ? AND account_id = ? AND expires_at > ?",
        (
            *_known(test, forget_at),
            json.dumps(()),
            message_id,
            test.account_id,
            test.created_at,
        ),
    )
    return added == 1


def _refuse_pending(transaction: Transaction, test: DeliverabilityTest) -> LimitExceeded | None:
    ((count, oldest),) = transaction.rows(
        "SELECT COUNT(*), MIN(expires_at) FROM deliverability_test "
        "WHERE account_id = ? AND state = ? AND expires_at > ?",
        (test.account_id, State.PENDING.value, test.created_at),
    )
    if count < MAX_PENDING:
        return None
    return TooManyPendingTests(
        f"{count} tests of this account wait for their mail, its limit; "
        f"use one of them, or wait until the oldest expires",
        _seconds(test.created_at, oldest),
    )


def _refuse_held(transaction: Transaction, test: DeliverabilityTest) -> LimitExceeded | None:
    ((size, oldest),) = transaction.rows(
        "SELECT CAST(COALESCE(SUM(size), 0) AS BIGINT), MIN(forget_at) FROM deliverability_test "
        "JOIN delivery ON delivery.id = delivery_id WHERE account_id = ? AND forget_at > ?",
        (test.account_id, test.created_at),
    )
    if size < MAX_HELD_BYTES:
        return None
    return TooMuchHeldMail(
        f"the mails of this account's tests hold {size} bytes, over its limit; "
        f"wait until the oldest is forgotten",
        _seconds(test.created_at, oldest),
    )


def _seconds(now: int, then: int) -> int:
    """Give whole seconds from now until then, rounded up."""
    return -((now - then) // SECOND)


def _known(test: DeliverabilityTest, forget_at: Instant) -> tuple[str | int, ...]:
    return (
        test.id,
        test.account_id,
        test.state.value,
        test.created_at,
        test.expires_at,
        forget_at,
        test.share_token,
    )


@makes_room
@for_each
def delete(transaction: Transaction, item: tuple[DeliverabilityTestId, AccountId, Instant]) -> bool:
    """Delete a test, and its mail where neither a message nor another test needs it."""
    gone = transaction.rows(
        "DELETE FROM deliverability_test WHERE id = ? AND account_id = ? AND forget_at > ? "
        "RETURNING delivery_id",
        item,
    )
    drop_unshared(transaction, {delivery for (delivery,) in gone if delivery is not None})
    return bool(gone)


@for_each
def recheck(
    transaction: Transaction, item: tuple[AccountId, DeliverabilityTestId, Instant]
) -> State | None:
    """Put a test that has ended back into processing; gives the state it was in."""
    account_id, test_id, now = item
    rows = transaction.locked_rows(
        "SELECT state FROM deliverability_test WHERE id = ? AND account_id = ? AND forget_at > ?",
        (test_id, account_id, now),
        "deliverability_test",
    )
    if not rows:
        return None
    state = State(rows[0][0])
    if (state, Trigger.RECHECK) in TRANSITIONS:
        move(transaction, test_id, state, Trigger.RECHECK, _ANEW)
    return state


@for_each
def replace_share_token(
    transaction: Transaction, item: tuple[str, DeliverabilityTestId, AccountId, Instant]
) -> bool:
    """Change the secret of a test's share link."""
    return bool(
        transaction.execute(
            "UPDATE deliverability_test SET share_token = ? "
            "WHERE id = ? AND account_id = ? AND forget_at > ?",
            item,
        )
    )


SWEEPING = 0x6D61_696E
"""The work of expiring and forgetting tests: of several daemons one does it at a time."""


@makes_room
@for_each
def expire(transaction: Transaction, item: tuple[Instant, int]) -> int:
    """Move tests whose address has expired without a mail."""
    if not transaction.is_only_one(SWEEPING):
        return 0
    rows = transaction.rows(
        "SELECT id FROM deliverability_test WHERE state = 'pending' AND expires_at <= ? "
        "ORDER BY expires_at LIMIT ?",
        item,
    )
    moved = [
        move(transaction, test_id, State.PENDING, Trigger.ADDRESS_EXPIRED, {})
        for (test_id,) in rows
    ]
    return sum(moved)


@makes_room
@for_each
def forget(transaction: Transaction, item: tuple[Instant, int]) -> int:
    """Delete tests, and mails that neither a message nor another test needs."""
    if not transaction.is_only_one(SWEEPING):
        return 0
    gone = transaction.rows(
        "DELETE FROM deliverability_test WHERE id IN ("
        "SELECT id FROM deliverability_test WHERE forget_at <= ? ORDER BY forget_at LIMIT ?"
        ") RETURNING delivery_id",
        item,
    )
    drop_unshared(transaction, {delivery for (delivery,) in gone if delivery is not None})
    return len(gone)
