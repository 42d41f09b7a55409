"""The store of deliverability tests: create, claim for analysis, recheck, share, expire, delete.

The holder of a lease analyses a test. All writes of an analysis check that the lease is still
valid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.core.addresses import UNTAGGED
from mailcheck.core.content import HeaderSummary
from mailcheck.core.cursors import START
from mailcheck.core.deliverability_tests import (
    MAX_ATTEMPTS,
    MAX_HELD_BYTES,
    MAX_PENDING,
    TRANSITIONS,
    DeliverabilityResult,
    DeliverabilityTest,
    ListedTest,
    ReceivedMail,
    State,
    StoredReport,
    Trigger,
    local_part_of,
    next_state,
)
from mailcheck.core.errors import LimitExceeded, TooManyPendingTests, TooMuchHeldMail
from mailcheck.core.identifiers import AccountId, DeliverabilityTestId, MessageId
from mailcheck.core.instants import SECOND, Instant
from mailcheck.ports.engine import Row, Transaction, Value
from mailcheck.ports.workers import Lease
from mailcheck.store.leases import LeasedRows
from mailcheck.store.messages import (
    HEADER_COLUMNS,
    SESSION_COLUMNS,
    MessageRow,
    delete_unreferenced,
    lock_inboxes,
    session_of,
    summary_of,
)
from mailcheck.store.transactions import (
    Store,
    columns_of,
    delete_first,
    escape_like,
    frees_space,
    inbox_write,
    insert,
    json_of,
    read,
    read_number,
    row_of,
    value_of,
    write,
)


class ListedTestPage(Struct, frozen=True):
    """A page of tests, newest first; ``total`` counts all tests."""

    entries: tuple[ListedTest, ...]
    total: int


class Claimed(Struct, frozen=True):
    """The result of a claim: ``tests`` belong to the holder, ``given_up`` are now in error."""

    tests: tuple[DeliverabilityTest, ...] = ()
    given_up: tuple[DeliverabilityTestId, ...] = ()


_COLUMNS = columns_of(DeliverabilityTest, "deliverability_test")


def _test_of(row: Row, now: Instant) -> DeliverabilityTest:
    """Return the current state of a test from a row with `_COLUMNS`."""
    test = value_of(DeliverabilityTest, row)
    if test.state is State.PENDING and test.expires_at <= now:
        test = replace(test, state=next_state(test.state, Trigger.ADDRESS_EXPIRED))
    return test


def transition(
    transaction: Transaction,
    test_id: DeliverabilityTestId,
    state: State,
    trigger: Trigger,
    changes: Mapping[str, Value],
    holder: str | None = None,
) -> bool:
    """Change the state of a test by a trigger, and further columns with it.

    All changes of state use this function. It returns false without a change if the test is not
    in this state, or if a given holder does not hold it.

    :raises IllegalTransition: the trigger does not apply to this state.
    """
    columns: dict[str, Value] = {"state": next_state(state, trigger).value, **changes}
    settings = ", ".join(f"{column} = ?" for column in columns)
    condition, values = "id = ? AND state = ?", [*columns.values(), test_id, state.value]
    if holder is not None:
        condition, values = f"{condition} AND lease_holder = ?", [*values, holder]
    moved = transaction.execute(
        f"UPDATE deliverability_test SET {settings} WHERE {condition}", values
    )
    return moved == 1


_RESET: dict[str, Value] = {"attempts": 0, "failure": "", "tenths": None, "document": None}


def _check_pending_limit(
    transaction: Transaction, test: DeliverabilityTest
) -> LimitExceeded | None:
    ((count, oldest),) = transaction.rows(
        "SELECT COUNT(*), MIN(expires_at) FROM deliverability_test "
        "WHERE account_id = ? AND state = ? AND expires_at > ?",
        (test.account_id, State.PENDING.value, test.created_at),
    )
    if count < MAX_PENDING:
        return None
    return TooManyPendingTests(
        f"this account has {count} pending tests, the maximum; "
        f"use one of them, or wait until the oldest expires",
        _seconds(test.created_at, oldest),
    )


def _check_held_bytes(transaction: Transaction, test: DeliverabilityTest) -> LimitExceeded | None:
    ((size, oldest),) = transaction.rows(
        "SELECT CAST(COALESCE(SUM(size), 0) AS BIGINT), MIN(forget_at) FROM deliverability_test "
        "JOIN delivery ON delivery.id = delivery_id WHERE account_id = ? AND forget_at > ?",
        (test.account_id, test.created_at),
    )
    if size < MAX_HELD_BYTES:
        return None
    return TooMuchHeldMail(
        f"the mails of this account's tests take {size} bytes, which is over the limit; "
        f"wait until the oldest test is deleted",
        _seconds(test.created_at, oldest),
    )


def _seconds(now: int, then: int) -> int:
    """Return the seconds from ``now`` until ``then``, rounded up."""
    return -((now - then) // SECOND)


EXPIRY_LOCK = 0x6D61_696E
"""Lock for expiring and deleting tests, which one daemon does at a time."""


_LEASES = LeasedRows(
    "deliverability_test",
    waiting="state = 'processing'",
    due="received_at",
    on_claim=", attempts = attempts + 1",
)

_NEXT = _LEASES.in_turns("deliverability_test WHERE state = 'processing'", columns=", attempts")

_NO_LEASE: dict[str, Value] = {"lease_holder": None, "lease_until": None}

_UNFINISHED = "the analysis began {} times and never ended"


def _read(
    transaction: Transaction, test_id: DeliverabilityTestId, now: Instant
) -> DeliverabilityTest:
    (row,) = transaction.rows(
        f"SELECT {_COLUMNS} FROM deliverability_test WHERE id = ?", (test_id,)
    )
    return _test_of(row, now)


def read_result(
    transaction: Transaction, condition: str, values: Sequence[Value], now: Instant
) -> DeliverabilityResult | None:
    """Return a test and its result."""
    row = transaction.row(
        f"SELECT {_COLUMNS}, tenths, document, failure "
        f"FROM deliverability_test WHERE {condition} AND forget_at > ?",
        [*values, now],
    )
    if row is None:
        return None
    test = _test_of(row, now)
    report = StoredReport(row.tenths, row.document) if test.state is State.COMPLETED else None
    return DeliverabilityResult(test, report, row.failure if test.state is State.ERROR else "")


CONTENT_ONLY = '%"contentOnly":true%'
"""LIKE pattern for a stored report about the content alone. Text of the mail cannot match, since
its quotation marks are escaped."""

_LISTED = f"""
    SELECT {_COLUMNS}, tenths,
    CASE WHEN document LIKE '{CONTENT_ONLY}' THEN 1 ELSE 0 END AS is_content_only,
    {HEADER_COLUMNS}, delivery.envelope_sender
    FROM deliverability_test LEFT JOIN delivery ON delivery.id = delivery_id
    WHERE account_id = ? AND forget_at > ?
"""

_NEWEST_FIRST = "ORDER BY created_at DESC, deliverability_test.id DESC LIMIT ? OFFSET ?"


def _listed(row: Row, now: Instant) -> ListedTest:
    return ListedTest(
        _test_of(row, now),
        row.tenths,
        None if row.subject is None else value_of(HeaderSummary, row),
        row.envelope_sender or "",
        bool(row.is_content_only),
    )


class DeliverabilityStore(Store):
    """Deliverability tests.

    A pending test past its ``expires_at`` is returned as expired, even before `expire` has changed
    its state.
    """

    @inbox_write(lambda _, test, *others: (test.account_id,))
    def add(
        self, transaction: Transaction, test: DeliverabilityTest, forget_at: Instant
    ) -> LimitExceeded | None:
        """Add a pending test.

        :raises TooManyPendingTests: the account has `MAX_PENDING` of them.
        :raises TooMuchHeldMail: the mails of its tests take `MAX_HELD_BYTES`.
        """
        lock_inboxes(transaction, (test.account_id,))
        refusal = _check_pending_limit(transaction, test) or _check_held_bytes(transaction, test)
        if refusal is not None:
            return refusal
        insert(transaction, "deliverability_test", [row_of(test, forget_at=forget_at, failure="")])
        return None

    @inbox_write(lambda _, test, *others: (test.account_id,))
    def add_of_message(
        self,
        transaction: Transaction,
        test: DeliverabilityTest,
        message_id: MessageId,
        forget_at: Instant,
    ) -> bool | LimitExceeded:
        """Add a test of a stored message, in processing; return false if it does not exist.

        The mail's bytes are shared. ``received_at`` and ``delivery_id`` are the message's.

        :raises TooMuchHeldMail: the mails of the account's tests take `MAX_HELD_BYTES`.
        """
        lock_inboxes(transaction, (test.account_id,))
        refusal = _check_held_bytes(transaction, test)
        if refusal is not None:
            return refusal
        of_message = ("received_at", "delivery_id")
        known = row_of(test, *of_message, forget_at=forget_at, failure="", transcript=json_of(()))
        marks = ", ".join("?" * len(known))
        added = transaction.execute(
            f"INSERT INTO deliverability_test (received_at, delivery_id, {', '.join(known)}) "
            f"SELECT received_at, delivery_id, {marks} "
            "FROM message WHERE id = ? AND account_id = ? AND expires_at > ?",
            (*known.values(), message_id, test.account_id, test.created_at),
        )
        return added == 1

    @read
    def find(
        self,
        transaction: Transaction,
        account_id: AccountId,
        test_id: DeliverabilityTestId,
        now: Instant,
    ) -> DeliverabilityResult | None:
        """Return a test of the account, or `None`."""
        condition = "id = ? AND account_id = ?"
        return read_result(transaction, condition, (test_id, account_id), now)

    @read
    def find_any(
        self, transaction: Transaction, test_id: DeliverabilityTestId, now: Instant
    ) -> DeliverabilityResult | None:
        """Return a test of any account: for mail, and for share links, which prove access."""
        return read_result(transaction, "id = ?", (test_id,), now)

    @read
    def page(
        self, transaction: Transaction, account_id: AccountId, now: Instant, limit: int, offset: int
    ) -> ListedTestPage:
        """Return a page of the account's tests, newest first."""
        rows = transaction.rows(f"{_LISTED} {_NEWEST_FIRST}", (account_id, now, limit, offset))
        count = "SELECT COUNT(*) FROM deliverability_test WHERE account_id = ? AND forget_at > ?"
        total = read_number(transaction, count, (account_id, now))
        return ListedTestPage(tuple(_listed(row, now) for row in rows), total)

    @read
    def read_mail(
        self, transaction: Transaction, test_id: DeliverabilityTestId
    ) -> ReceivedMail | None:
        """Return the mail of a test, or `None`."""
        row = transaction.row(
            "SELECT delivery.envelope_sender, deliverability_test.received_at, "
            "delivery.raw_message, deliverability_test.transcript, delivery_id, "
            f"deliverability_test.account_id, {SESSION_COLUMNS} "
            "FROM deliverability_test JOIN delivery ON delivery.id = delivery_id "
            "WHERE deliverability_test.id = ?",
            (test_id,),
        )
        return None if row is None else value_of(ReceivedMail, row, session=session_of(row))

    @read
    def find_message(
        self, transaction: Transaction, test_id: DeliverabilityTestId
    ) -> MessageRow | None:
        """Return the mail of a test in the form of a message, or `None`.

        Its recipient is the local part of the test address. It expires when the test is deleted,
        and its share token is that of the test.
        """
        row = transaction.row(
            "SELECT deliverability_test.account_id, delivery_id, delivery.size, "
            "deliverability_test.received_at, forget_at AS expires_at, share_token, "
            f"{HEADER_COLUMNS}, delivery.envelope_sender, {SESSION_COLUMNS} "
            "FROM deliverability_test JOIN delivery ON delivery.id = delivery_id "
            "WHERE deliverability_test.id = ?",
            (test_id,),
        )
        if row is None:
            return None
        summary = summary_of(
            row, id=test_id, position=START, recipient=local_part_of(test_id), tag=UNTAGGED
        )
        return MessageRow(summary, row.envelope_sender, session_of(row))

    @read
    def of_domain(
        self, transaction: Transaction, account_id: AccountId, domain: str, now: Instant, limit: int
    ) -> Sequence[ListedTest]:
        """Return the account's newest completed tests of mails from authors of a domain.

        :param domain: lower case, as in the From field of the mails.
        """
        rows = transaction.rows(
            f"{_LISTED} AND state = 'completed' AND delivery.author_key LIKE ? ESCAPE '!' "
            f"{_NEWEST_FIRST}",
            (account_id, now, f"%@{escape_like(domain)}>%", limit, 0),
        )
        return tuple(_listed(row, now) for row in rows)

    @frees_space
    @write
    def delete(
        self,
        transaction: Transaction,
        account_id: AccountId,
        test_id: DeliverabilityTestId,
        now: Instant,
    ) -> bool:
        """Delete a test, and its mail unless it has other references.

        :return: false if the account has no such test.
        """
        gone = transaction.rows(
            "DELETE FROM deliverability_test WHERE id = ? AND account_id = ? AND forget_at > ? "
            "RETURNING delivery_id",
            (test_id, account_id, now),
        )
        delete_unreferenced(transaction, gone)
        return bool(gone)

    @write
    def claim(self, transaction: Transaction, lease: Lease, now: Instant, limit: int) -> Claimed:
        """Claim at most ``limit`` tests that wait for analysis, the oldest mail first.

        Accounts take turns: the account with fewer tests in progress comes first. Each claim is an
        attempt. A test whose `MAX_ATTEMPTS` attempts all ended without a result goes into error.
        """
        offset = transaction.clock_offset()
        shared_now = Instant(now + offset)
        until = lease.until + offset
        rows = transaction.rows(_NEXT, (shared_now, shared_now, limit))
        claimed, given_up = [], []
        for row in rows:
            test_id, attempts = row.id, row.attempts
            if attempts >= MAX_ATTEMPTS:
                changes = {"failure": _UNFINISHED.format(attempts), **_NO_LEASE}
                if transition(
                    transaction, test_id, State.PROCESSING, Trigger.ANALYSIS_FAILED, changes
                ):
                    given_up.append(test_id)
            elif _LEASES.claim(transaction, test_id, lease.holder, until, shared_now):
                claimed.append(test_id)
        tests = tuple(_read(transaction, test_id, now) for test_id in claimed)
        return Claimed(tests, tuple(given_up))

    @write
    def renew(
        self, transaction: Transaction, lease: Lease, test_ids: Sequence[DeliverabilityTestId]
    ) -> frozenset[DeliverabilityTestId]:
        """Extend the leases of tests; return the tests that the holder still has."""
        return _LEASES.renew(transaction, lease, test_ids)

    @write
    def release(self, transaction: Transaction, holder: str, *, is_attempt: bool) -> None:
        """Release all tests of a holder; without ``is_attempt``, the attempts are not counted."""
        _LEASES.release(transaction, holder, "" if is_attempt else ", attempts = attempts - 1")

    @write
    def complete(
        self,
        transaction: Transaction,
        test_id: DeliverabilityTestId,
        holder: str,
        report: StoredReport,
    ) -> bool:
        """Store the report; return false if the holder has lost the test."""
        changes = {"tenths": report.tenths, "document": report.document, "failure": "", **_NO_LEASE}
        return transition(
            transaction, test_id, State.PROCESSING, Trigger.CHECKS_DONE, changes, holder=holder
        )

    @write
    def fail_attempt(
        self,
        transaction: Transaction,
        test_id: DeliverabilityTestId,
        holder: str,
        failure: str,
        retry_at: Instant | None,
    ) -> State | None:
        """Record a failed analysis: error after `MAX_ATTEMPTS`, otherwise retry at ``retry_at``.

        If ``retry_at`` is `None`, the test goes into error at once.

        :return: the new state, or `None` if the holder has lost the test.
        """
        rows = transaction.locked_rows(
            "SELECT attempts FROM deliverability_test "
            "WHERE id = ? AND state = 'processing' AND lease_holder = ?",
            (test_id, holder),
            "deliverability_test",
        )
        if not rows:
            return None
        if retry_at is None or rows[0].attempts >= MAX_ATTEMPTS:
            changes = {"failure": failure, **_NO_LEASE}
            transition(
                transaction,
                test_id,
                State.PROCESSING,
                Trigger.ANALYSIS_FAILED,
                changes,
                holder=holder,
            )
            return State.ERROR
        until = retry_at + transaction.clock_offset()
        _LEASES.give_back(transaction, test_id, holder, failure=failure, lease_until=until)
        return State.PROCESSING

    @write
    def recheck(
        self,
        transaction: Transaction,
        account_id: AccountId,
        test_id: DeliverabilityTestId,
        now: Instant,
    ) -> State | None:
        """Put a test that is completed or in error back into processing; others stay unchanged.

        :return: its previous state, or `None` if the account has no such test.
        """
        rows = transaction.locked_rows(
            "SELECT state FROM deliverability_test "
            "WHERE id = ? AND account_id = ? AND forget_at > ?",
            (test_id, account_id, now),
            "deliverability_test",
        )
        if not rows:
            return None
        state = State(rows[0].state)
        if (state, Trigger.RECHECK) in TRANSITIONS:
            transition(transaction, test_id, state, Trigger.RECHECK, _RESET)
        return state

    @write
    def replace_share_token(
        self,
        transaction: Transaction,
        account_id: AccountId,
        test_id: DeliverabilityTestId,
        token: str,
        now: Instant,
    ) -> bool:
        """Replace the share token of a test; return false if it does not exist."""
        return bool(
            transaction.execute(
                "UPDATE deliverability_test SET share_token = ? "
                "WHERE id = ? AND account_id = ? AND forget_at > ?",
                (token, test_id, account_id, now),
            )
        )

    @frees_space
    @write
    def expire(self, transaction: Transaction, now: Instant, limit: int) -> int:
        """Expire at most ``limit`` tests whose address has expired; return their number."""
        if not transaction.try_lock(EXPIRY_LOCK):
            return 0
        rows = transaction.rows(
            "SELECT id FROM deliverability_test WHERE state = 'pending' AND expires_at <= ? "
            "ORDER BY expires_at LIMIT ?",
            (now, limit),
        )
        moved = [
            transition(transaction, row.id, State.PENDING, Trigger.ADDRESS_EXPIRED, {})
            for row in rows
        ]
        return sum(moved)

    @frees_space
    @write
    def forget(self, transaction: Transaction, now: Instant, limit: int) -> int:
        """Delete at most ``limit`` old tests, and their mails without other references."""
        if not transaction.try_lock(EXPIRY_LOCK):
            return 0
        oldest = "forget_at <= ? ORDER BY forget_at"
        sql = delete_first("deliverability_test", "id", oldest, "delivery_id")
        gone = transaction.rows(sql, (now, limit))
        delete_unreferenced(transaction, gone)
        return len(gone)
