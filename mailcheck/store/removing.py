"""Taking messages out: counters, tags and bytes that nobody shares any more go with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import Instant
from mailcheck.store.engine import Engine, Row, Transaction, for_each, for_each_in, makes_room
from mailcheck.store.inbox_rows import find_locked_inboxes, lock_inboxes

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

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


class SqlExpiryStore:
    """Fills the port `ExpiryStore` on any engine."""

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
