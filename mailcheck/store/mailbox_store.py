"""The store of mailboxes: positions, flags and mod-sequences of an inbox's messages.

A mailbox is the messages of an inbox that a `MessageFilter` matches. A position of the inbox is
the UID of a message, and also the mod-sequence of a change: both increase with the same counter.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from enum import Enum
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.core.addresses import fold_tag
from mailcheck.core.cursors import START, Position
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import AccountId, DeliveryId, MessageId
from mailcheck.core.instants import SECOND, Instant
from mailcheck.core.messages import MessageSummary, keywords_in
from mailcheck.ports.engine import Row, Transaction, Value
from mailcheck.store.filter_sql import PRESENT, UNDERIVED, Matching, allowed_sql, select_matching
from mailcheck.store.messages import (
    SUMMARY_COLUMNS,
    lock_inboxes,
    next_position,
    remove_messages,
    summary_of,
)
from mailcheck.store.transactions import Store, frees_space, inbox_write, read, value_of, write

SEEN, DELETED = "\\Seen", "\\Deleted"

STRUCTURE_DERIVATION = 2
"""Version of the rules that derive a `MailStructure`. Increase it when their results change."""

MAX_MARKED = 500
"""Maximum number of messages that one transaction marks or deletes, so that mail waits briefly."""


MAX_FLAGS = 100
"""Maximum number of flags and keywords of a message."""

MAX_KEYWORDS = 1_000
"""Maximum number of different flags of messages that are listed for an inbox."""


class Marks(Struct, frozen=True):
    """The marks of a message. ``flags`` are separated by spaces, without the read mark.

    ``mod_sequence`` is the position of their last change, or that of the message.
    """

    position: Position
    is_read: bool
    flags: str
    mod_sequence: int

    @property
    def all_flags(self) -> frozenset[str]:
        """The flags, and the read mark as a flag."""
        return frozenset((*self.flags.split(), SEEN) if self.is_read else self.flags.split())


class MailEntry(Struct, frozen=True):
    """A message of a mailbox; its position is its UID.

    ``added_octets``: see `count_added_octets`.
    """

    marks: Marks
    id: MessageId
    account_id: AccountId
    delivery_id: DeliveryId
    size: int
    received_at: Instant
    added_octets: int = 0

    @property
    def position(self) -> Position:
        """The position of the message."""
        return self.marks.position

    def with_marks(self, marks: Marks) -> MailEntry:
        """Return the message with other marks."""
        return replace(self, marks=marks)


class MailStructure(Struct, frozen=True):
    """The envelope and the structure of a mail, as IMAP writes them (RFC 9051 7.5.2).

    ``sent_at`` is the time of the Date field without its offset; `None` if there is none.
    """

    envelope: bytes
    structure: bytes
    sent_at: Instant | None


class MailboxState(Struct, frozen=True):
    """A mailbox: the positions of its messages in order, and the newest position of the inbox.

    ``uid_validity`` is the same as long as the account exists.
    """

    positions: array[int]
    last_position: Position
    uid_validity: int


class MailboxStatus(Struct, frozen=True):
    """The counts of a mailbox; ``byte_count`` is the size of all its messages."""

    message_count: int
    unseen_count: int
    deleted_count: int
    byte_count: int
    last_position: Position
    uid_validity: int


class MailboxChanges(Struct, frozen=True):
    """The changes of a mailbox after a position.

    ``arrived`` are the positions of new messages, ``marked`` the new marks of earlier ones.
    ``message_count`` counts all messages, so that a reader notices deleted ones.
    """

    arrived: tuple[Position, ...]
    marked: tuple[Marks, ...]
    message_count: int
    last_position: Position


class Marking(Enum):
    """The effect of a change on the flags that it names."""

    ADD = "+"
    REMOVE = "-"
    REPLACE = ""
    REPLACE_KEYWORDS = "keywords"


class MarkResult(Struct, frozen=True):
    """The marks after a change, and the messages that were changed since a given position.

    ``has_changed``: whether any message has other marks than before.
    """

    marked: tuple[Marks, ...]
    modified: tuple[Position, ...]
    has_changed: bool = False


_select = partial(select_matching, with_hidden=True)

_IN_ORDER = "ORDER BY message.position"

_COUNTS = """
    COUNT(*) AS message_count, COUNT(CASE WHEN message.is_read = 0 THEN 1 END) AS unseen_count,
    CAST(COALESCE(SUM(message.size), 0) AS BIGINT) AS byte_count
"""

_MARK_COLUMNS = (
    "message.position, message.is_read, message.flags, "
    "COALESCE(message.mod_sequence, message.position) AS mod_sequence"
)
_ENTRY_COLUMNS = (
    f"{_MARK_COLUMNS}, message.id, message.account_id, message.delivery_id, message.size, "
    "message.received_at, message.added_octets"
)


class MailboxStore(Store):
    """The mailboxes of accounts. ``now`` hides expired messages.

    A message whose deletion can be undone stays visible until it is removed. A mailbox must not
    have a UID again that was expunged (RFC 9051 2.3.1.1).
    """

    @read
    def state(
        self, transaction: Transaction, account_id: AccountId, wanted: MessageFilter, now: Instant
    ) -> MailboxState:
        """Return the messages of a mailbox."""
        last_position, uid_validity = _inbox(transaction, account_id)
        rows = _select(transaction, "message.position", (account_id, wanted, now), _IN_ORDER)
        return MailboxState(array("I", [row[0] for row in rows]), last_position, uid_validity)

    @read
    def status(
        self, transaction: Transaction, account_id: AccountId, wanted: MessageFilter, now: Instant
    ) -> MailboxStatus:
        """Return the counts of a mailbox."""
        last_position, uid_validity = _inbox(transaction, account_id)
        mailbox = (account_id, wanted, now)
        (row,) = _select(transaction, _COUNTS, mailbox)
        deleted = len(_flagged(transaction, mailbox, DELETED))
        return value_of(
            MailboxStatus,
            row,
            deleted_count=deleted,
            last_position=last_position,
            uid_validity=uid_validity,
        )

    @read
    def changes(
        self,
        transaction: Transaction,
        account_id: AccountId,
        wanted: MessageFilter,
        now: Instant,
        after: Position,
    ) -> MailboxChanges:
        """Return what has changed in a mailbox after a position of its inbox."""
        last_position, _ = _inbox(transaction, account_id)
        mailbox = (account_id, wanted, now)
        ((count,),) = _select(transaction, "COUNT(*)", mailbox)
        if last_position == after:
            return MailboxChanges((), (), count, last_position)
        newer = f"AND message.position > ? {_IN_ORDER}"
        arrived = _select(transaction, "message.position", mailbox, newer, (after,))
        since = f"AND message.mod_sequence > ? AND message.position <= ? {_IN_ORDER}"
        marked = _select(transaction, _MARK_COLUMNS, mailbox, since, (after, after))
        return MailboxChanges(
            tuple(row.position for row in arrived),
            tuple(map(_marks_of, marked)),
            count,
            last_position,
        )

    @read
    def entries(
        self,
        transaction: Transaction,
        account_id: AccountId,
        positions: Sequence[Position],
        now: Instant,
    ) -> list[MailEntry]:
        """Return the messages at these positions, in order; deleted ones are left out."""
        return [_entry_of(row) for row in _at(transaction, account_id, positions, now)]

    @read
    def structured_entries(
        self,
        transaction: Transaction,
        account_id: AccountId,
        positions: Sequence[Position],
        now: Instant,
    ) -> list[tuple[MailEntry, MailStructure | None]]:
        """Return the messages at these positions, with their structure if it is stored."""
        rows = _at(
            transaction,
            account_id,
            positions,
            now,
            ", mail_structure.envelope, mail_structure.structure, mail_structure.sent_at",
            join="LEFT JOIN mail_structure ON mail_structure.delivery_id = message.delivery_id "
            f"AND mail_structure.derivation = {STRUCTURE_DERIVATION}",
        )
        return [(_entry_of(row), _structure_of(row)) for row in rows]

    @read
    def marks(
        self,
        transaction: Transaction,
        account_id: AccountId,
        wanted: MessageFilter,
        now: Instant,
    ) -> list[Marks]:
        """Return the marks of all messages of a mailbox, in order."""
        rows = _select(transaction, _MARK_COLUMNS, (account_id, wanted, now), _IN_ORDER)
        return [_marks_of(row) for row in rows]

    @read
    def first_unread(
        self, transaction: Transaction, account_id: AccountId, wanted: MessageFilter, now: Instant
    ) -> Position | None:
        """Return the first unread message of a mailbox, or `None`."""
        first = f"AND message.is_read = 0 {_IN_ORDER} LIMIT 1"
        rows = _select(transaction, "message.position", (account_id, wanted, now), first)
        return rows[0].position if rows else None

    @read
    def matches(
        self, transaction: Transaction, account_id: AccountId, wanted: MessageFilter, now: Instant
    ) -> tuple[frozenset[Position], tuple[MessageSummary, ...]]:
        """Return the positions of matching messages, and possible matches without content."""
        rows = _select(
            transaction,
            f"{SUMMARY_COLUMNS}, CASE WHEN {UNDERIVED} THEN 1 ELSE 0 END AS is_open",
            (account_id, wanted, now),
            or_underived=True,
        )
        is_open = wanted.asks_content
        return (
            frozenset(row.position for row in rows if not (is_open and row.is_open)),
            tuple(summary_of(row) for row in rows if is_open and row.is_open),
        )

    @read
    def uid_validity(self, transaction: Transaction, account_id: AccountId) -> int:
        """Return the UIDVALIDITY of all mailboxes of an inbox."""
        return _inbox(transaction, account_id)[1]

    @read
    def keywords(self, transaction: Transaction, account_id: AccountId) -> frozenset[str]:
        """Return the flags that messages of an inbox have, without the read mark.

        At most `MAX_KEYWORDS` are returned, and one spelling of each.
        """
        rows = transaction.rows(
            "SELECT DISTINCT flags FROM message "
            "WHERE account_id = ? AND mod_sequence IS NOT NULL AND flags <> '' LIMIT ?",
            (account_id, MAX_KEYWORDS),
        )
        found = {flag.lower(): flag for row in rows for flag in row.flags.split()}
        return frozenset(sorted(found.values())[:MAX_KEYWORDS])

    @read
    def flagged(
        self,
        transaction: Transaction,
        account_id: AccountId,
        wanted: MessageFilter,
        now: Instant,
        flag: str,
    ) -> list[Position]:
        """Return the messages of a mailbox with a flag other than the read mark, in order."""
        return _flagged(transaction, (account_id, wanted, now), flag)

    @read
    def has_tag(self, transaction: Transaction, account_id: AccountId, tag: str) -> bool:
        """Return whether any message of an inbox has a tag."""
        found = transaction.row(
            "SELECT 1 FROM inbox_tag WHERE account_id = ? AND tag_key = ?",
            (account_id, fold_tag(tag)),
        )
        return found is not None

    @read
    def tags(
        self, transaction: Transaction, account_id: AccountId, allowed: MessageFilter
    ) -> list[str]:
        """Return the tags of an inbox that the filter allows, in order."""
        parts = allowed_sql(allowed.allowed, "inbox_tag")
        condition = "".join(f" AND {part}" for part, _ in parts)
        values = [value for _, some in parts for value in some]
        rows = transaction.rows(
            f"SELECT tag FROM inbox_tag WHERE account_id = ? AND tag_key <> ''{condition} "
            "ORDER BY tag_key",
            [account_id, *values],
        )
        return [row.tag for row in rows]

    @inbox_write(lambda _, account_id, *others: (account_id,))
    def mark(
        self,
        transaction: Transaction,
        account_id: AccountId,
        positions: Sequence[Position],
        marking: Marking,
        flags: frozenset[str],
        unchanged_since: int | None,
        now: Instant,
    ) -> MarkResult:
        """Change the flags of at most `MAX_MARKED` messages.

        :param unchanged_since: messages with a larger mod-sequence are not changed
            (RFC 7162 3.1.3).
        :raises InvalidParameter: a message would have more than `MAX_FLAGS` flags.
        """
        lock_inboxes(transaction, [account_id])
        found = [_marks_of(row) for row in _at(transaction, account_id, positions, now)]
        if unchanged_since is not None:
            modified = tuple(
                marks.position for marks in found if marks.mod_sequence > unchanged_since
            )
            found = [marks for marks in found if marks.mod_sequence <= unchanged_since]
        else:
            modified = ()
        changes = [
            (marks, after)
            for marks in found
            if (after := _after(marks.all_flags, marking, flags)) != marks.all_flags
        ]
        if any(len(after) > MAX_FLAGS for _, after in changes):
            raise InvalidParameter("flags", f"a message can have at most {MAX_FLAGS} flags")
        if not changes:
            return MarkResult(tuple(found), modified)
        at = next_position(transaction, account_id)
        marked = {marks.position: _marked(marks, after, at) for marks, after in changes}
        transaction.execute_many(
            "UPDATE message SET is_read = ?, flags = ?, mod_sequence = ? "
            "WHERE account_id = ? AND position = ?",
            [
                (int(marks.is_read), marks.flags, at, account_id, marks.position)
                for marks in marked.values()
            ],
        )
        return MarkResult(
            tuple(marked.get(marks.position, marks) for marks in found), modified, has_changed=True
        )

    @frees_space
    @inbox_write(lambda _, account_id, *others: (account_id,))
    def remove(
        self,
        transaction: Transaction,
        account_id: AccountId,
        positions: Sequence[Position],
        now: Instant,
    ) -> int:
        """Delete the messages at these positions; return the number of deleted messages."""
        return remove_messages(transaction, _at(transaction, account_id, positions, now))

    @write
    def save_structures(
        self, transaction: Transaction, structures: Sequence[tuple[DeliveryId, MailStructure]]
    ) -> None:
        """Store structures, except for deliveries that have been deleted."""
        transaction.execute_many(
            "INSERT INTO mail_structure (delivery_id, derivation, sent_at, envelope, structure) "
            f"SELECT ?, {STRUCTURE_DERIVATION}, ?, ?, ? "
            "WHERE EXISTS (SELECT 1 FROM delivery WHERE id = ?) "
            "ON CONFLICT (delivery_id) DO UPDATE SET derivation = excluded.derivation, "
            "sent_at = excluded.sent_at, envelope = excluded.envelope, "
            "structure = excluded.structure",
            [
                (delivery_id, known.sent_at, known.envelope, known.structure, delivery_id)
                for delivery_id, known in structures
            ],
        )

    @read
    def octets(
        self, transaction: Transaction, delivery_id: DeliveryId, start: int, count: int
    ) -> bytes | None:
        """Return a part of the bytes of a delivery; ``start`` is counted from 0."""
        row = transaction.row(
            "SELECT substr(raw_message, ?, ?) AS part FROM delivery WHERE id = ?",
            (start + 1, count, delivery_id),
        )
        return None if row is None else _octets_of(row)

    @read
    def beginnings(
        self, transaction: Transaction, delivery_ids: Sequence[DeliveryId], count: int
    ) -> dict[DeliveryId, bytes]:
        """Return the first ``count`` octets of deliveries."""
        marks = ", ".join("?" * len(delivery_ids))
        rows = transaction.rows(
            f"SELECT id, substr(raw_message, 1, ?) AS part FROM delivery WHERE id IN ({marks})",
            [count, *delivery_ids],
        )
        return {row.id: _octets_of(row) for row in rows}


def _octets_of(row: Row) -> bytes:
    # SQLite returns NULL for a part of an empty value.
    return b"" if row.part is None else bytes(row.part)


def _inbox(transaction: Transaction, account_id: AccountId) -> tuple[Position, int]:
    row = transaction.row(
        "SELECT inbox.last_position, account.created_at FROM inbox "
        "JOIN account ON account.id = inbox.account_id WHERE inbox.account_id = ?",
        (account_id,),
    )
    if row is None:
        return START, 1
    # 32 bits that no earlier account with this id had: its creation (RFC 9051 2.3.1.1).
    return row.last_position, max(1, row.created_at // SECOND % 2**32)


def _at(
    transaction: Transaction,
    account_id: AccountId,
    positions: Sequence[Position],
    now: Instant,
    columns: str = "",
    join: str = "",
) -> list[Row]:
    if not positions:
        return []
    marks = ", ".join("?" * len(positions))
    values: list[Value] = [account_id, now, *positions]
    return transaction.rows(
        f"SELECT {_ENTRY_COLUMNS}{columns} FROM message {join} "
        f"WHERE message.account_id = ? AND {PRESENT} "
        f"AND message.position IN ({marks}) ORDER BY message.position",
        values,
    )


def _flagged(transaction: Transaction, mailbox: Matching, flag: str) -> list[Position]:
    marked = f"AND message.mod_sequence IS NOT NULL AND message.flags <> '' {_IN_ORDER}"
    rows = _select(transaction, "message.position, message.flags", mailbox, marked)
    return [row.position for row in rows if flag in row.flags.split()]


def _marks_of(row: Row) -> Marks:
    # Not `value_of`: thousands of rows are read for one command.
    return Marks(row.position, bool(row.is_read), row.flags, row.mod_sequence)


def _entry_of(row: Row) -> MailEntry:
    return MailEntry(
        _marks_of(row),
        row.id,
        row.account_id,
        row.delivery_id,
        row.size,
        received_at=row.received_at,
        added_octets=row.added_octets,
    )


def _structure_of(row: Row) -> MailStructure | None:
    if row.envelope is None:
        return None
    return MailStructure(row.envelope, row.structure, row.sent_at)


def _after(before: frozenset[str], marking: Marking, flags: frozenset[str]) -> frozenset[str]:
    """Return the flags of a message after a change.

    Flags in another case are the same (RFC 9051 9). The message keeps its spelling.
    """
    if marking is Marking.REPLACE_KEYWORDS:
        return before.difference(keywords_in(" ".join(before))) | flags
    old = {name.lower(): name for name in before}
    named = {flag.lower(): old.get(flag.lower(), flag) for flag in sorted(flags)}
    if marking is Marking.REMOVE:
        return frozenset(value for key, value in old.items() if key not in named)
    return frozenset(named.values() if marking is Marking.REPLACE else (old | named).values())


def _marked(before: Marks, flags: frozenset[str], at: Position) -> Marks:
    return Marks(before.position, SEEN in flags, " ".join(sorted(flags - {SEEN})), at)
