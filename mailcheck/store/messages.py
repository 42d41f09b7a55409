"""Messages and inboxes: what reading them gives, and their rows: read, locked, added, removed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING

from msgspec import Struct

from mailcheck.core.accounts import InboxState, Quota
from mailcheck.core.addresses import fold_tag
from mailcheck.core.content import Extracted, HeaderSummary, MessageContent
from mailcheck.core.cursors import Position
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import Instant
from mailcheck.core.messages import MessageSummary, Session, TagCount, TlsFacts
from mailcheck.ports.engine import Row, Transaction, Value
from mailcheck.store.transactions import (
    Store,
    columns_of,
    frees_space,
    inbox_write,
    value_of,
    write,
)

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred


class MessagePage(Struct, frozen=True):
    """A page of a list; what is not derived yet is missing from an entry.

    ``total`` counts all that match; ``last_position`` is the inbox's newest
    cursor in the same snapshot. ``not_searched`` counts messages that may match as well:
    their content is asked for, and not derived yet.
    """

    entries: tuple[tuple[MessageSummary, Extracted | None], ...]
    total: int
    last_position: Position
    not_searched: int = 0


class NewestMessages(Struct, frozen=True):
    """The newest messages of some, newest first: the first few of them, and where all are."""

    messages: tuple[MessageSummary, ...]
    positions: tuple[Position, ...]


class InboxOverview(Struct, frozen=True):
    """An inbox with its newest tags; expired mail is not counted."""

    state: InboxState
    tags: tuple[TagCount, ...]
    tag_total: int


@dataclass(frozen=True, slots=True)
class MessageRow:
    """A stored message; its content, or the mail itself, where that was read along with it."""

    summary: MessageSummary
    envelope_sender: str
    session: Session
    content: MessageContent | bytes | None = field(default=None, compare=False, repr=False)


class Prefetch(Struct, frozen=True):
    """Whose content is read along with messages: the first ``most`` that are ``wanted``.

    Only as many as have less than ``below`` bytes together are; what was not derived yet comes as
    the mail itself. ``wanted`` is asked in another thread.
    """

    wanted: Callable[[MessageSummary], bool]
    below: int
    most: int = 4
    """What is waited for is one, or a few in a burst."""


_INBOX_COLUMNS = """
    inbox.account_id, inbox.mailbox_name, inbox.last_position, inbox.message_count,
    inbox.byte_count, account.max_messages, account.max_bytes
    FROM inbox JOIN account ON account.id = inbox.account_id
"""

_INBOXES = f"""
    SELECT {_INBOX_COLUMNS} WHERE inbox.account_id IN ({{rows}}) ORDER BY inbox.account_id
"""

_MESSAGE_COLUMNS = tuple(name for name in MessageSummary.__struct_fields__ if name != "header")
"""The columns of a message that are fields of its summary: they are read, and they are added."""

_message_values = attrgetter(*_MESSAGE_COLUMNS)

ADD_MESSAGES = (
    f"INSERT INTO message ({', '.join(_MESSAGE_COLUMNS)}, recipient_key, tag_key) {{rows}}"
)
"""Adds the rows of `message_row`."""

HEADER_COLUMNS = columns_of(HeaderSummary, "delivery")

SUMMARY_COLUMNS = f"{columns_of(MessageSummary, 'message', 'header')}, {HEADER_COLUMNS}"

SESSION_COLUMNS = """
    delivery.client_ip, delivery.helo_name, delivery.is_extended,
    delivery.tls_version, delivery.tls_cipher
"""

FROM_MESSAGE = "FROM message JOIN delivery ON delivery.id = message.delivery_id"

FROM_CONTENT = f"{FROM_MESSAGE} LEFT JOIN content ON content.delivery_id = message.delivery_id"
"""As `FROM_MESSAGE`, with what was derived where anything was; both databases read that only
for who asks for it."""


def message_row(message: MessageSummary) -> tuple[Value, ...]:
    """Return the row that a message is stored as."""
    values: tuple[Value, ...] = _message_values(message)
    return (*values, message.recipient.casefold(), fold_tag(message.tag))


def summary_of(row: Row, **given: object) -> MessageSummary:
    """Return the summary of a row that has `SUMMARY_COLUMNS`; ``given`` are fields it lacks."""
    return value_of(MessageSummary, row, header=value_of(HeaderSummary, row), **given)


def session_of(row: Row) -> Session:
    """Return the facts of the connection of a row that has `SESSION_COLUMNS`."""
    tls = None if row.tls_version is None else TlsFacts(row.tls_version, row.tls_cipher)
    return Session(row.client_ip, row.helo_name, bool(row.is_extended), tls)


def read_inboxes(
    transaction: Transaction, accounts: Iterable[AccountId], default_quota: Quota
) -> dict[AccountId, InboxState]:
    """Read the inboxes of some accounts; those that have none are left out."""
    rows = transaction.rows_over(_INBOXES, [(account,) for account in accounts])
    return {row.account_id: inbox_of(row, default_quota) for row in rows}


def read_inbox_named(
    transaction: Transaction, mailbox_name: str, default_quota: Quota
) -> InboxState | None:
    """Read the inbox of a mailbox name (lower case)."""
    row = transaction.row(
        f"SELECT {_INBOX_COLUMNS} WHERE inbox.mailbox_name = ?",
        (mailbox_name,),
    )
    return None if row is None else inbox_of(row, default_quota)


def read_operator_inbox(transaction: Transaction, default_quota: Quota) -> InboxState | None:
    """Read the operator's inbox."""
    row = transaction.row(f"SELECT {_INBOX_COLUMNS} WHERE account.is_operator = 1")
    return None if row is None else inbox_of(row, default_quota)


def inbox_of(row: Row, default_quota: Quota) -> InboxState:
    """Return the state of an inbox whose row was read or locked."""
    quota = Quota(
        default_quota.max_messages if row.max_messages is None else row.max_messages,
        default_quota.max_bytes if row.max_bytes is None else row.max_bytes,
    )
    return value_of(InboxState, row, quota=quota)


def find_locked_inboxes(
    transaction: Transaction, accounts: Iterable[AccountId]
) -> frozenset[AccountId]:
    """Lock inboxes without waiting; return the inboxes that other writers keep locked."""
    given = [(account,) for account in accounts]
    there = transaction.rows_over(_INBOXES, given)
    ours = transaction.rows_over(f"{_INBOXES} FOR NO KEY UPDATE OF inbox SKIP LOCKED", given)
    return frozenset(row.account_id for row in there).difference(row.account_id for row in ours)


def lock_inboxes(transaction: Transaction, accounts: Iterable[AccountId]) -> list[Row]:
    """Keep inboxes from other writers until the end: all of them in one order for everybody.

    A position is given and the commit that shows it is done under this lock:
    nobody sees a position before those below it.
    """
    return transaction.locked_rows_over(_INBOXES, [(account,) for account in accounts], "inbox")


_REMOVE = """
    DELETE FROM message WHERE id IN ({rows})
    RETURNING account_id, tag_key, size, received_at, delivery_id
"""

_SHRINK_INBOX = """
    WITH change (account_id, message_count, byte_count, tag_count) AS ({rows})
    UPDATE inbox SET message_count = inbox.message_count - change.message_count,
        byte_count = inbox.byte_count - change.byte_count,
        tag_count = inbox.tag_count - change.tag_count
    FROM change WHERE inbox.account_id = change.account_id
"""

_SHRINK_TAG = """
    WITH change (account_id, tag_key, message_count) AS ({rows})
    UPDATE inbox_tag SET message_count = inbox_tag.message_count - change.message_count
    FROM change WHERE inbox_tag.account_id = change.account_id
    AND inbox_tag.tag_key = change.tag_key
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
    """Remove messages for good, found by ``id`` and ``account_id``, and what nobody needs then.

    What another daemon has removed since they were found is neither removed nor
    counted. Gives how many were removed.
    """
    rows = list(found)
    if not rows:
        return 0
    lock_inboxes(transaction, {row.account_id for row in rows})
    gone = transaction.rows_over(_REMOVE, [(row.id,) for row in rows])
    _shrink_inboxes(transaction, gone, _shrink_tags(transaction, gone))
    delete_unreferenced(transaction, {row.delivery_id for row in gone})
    return len(gone)


def _shrink_inboxes(transaction: Transaction, gone: Sequence[Row], tags: Counter[str]) -> None:
    counts = Counter(row.account_id for row in gone)
    sizes: Counter[str] = Counter()
    for row in gone:
        sizes[row.account_id] += row.size
    transaction.execute_over(
        _SHRINK_INBOX,
        [(account, count, sizes[account], tags[account]) for account, count in counts.items()],
    )


def _shrink_tags(transaction: Transaction, gone: Sequence[Row]) -> Counter[str]:
    """Count messages out of their tags; a tag that has none left is forgotten.

    Gives how many tags of each inbox were.
    """
    counts = Counter((row.account_id, row.tag_key) for row in gone)
    newest: dict[tuple[str, str], int] = {}
    for row in gone:
        key = row.account_id, row.tag_key
        newest[key] = max(row.received_at, newest.get(key, row.received_at))
    empty: list[tuple[str, str]] = []
    left: list[tuple[str, str, int]] = []
    changed: list[tuple[str, str]] = []
    for row in transaction.rows_over(_TAGS, list(counts)):
        key = row.account_id, row.tag_key
        if row.message_count <= counts[key]:
            empty.append(key)
            continue
        left.append((*key, counts[key]))
        # What expires is the oldest: the newest message, whose spelling counts, seldom goes.
        if newest[key] >= row.latest_at:
            changed.append(key)
    transaction.execute_over(_DROP_TAG, empty)
    transaction.execute_over(_SHRINK_TAG, left)
    transaction.execute_over(_REFRESH_TAG, changed)
    return Counter(account for account, _ in empty)


def delete_unreferenced(transaction: Transaction, deliveries: Iterable[str]) -> None:
    """Delete deliveries that no message, test or report needs any more.

    They are locked first: of two who take away the last two messages of one, the
    second sees what the first has done.
    """
    ids = [(one,) for one in deliveries]
    transaction.locked_rows_over(_DELIVERIES, ids, "delivery")
    transaction.execute_over(_DROP_UNSHARED, ids)


EXPIRY_LOCK = 0x6D61_696D
"""The work of forgetting: of several daemons one does it at a time."""


def _expired(transaction: Transaction, now: Instant, limit: int) -> list[Row]:
    return transaction.rows(
        "SELECT id, account_id FROM message WHERE expires_at <= ? ORDER BY expires_at LIMIT ?",
        (now, limit),
    )


def _expire_around(transaction: Transaction, now: Instant, limit: int) -> int:
    """Remove expired data, except in inboxes that another writer keeps locked."""
    if not transaction.try_lock(EXPIRY_LOCK):
        return 0
    found = _expired(transaction, now, limit)
    locked = find_locked_inboxes(transaction, {row.account_id for row in found})
    return remove_messages(transaction, [row for row in found if row.account_id not in locked])


class ExpiryStore(Store):
    """Deletion of what is too old."""

    @frees_space
    @inbox_write(
        lambda transaction, now, limit: {
            row.account_id for row in _expired(transaction, now, limit)
        },
        _expire_around,
    )
    def expire(self, transaction: Transaction, now: Instant, limit: int) -> int:
        """Delete at most ``limit`` messages that have expired; gives how many."""
        if not transaction.try_lock(EXPIRY_LOCK):
            return 0
        return remove_messages(transaction, _expired(transaction, now, limit))

    @frees_space
    @write
    def forget_refusals(self, transaction: Transaction, before: Instant, limit: int) -> int:
        """Delete ``limit`` refusals older than a moment, and of the last one's; gives how many."""
        if not transaction.try_lock(EXPIRY_LOCK):
            return 0
        return transaction.execute(
            "DELETE FROM refusal WHERE (account_id, refused_at) IN (SELECT account_id, refused_at "
            "FROM refusal WHERE refused_at < ? ORDER BY refused_at LIMIT ?)",
            (before, limit),
        )

    def reclaim_space(self) -> Deferred[None]:
        """Return freed space to the disk, where the engine can."""
        return self._engine.reclaim_space()
