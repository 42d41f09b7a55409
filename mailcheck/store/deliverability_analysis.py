"""What an analysis does to deliverability tests: claimed by lease, completed, failed.

A lease lets several daemons share the work: who holds it analyses, and when it
ends another one may take over. All writes of an analysis ask whether it still holds.
Moments of leases are those of the clock that all daemons share, the database's.
"""

from mailcheck.core.deliverability_tests import (
    MAX_ATTEMPTS,
    DeliverabilityTest,
    State,
    StoredReport,
    Trigger,
)
from mailcheck.core.identifiers import DeliverabilityTestId
from mailcheck.core.instants import Instant
from mailcheck.operations.deliverability.ports import Claimed
from mailcheck.operations.ports import Lease
from mailcheck.store.deliverability_rows import (
    DELIVERABILITY_COLUMNS,
    deliverability_test_of,
    move,
)
from mailcheck.store.engine import Transaction, Value, for_each

_HAS_NO_LEASE = "(lease_until IS NULL OR lease_until <= ?)"

_IS_FREE = f"state = 'processing' AND {_HAS_NO_LEASE}"

# Each account's first, then each one's second, those under way counted: whoever
# sends a hundred mails at once does not hold up the one mail of another.
_WAITING = f"""
    SELECT id, attempts FROM (
        SELECT id, attempts, lease_until, received_at, ROW_NUMBER() OVER (
            PARTITION BY account_id
            ORDER BY CASE WHEN {_HAS_NO_LEASE} THEN 1 ELSE 0 END, received_at, id
        ) AS turn
        FROM deliverability_test WHERE state = 'processing'
    ) AS waiting WHERE {_HAS_NO_LEASE} ORDER BY turn, received_at, id LIMIT ?
"""

_CLAIM = f"""
    UPDATE deliverability_test SET lease_holder = ?, lease_until = ?, attempts = attempts + 1
    WHERE id = ? AND {_IS_FREE}
"""

_FREE: dict[str, Value] = {"lease_holder": None, "lease_until": None}

_NO_WORD = "the analysis began {} times and never ended"


@for_each
def claim(transaction: Transaction, item: tuple[Lease, Instant, int]) -> Claimed:
    """Take tests that nobody analyses; those that were begun too often end in error."""
    lease, own_now, limit = item
    offset = transaction.clock_offset()
    now = Instant(own_now + offset)
    rows = transaction.rows(_WAITING, (now, now, limit))
    claimed, given_up = [], []
    for test_id, attempts in rows:
        if attempts >= MAX_ATTEMPTS:
            changes = {"failure": _NO_WORD.format(attempts), **_FREE}
            if move(transaction, test_id, State.PROCESSING, Trigger.ANALYSIS_FAILED, changes):
                given_up.append(test_id)
        elif transaction.execute(_CLAIM, (lease.holder, lease.until + offset, test_id, now)):
            claimed.append(test_id)
    tests = tuple(_read(transaction, test_id, own_now) for test_id in claimed)
    return Claimed(tests, tuple(given_up))


def _read(
    transaction: Transaction, test_id: DeliverabilityTestId, now: Instant
) -> DeliverabilityTest:
    (row,) = transaction.rows(
        f"SELECT {DELIVERABILITY_COLUMNS} FROM deliverability_test WHERE id = ?", (test_id,)
    )
    return deliverability_test_of(row, now)


@for_each
def renew(
    transaction: Transaction, item: tuple[Lease, tuple[DeliverabilityTestId, ...]]
) -> frozenset[DeliverabilityTestId]:
    """Hold tests for longer; gives those that are still the holder's."""
    lease, test_ids = item
    until = lease.until + transaction.clock_offset()
    return frozenset(
        test_id
        for test_id in test_ids
        if transaction.execute(
            "UPDATE deliverability_test SET lease_until = ? "
            "WHERE id = ? AND state = 'processing' AND lease_holder = ?",
            (until, test_id, lease.holder),
        )
    )


@for_each
def release(transaction: Transaction, item: tuple[str, bool]) -> None:
    """Let go of all that a holder has."""
    holder, is_attempt = item
    transaction.execute(
        "UPDATE deliverability_test "
        "SET lease_holder = NULL, lease_until = NULL, attempts = attempts - ? "
        "WHERE state = 'processing' AND lease_holder = ?",
        (int(not is_attempt), holder),
    )


@for_each
def complete(
    transaction: Transaction, item: tuple[DeliverabilityTestId, str, StoredReport]
) -> bool:
    """Keep the report of the one who holds the lease."""
    test_id, holder, report = item
    changes = {"tenths": report.tenths, "document": report.document, "failure": "", **_FREE}
    return move(transaction, test_id, State.PROCESSING, Trigger.CHECKS_DONE, changes, holder)


@for_each
def fail_attempt(
    transaction: Transaction, item: tuple[DeliverabilityTestId, str, str, Instant | None]
) -> State | None:
    """Note the failure of the one who holds the lease: error, or again after ``retry_at``."""
    test_id, holder, failure, retry_at = item
    rows = transaction.locked_rows(
        "SELECT attempts FROM deliverability_test "
        "WHERE id = ? AND state = 'processing' AND lease_holder = ?",
        (test_id, holder),
        "deliverability_test",
    )
    if not rows:
        return None
    if retry_at is None or rows[0][0] >= MAX_ATTEMPTS:
        changes = {"failure": failure, **_FREE}
        move(transaction, test_id, State.PROCESSING, Trigger.ANALYSIS_FAILED, changes, holder)
        return State.ERROR
    transaction.execute(
        "UPDATE deliverability_test SET failure = ?, lease_holder = NULL, lease_until = ? "
        "WHERE id = ? AND lease_holder = ?",
        (failure, retry_at + transaction.clock_offset(), test_id, holder),
    )
    return State.PROCESSING
