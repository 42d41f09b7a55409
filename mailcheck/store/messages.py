"""Messages and inboxes: the values that queries return, and reading, locking and deleting rows."""

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
from mailcheck.core.cursors import START, Position
from mailcheck.core.identifiers import AccountId, MessageId
from mailcheck.core.instants import Instant
from mailcheck.core.messages import UNDO_TIME, MessageSummary, Session, TagCount, TlsFacts
from mailcheck.ports.engine import Row, Transaction, Value
from mailcheck.store.transactions import (
    Store,
    columns_of,
    delete_first,
    frees_space,
    inbox_write,
    read,
    value_of,
    write,
)

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred


class MessagePage(Struct, frozen=True):
    """A page of a list. Content that is not derived yet is missing from an entry.

    ``total`` counts all matches. ``last_position`` is the newest cursor of the inbox in the same
    snapshot. ``not_searched`` counts further possible matches, whose content is not derived yet.
    """

    entries: tuple[tuple[MessageSummary, Extracted | None], ...]
    total: int
    last_position: Position
    not_searched: int = 0


class NewestMessages(Struct, frozen=True):
    """The newest messages of a filter, newest first: some of them, and the positions of all."""

    messages: tuple[MessageSummary, ...]
    positions: tuple[Position, ...]


class InboxOverview(Struct, frozen=True):
    """An inbox with its newest tags; expired mail is not counted."""

    state: InboxState
    tags: tuple[TagCount, ...]
    tag_total: int


@dataclass(frozen=True, slots=True)
class MessageRow:
    """A stored message, with its content or raw mail if that was prefetched."""

    summary: MessageSummary
    envelope_sender: str
    session: Session
    content: MessageContent | bytes | None = field(default=None, compare=False, repr=False)
    request: str = ""


class Prefetch(Struct, frozen=True):
    """The content to read together with messages: of the first few for which ``wanted`` is true.

    These mails together are smaller than ``max_octets``. Without derived content the raw mail is
    read. ``wanted`` is called in another thread.
    """

    wanted: Callable[[MessageSummary], bool]
    max_octets: int
    max_messages: int = 4
    """Clients wait for one message, or for a few in a burst."""


_INBOX_COLUMNS = """
    inbox.account_id, inbox.mailbox_name, inbox.last_position, inbox.message_count,
    inbox.byte_count, inbox.has_routes, account.max_messages, account.max_bytes,
    account.retention_hours, account.disabled_at
    FROM inbox JOIN account ON account.id = inbox.account_id
"""

_INBOXES = f"""
    SELECT {_INBOX_COLUMNS} WHERE inbox.account_id IN ({{rows}}) ORDER BY inbox.account_id
"""

_MESSAGE_COLUMNS = tuple(name for name in MessageSummary.__struct_fields__ if name != "header")
"""The columns of a message that are fields of its summary, for reading and inserting."""

_message_values = attrgetter(*_MESSAGE_COLUMNS)

ADD_MESSAGES = (
    f"INSERT INTO message ({', '.join(_MESSAGE_COLUMNS)}, recipient_key, tag_key, mod_sequence) "
    "{rows}"
)
"""Inserts the rows of `message_row`."""

HEADER_COLUMNS = columns_of(HeaderSummary, "delivery")

SUMMARY_COLUMNS = f"{columns_of(MessageSummary, 'message', 'header')}, {HEADER_COLUMNS}"

SESSION_COLUMNS = """
    delivery.client_ip, delivery.helo_name, delivery.is_extended,
    delivery.tls_version, delivery.tls_cipher, delivery.user_name
"""

FROM_MESSAGE = "FROM message JOIN delivery ON delivery.id = message.delivery_id"

FROM_CONTENT = f"{FROM_MESSAGE} LEFT JOIN content ON content.delivery_id = message.delivery_id"
"""`FROM_MESSAGE` with the derived content, if any. Both databases read it only for queries that use
its columns."""


def message_row(message: MessageSummary) -> tuple[Value, ...]:
    """Return the row of a message."""
    values: tuple[Value, ...] = _message_values(message)
    marked_at = message.position if message.flags else None
    return (*values, message.recipient.casefold(), fold_tag(message.tag), marked_at)


def summary_of(row: Row, **given: object) -> MessageSummary:
    """Return the summary of a row with `SUMMARY_COLUMNS`; ``given`` are missing fields."""
    return value_of(MessageSummary, row, header=value_of(HeaderSummary, row), **given)


def session_of(row: Row) -> Session:
    """Return the session of a row with `SESSION_COLUMNS`."""
    tls = None if row.tls_version is None else TlsFacts(row.tls_version, row.tls_cipher)
    is_extended = bool(row.is_extended)
    return Session(row.client_ip, row.helo_name, is_extended, tls, user_name=row.user_name)


def read_inboxes(
    transaction: Transaction, accounts: Iterable[AccountId], default_quota: Quota
) -> dict[AccountId, InboxState]:
    """Return the inboxes of accounts; accounts without an inbox are left out."""
    rows = transaction.rows_over(_INBOXES, [(account,) for account in accounts])
    return {row.account_id: inbox_of(row, default_quota) for row in rows}


def read_inbox_named(
    transaction: Transaction, mailbox_name: str, default_quota: Quota
) -> InboxState | None:
    """Return the inbox with a mailbox name (lower case), or `None`."""
    row = transaction.row(
        f"SELECT {_INBOX_COLUMNS} WHERE inbox.mailbox_name = ?",
        (mailbox_name,),
    )
    return None if row is None else inbox_of(row, default_quota)


def read_operator_inbox(transaction: Transaction, default_quota: Quota) -> InboxState | None:
    """Return the operator's inbox, or `None`."""
    row = transaction.row(f"SELECT {_INBOX_COLUMNS} WHERE account.is_operator = 1")
    return None if row is None else inbox_of(row, default_quota)


def inbox_of(row: Row, default_quota: Quota) -> InboxState:
    """Return the state of an inbox from its row."""
    quota = Quota(
        default_quota.max_messages if row.max_messages is None else row.max_messages,
        default_quota.max_bytes if row.max_bytes is None else row.max_bytes,
    )
    return value_of(InboxState, row, quota=quota, is_disabled=row.disabled_at is not None)


def find_locked_inboxes(
    transaction: Transaction, accounts: Iterable[AccountId]
) -> frozenset[AccountId]:
    """Lock inboxes without waiting; return the inboxes that other writers keep locked."""
    given = [(account,) for account in accounts]
    there = transaction.rows_over(_INBOXES, given)
    ours = transaction.rows_over(f"{_INBOXES} FOR NO KEY UPDATE OF inbox SKIP LOCKED", given)
    return frozenset(row.account_id for row in there).difference(row.account_id for row in ours)


def lock_inboxes(transaction: Transaction, accounts: Iterable[AccountId]) -> list[Row]:
    """Lock inboxes until the end of the transaction, in the same order in all writers.

    A position is assigned and committed under this lock, so that no reader sees a position before
    the lower ones.
    """
    return transaction.locked_rows_over(_INBOXES, [(account,) for account in accounts], "inbox")


def next_position(transaction: Transaction, account_id: AccountId) -> Position:
    """Advance an inbox by one position, for a change of its messages. It must be locked."""
    transaction.execute(
        "UPDATE inbox SET last_position = last_position + 1 WHERE account_id = ?", (account_id,)
    )
    ((position,),) = transaction.rows(
        "SELECT last_position FROM inbox WHERE account_id = ?", (account_id,)
    )
    return Position(position)


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

# The rest of a tag has the spelling of its newest message.
_REFRESH_TAG = """
    UPDATE inbox_tag SET (tag, latest_at) = (
        SELECT message.tag, message.received_at FROM message
        WHERE message.account_id = inbox_tag.account_id AND message.tag_key = inbox_tag.tag_key
        ORDER BY message.position DESC LIMIT 1
    ) WHERE (account_id, tag_key) IN ({rows})
"""

_DELIVERIES = "SELECT id FROM delivery WHERE id IN ({rows}) ORDER BY id"

MAIL_HOLDERS = ("message", "deliverability_test", "receiver_report", "inbound_mail")
"""Tables whose rows refer to a mail by ``delivery_id``. It is stored as long as one of them."""

IS_UNREFERENCED = " AND ".join(
    f"NOT EXISTS (SELECT 1 FROM {table} WHERE {table}.delivery_id = delivery.id)"
    for table in MAIL_HOLDERS
)
"""The condition for a ``delivery`` without such a row."""

_DROP_UNSHARED = f"DELETE FROM delivery WHERE id IN ({{rows}}) AND {IS_UNREFERENCED}"


def remove_messages(transaction: Transaction, found: Iterable[Row]) -> int:
    """Delete messages, found by ``id`` and ``account_id``, and data without other references.

    Messages that another daemon has deleted meanwhile are not counted. Return the number of deleted
    messages.
    """
    rows = list(found)
    if not rows:
        return 0
    lock_inboxes(transaction, {row.account_id for row in rows})
    gone = transaction.rows_over(_REMOVE, [(row.id,) for row in rows])
    _shrink_inboxes(transaction, gone, _shrink_tags(transaction, gone))
    delete_unreferenced(transaction, gone)
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
    """Subtract messages from the counters of their tags, and delete empty tags.

    Return the number of deleted tags of each inbox.
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
        # Mostly the oldest messages expire, so the newest one, whose spelling counts, stays.
        if newest[key] >= row.latest_at:
            changed.append(key)
    transaction.execute_over(_DROP_TAG, empty)
    transaction.execute_over(_SHRINK_TAG, left)
    transaction.execute_over(_REFRESH_TAG, changed)
    return Counter(account for account, _ in empty)


def delete_unreferenced(transaction: Transaction, gone: Iterable[Row]) -> None:
    """Delete deliveries that none of `MAIL_HOLDERS` refers to any more.

    :param gone: rows with the ``delivery_id`` that they referred to, or `None`.

    They are locked first: of two writers that delete the last two messages of a delivery, the
    second sees the result of the first.
    """
    ids = [(delivery,) for delivery in {row.delivery_id for row in gone} - {None}]
    transaction.locked_rows_over(_DELIVERIES, ids, "delivery")
    transaction.execute_over(_DROP_UNSHARED, ids)


def hide_messages(
    transaction: Transaction, account_id: AccountId, ids: Sequence[str], now: Instant
) -> int:
    """Let messages expire now, so that the deletion can be undone; return their number."""
    if not ids:
        return 0
    lock_inboxes(transaction, [account_id])
    marks = ", ".join("?" * len(ids))
    return transaction.execute(
        "UPDATE message SET undo_expires_at = expires_at, expires_at = ? "
        f"WHERE account_id = ? AND expires_at > ? AND id IN ({marks})",
        (now, account_id, now, *ids),
    )


EXPIRY_LOCK = 0x6D61_696D
"""Lock for deleting expired mail, which one daemon does at a time."""


def _expired(transaction: Transaction, now: Instant, limit: int) -> list[Row]:
    return transaction.rows(
        "SELECT id, account_id FROM message WHERE expires_at <= ? "
        "AND (undo_expires_at IS NULL OR expires_at <= ?) ORDER BY expires_at LIMIT ?",
        (now, now - UNDO_TIME, limit),
    )


def _expire_around(transaction: Transaction, now: Instant, limit: int) -> int:
    """Delete expired messages, except in inboxes that another writer keeps locked."""
    if not transaction.try_lock(EXPIRY_LOCK):
        return 0
    found = _expired(transaction, now, limit)
    locked = find_locked_inboxes(transaction, {row.account_id for row in found})
    return remove_messages(transaction, [row for row in found if row.account_id not in locked])


class ExpiryStore(Store):
    """Deletion of expired mail and old refusals."""

    @frees_space
    @inbox_write(
        lambda transaction, now, limit: {
            row.account_id for row in _expired(transaction, now, limit)
        },
        _expire_around,
    )
    def expire(self, transaction: Transaction, now: Instant, limit: int) -> int:
        """Delete at most ``limit`` expired messages; return their number."""
        if not transaction.try_lock(EXPIRY_LOCK):
            return 0
        return remove_messages(transaction, _expired(transaction, now, limit))

    @read
    def own_retentions(self, transaction: Transaction) -> dict[AccountId, int]:
        """Return the retention of the accounts that have their own, in hours."""
        rows = transaction.rows(
            "SELECT id, retention_hours FROM account WHERE retention_hours IS NOT NULL"
        )
        return {row.id: row.retention_hours for row in rows}

    @read
    def expiring_after(
        self,
        transaction: Transaction,
        account_id: AccountId | None,
        longest: int,
        limit: int,
        last: MessageId | Position | None = None,
    ) -> tuple[list[tuple[AccountId, MessageId]], MessageId | Position | None]:
        """Return some of the messages that expire later than ``longest`` after their receipt.

        Also return what to pass as ``last`` for the next ones: each message is read once. The
        second value is `None` if there are no more.

        :param account_id: the owner; `None`: all accounts without their own retention.
        :param longest: milliseconds.
        """
        begin: list[Value]
        if account_id is None:
            column, owned, begin = "m.id", "a.retention_hours IS NULL", [last or ""]
        else:
            column, owned, begin = "m.position", "m.account_id = ?", [account_id, last or START]
        rows = transaction.rows(
            f"SELECT m.id, m.account_id, {column} AS place "
            "FROM message m JOIN account a ON a.id = m.account_id "
            f"WHERE {owned} AND {column} > ? "
            "AND m.undo_expires_at IS NULL AND m.expires_at > m.received_at + ? "
            f"ORDER BY {column} LIMIT ?",
            [*begin, longest, limit],
        )
        found = [(row.account_id, row.id) for row in rows]
        return found, rows[-1].place if len(rows) == limit else None

    @frees_space
    @write
    def shorten(
        self, transaction: Transaction, found: Sequence[tuple[AccountId, MessageId]], longest: int
    ) -> None:
        """Let messages expire ``longest`` milliseconds after their receipt."""
        lock_inboxes(transaction, {account_id for account_id, _ in found})
        marks = ", ".join("?" * len(found))
        transaction.execute(
            "UPDATE message SET expires_at = received_at + ? "
            f"WHERE expires_at > received_at + ? AND id IN ({marks})",
            (longest, longest, *(message_id for _, message_id in found)),
        )

    @read
    def final_deletions(self, transaction: Transaction, now: Instant) -> list[AccountId]:
        """Return the accounts with messages whose deletion cannot be undone any more."""
        rows = transaction.rows(
            "SELECT DISTINCT account_id FROM message "
            "WHERE expires_at <= ? AND undo_expires_at IS NOT NULL",
            (now - UNDO_TIME,),
        )
        return [row.account_id for row in rows]

    @frees_space
    @write
    def forget_refusals(self, transaction: Transaction, before: Instant, limit: int) -> int:
        """Delete at least ``limit`` refusals before a time, if there are as many.

        Refusals at the same time as the last one are deleted, too. Return their number.
        """
        if not transaction.try_lock(EXPIRY_LOCK):
            return 0
        sql = delete_first(
            "refusal", "account_id, refused_at", "refused_at < ? ORDER BY refused_at"
        )
        return transaction.execute(sql, (before, limit))

    def reclaim_space(self) -> Deferred[None]:
        """Return freed space to the disk, if the engine can."""
        return self._engine.reclaim_space()
