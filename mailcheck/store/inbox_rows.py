"""Rows of the inbox tables: read into values, locked, and removed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from mailcheck.core.accounts import InboxState, Quota
from mailcheck.core.content import HeaderSummary
from mailcheck.core.cursors import Position
from mailcheck.core.identifiers import AccountId, DeliveryId, MessageId
from mailcheck.core.instants import Instant
from mailcheck.core.messages import MessageSummary, Session, TlsFacts
from mailcheck.core.recent import RecentlyUsed
from mailcheck.store.engine import Engine, Row, Transaction, for_each, for_each_in, makes_room

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred


MOST_KNOWN = 10_000
"""Inboxes that a writer knows; those that got mail last stay."""

PASSED_BY = 5.0
"""Seconds for which a writer does not wait again for an inbox whose lock it did not get."""

DISTRUST = 10.0
"""Seconds for which nothing is assumed when something was not as it was known: where several
daemons write to the same inboxes an assumption costs more than a question."""

_INBOX_COLUMNS = """
    inbox.account_id, inbox.mailbox_name, inbox.last_position, inbox.message_count,
    inbox.byte_count, account.max_messages, account.max_bytes
    FROM inbox JOIN account ON account.id = inbox.account_id
"""

SUMMARY_COLUMNS = """
    message.id, message.account_id, message.delivery_id, message.position,
    message.recipient, message.tag, delivery.author_address, delivery.author_name,
    delivery.subject, message.size, message.received_at, message.expires_at,
    message.share_token, message.is_read
"""
SUMMARY_WIDTH = 14

SESSION_COLUMNS = """
    delivery.client_ip, delivery.helo_name, delivery.is_extended,
    delivery.tls_version, delivery.tls_cipher
"""

_INBOXES = f"""
    SELECT {_INBOX_COLUMNS} WHERE inbox.account_id IN ({{rows}}) ORDER BY inbox.account_id
"""

# To divide by nothing is how a statement fails where not all are as they are known.
_LOCK_KNOWN = """
    SELECT 1 / CASE WHEN COUNT(*) = MIN(wanted) THEN 1 ELSE 0 END FROM (
        SELECT column5 AS wanted FROM ({rows}) AS given
        JOIN inbox ON inbox.account_id = column1 AND inbox.last_position = column2
        JOIN account ON account.id = inbox.account_id
        AND account.max_messages IS NOT DISTINCT FROM CAST(column3 AS BIGINT)
        AND account.max_bytes IS NOT DISTINCT FROM CAST(column4 AS BIGINT)
        ORDER BY inbox.account_id FOR NO KEY UPDATE OF inbox
    ) AS locked
"""

FROM_MESSAGE = "FROM message JOIN delivery ON delivery.id = message.delivery_id"

FROM_CONTENT = f"{FROM_MESSAGE} LEFT JOIN content ON content.delivery_id = message.delivery_id"
"""As `FROM_MESSAGE`, with what was derived where anything was; both databases read that only
for who asks for it."""


def read_inboxes(
    transaction: Transaction, accounts: Iterable[AccountId], default_quota: Quota
) -> dict[AccountId, InboxState]:
    """Read the inboxes of some accounts; those that have none are left out."""
    rows = transaction.rows_over(_INBOXES, [(account,) for account in accounts])
    return {row[0]: _inbox(row, default_quota) for row in rows}


def find_locked_inboxes(
    transaction: Transaction, accounts: Iterable[AccountId]
) -> frozenset[AccountId]:
    """Lock inboxes without waiting; return the inboxes that other writers keep locked."""
    given = [(account,) for account in accounts]
    there = transaction.rows_over(_INBOXES, given)
    ours = transaction.rows_over(f"{_INBOXES} FOR NO KEY UPDATE OF inbox SKIP LOCKED", given)
    return frozenset(row[0] for row in there).difference(row[0] for row in ours)


def lock_inboxes(transaction: Transaction, accounts: Iterable[AccountId]) -> list[Row]:
    """Keep inboxes from other writers until the end: all of them in one order for everybody.

    A position is given and the commit that shows it is done under this lock:
    nobody sees a position before those below it.
    """
    return transaction.locked_rows_over(_INBOXES, [(account,) for account in accounts], "inbox")


class LockedInboxes:
    """The inboxes of some accounts, locked; those that have none are left out.

    Where this writer knows all of them since it wrote to them last, they are not read again:
    a database that is asked anyway locks them as they are known, or has all of it repeated.
    """

    def __init__(
        self, transaction: Transaction, accounts: Iterable[AccountId], default_quota: Quota
    ) -> None:
        self._known = transaction.known_inboxes
        rows = None if self._known is None else self._known.rows_of(accounts)
        self.are_assumed = rows is not None
        if rows is None:
            rows = lock_inboxes(transaction, accounts)
        else:
            given = [(row[0], row[2], row[5], row[6], len(rows)) for row in rows]
            transaction.execute_over(_LOCK_KNOWN, given)
        self._rows = {row[0]: row for row in rows}
        self.states = {row[0]: _inbox(row, default_quota) for row in rows}

    def note(self, account_id: AccountId, position: int, messages: int, octets: int) -> None:
        """Note what an inbox has become, for the next ones to lock it."""
        if self._known is not None:
            row = self._rows[account_id]
            self._known.note((*row[:2], position, messages, octets, *row[5:]))


class KnownInboxes:
    """Cached state of the inboxes that a connection has written to; it may be out of date.

    It also knows the inboxes that another writer keeps locked, so that writes do not wait.
    """

    def __init__(self, seconds: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._rows: RecentlyUsed[AccountId, Row] = RecentlyUsed(MOST_KNOWN)
        self._not_before = 0.0
        self._is_used = False
        self._passed_by: dict[AccountId, float] = {}
        self._are_all_doubtful = False

    @property
    def has_doubts(self) -> bool:
        """Whether an inbox may be locked by another writer for long."""
        return self._are_all_doubtful or bool(self._passed_by)

    def doubt(self) -> None:
        """Note that a lock was not free in time; the next transaction finds out which."""
        self._are_all_doubtful = True

    def pass_by(
        self, transaction: Transaction, accounts: Iterable[AccountId]
    ) -> frozenset[AccountId]:
        """Return the inboxes that another writer still keeps locked, without waiting."""
        now = self._seconds()
        self._passed_by = {one: until for one, until in self._passed_by.items() if now < until}
        doubtful = set(accounts) if self._are_all_doubtful else self._passed_by.keys() & accounts
        if not doubtful:
            return frozenset()
        locked = find_locked_inboxes(transaction, doubtful)
        for account in doubtful - locked:
            self._passed_by.pop(account, None)
        for account in locked:
            self._passed_by.setdefault(account, now + PASSED_BY)
        self._are_all_doubtful = False
        return locked

    def rows_of(self, accounts: Iterable[AccountId]) -> Sequence[Row] | None:
        """Give the row of each, in the order in which they are locked; nothing where one lacks."""
        self._is_used = False
        if self._seconds() < self._not_before:
            return None
        rows = [row for one in sorted(accounts) if (row := self._rows.get(one)) is not None]
        if not rows or len(rows) < len(set(accounts)):
            return None
        self._is_used = True
        return rows

    def note(self, row: Row) -> None:
        """Note what an inbox has become in this transaction."""
        self._rows.put(row[0], row)

    def forget(self) -> None:
        """Forget all: a transaction was undone, and nobody knows why."""
        self._rows.clear()
        if self._is_used:
            self._not_before = self._seconds() + DISTRUST
            self._is_used = False


def read_inbox_named(
    transaction: Transaction, mailbox_name: str, default_quota: Quota
) -> InboxState | None:
    """Read the inbox of a mailbox name (lower case)."""
    row = transaction.row(
        f"SELECT {_INBOX_COLUMNS} WHERE inbox.mailbox_name = ?",
        (mailbox_name,),
    )
    return None if row is None else _inbox(row, default_quota)


def read_operator_inbox(transaction: Transaction, default_quota: Quota) -> InboxState | None:
    """Read the operator's inbox."""
    row = transaction.row(f"SELECT {_INBOX_COLUMNS} WHERE account.is_operator = 1")
    return None if row is None else _inbox(row, default_quota)


def _inbox(row: Row, default_quota: Quota) -> InboxState:
    account_id, mailbox_name, last_position, messages, size, max_messages, max_bytes = row
    quota = Quota(
        default_quota.max_messages if max_messages is None else max_messages,
        default_quota.max_bytes if max_bytes is None else max_bytes,
    )
    return InboxState(account_id, mailbox_name, Position(last_position), messages, size, quota)


def summary_of(row: Row) -> MessageSummary:
    """Make a summary of a row that begins with `SUMMARY_COLUMNS`."""
    return MessageSummary(
        id=MessageId(row[0]),
        account_id=AccountId(row[1]),
        delivery_id=DeliveryId(row[2]),
        position=Position(row[3]),
        recipient=row[4],
        tag=row[5],
        header=HeaderSummary(row[6], row[7], row[8]),
        size=row[9],
        received_at=Instant(row[10]),
        expires_at=Instant(row[11]),
        share_token=row[12],
        is_read=bool(row[13]),
    )


def session_of(row: Row) -> Session:
    """Make the connection facts of a row of `SESSION_COLUMNS`."""
    client_ip, helo_name, is_extended, tls_version, tls_cipher = row
    tls = None if tls_version is None else TlsFacts(tls_version, tls_cipher)
    return Session(client_ip, helo_name, bool(is_extended), tls)


_REMOVE = """
    DELETE FROM message WHERE id IN ({rows})
    RETURNING account_id, tag_key, size, received_at, delivery_id
"""

_SHRINK_INBOX = """
    UPDATE inbox SET message_count = message_count - change.column2,
        byte_count = byte_count - change.column3, tag_count = tag_count - change.column4
    FROM ({rows}) AS change WHERE account_id = change.column1
"""

_SHRINK_TAG = """
    UPDATE inbox_tag SET message_count = message_count - change.column3
    FROM ({rows}) AS change WHERE account_id = change.column1 AND tag_key = change.column2
"""

_TAGS = """
    SELECT account_id, tag_key, message_count, latest_at FROM inbox_tag
    WHERE (account_id, tag_key) IN ({rows})
"""

_DROP_TAG = "DELETE FROM inbox_tag WHERE (account_id, tag_key) IN ({rows})"

# What is left of a tag is as its newest message wrote it.
_REFRESH_TAG = """
    UPDATE inbox_tag SET (tag, latest_at) = (
        SELECT message.tag, message.received_at FROM message
        WHERE message.account_id = inbox_tag.account_id AND message.tag_key = inbox_tag.tag_key
        ORDER BY message.position DESC LIMIT 1
    ) WHERE (account_id, tag_key) IN ({rows})
"""

_DELIVERIES = "SELECT id FROM delivery WHERE id IN ({rows}) ORDER BY id"

_DROP_UNSHARED = """
    DELETE FROM delivery WHERE id IN ({rows})
    AND NOT EXISTS (SELECT 1 FROM message WHERE message.delivery_id = delivery.id)
    AND NOT EXISTS (
        SELECT 1 FROM deliverability_test WHERE deliverability_test.delivery_id = delivery.id
    )
    AND NOT EXISTS (
        SELECT 1 FROM receiver_report WHERE receiver_report.delivery_id = delivery.id
    )
"""


def remove_messages(transaction: Transaction, found: Iterable[Row]) -> int:
    """Remove messages for good, found as (id, account), and what nobody needs then.

    What another daemon has removed since they were found is neither removed nor
    counted. Gives how many were removed.
    """
    rows = list(found)
    if not rows:
        return 0
    lock_inboxes(transaction, {AccountId(account) for _, account in rows})
    ids = [(message_id,) for message_id, _ in rows]
    gone = transaction.rows_over(_REMOVE, ids)
    _shrink_inboxes(transaction, gone, _shrink_tags(transaction, gone))
    drop_unshared(transaction, {delivery for *_, delivery in gone})
    return len(gone)


def _shrink_inboxes(transaction: Transaction, gone: Sequence[Row], tags: Counter[str]) -> None:
    counts = Counter(account for account, *_ in gone)
    sizes: Counter[str] = Counter()
    for account, _, size, *_ in gone:
        sizes[account] += size
    transaction.execute_over(
        _SHRINK_INBOX,
        [(account, count, sizes[account], tags[account]) for account, count in counts.items()],
    )


def _shrink_tags(transaction: Transaction, gone: Sequence[Row]) -> Counter[str]:
    """Count messages out of their tags; a tag that has none left is forgotten.

    Gives how many tags of each inbox were.
    """
    counts = Counter((account, tag) for account, tag, *_ in gone)
    newest: dict[tuple[str, str], int] = {}
    for account, tag, _, received_at, _ in gone:
        newest[account, tag] = max(received_at, newest.get((account, tag), received_at))
    empty: list[tuple[str, str]] = []
    left: list[tuple[str, str, int]] = []
    changed: list[tuple[str, str]] = []
    for account, tag, count, latest_at in transaction.rows_over(_TAGS, list(counts)):
        if count <= counts[account, tag]:
            empty.append((account, tag))
            continue
        left.append((account, tag, counts[account, tag]))
        # What expires is the oldest: the newest message, whose spelling counts, seldom goes.
        if newest[account, tag] >= latest_at:
            changed.append((account, tag))
    transaction.execute_over(_DROP_TAG, empty)
    transaction.execute_over(_SHRINK_TAG, left)
    transaction.execute_over(_REFRESH_TAG, changed)
    return Counter(account for account, _ in empty)


def drop_unshared(transaction: Transaction, deliveries: Iterable[str]) -> None:
    """Delete deliveries that no message, test or report needs any more.

    They are locked first: of two who take away the last two messages of one, the
    second sees what the first has done.
    """
    ids = [(one,) for one in deliveries]
    transaction.locked_rows_over(_DELIVERIES, ids, "delivery")
    transaction.execute_over(_DROP_UNSHARED, ids)


class ExpiryStore:
    """Deletion of what is too old."""

    def __init__(self, engine: Engine, give_back_space: Callable[[], Deferred[None]]) -> None:
        self._engine = engine
        self.give_back_space = give_back_space

    def expire(self, now: Instant, limit: int) -> Deferred[int]:
        """Delete at most ``limit`` messages that have expired; gives how many."""
        return self._engine.write(_expire, (now, limit))

    def forget_refusals(self, before: Instant, limit: int) -> Deferred[int]:
        """Delete ``limit`` refusals older than a moment, and of the last one's; gives how many."""
        return self._engine.write(_forget_refusals, (before, limit))


SWEEPING = 0x6D61_696D
"""The work of forgetting: of several daemons one does it at a time."""


def _expired(transaction: Transaction, item: tuple[Instant, int]) -> list[Row]:
    return transaction.rows(
        "SELECT id, account_id FROM message WHERE expires_at <= ? ORDER BY expires_at LIMIT ?",
        item,
    )


def _expire_around(transaction: Transaction, item: tuple[Instant, int]) -> int:
    """Remove expired data, except in inboxes that another writer keeps locked."""
    if not transaction.is_only_one(SWEEPING):
        return 0
    found = _expired(transaction, item)
    locked = find_locked_inboxes(transaction, {row[1] for row in found})
    return remove_messages(transaction, [row for row in found if row[1] not in locked])


@makes_room
@for_each_in(
    lambda transaction, item: {row[1] for row in _expired(transaction, item)}, _expire_around
)
def _expire(transaction: Transaction, item: tuple[Instant, int]) -> int:
    if not transaction.is_only_one(SWEEPING):
        return 0
    return remove_messages(transaction, _expired(transaction, item))


@makes_room
@for_each
def _forget_refusals(transaction: Transaction, item: tuple[Instant, int]) -> int:
    if not transaction.is_only_one(SWEEPING):
        return 0
    return transaction.execute(
        "DELETE FROM refusal WHERE (account_id, refused_at) IN (SELECT account_id, refused_at "
        "FROM refusal WHERE refused_at < ? ORDER BY refused_at LIMIT ?)",
        item,
    )
