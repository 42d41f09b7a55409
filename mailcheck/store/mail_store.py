"""The mail store: stores deliveries and returns messages. One method is one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mailcheck.core.accounts import InboxState, Quota
from mailcheck.core.addresses import fold_tag
from mailcheck.core.cursors import Position
from mailcheck.core.faults import asks_for_fault
from mailcheck.core.filters import ANY, MessageFilter
from mailcheck.core.identifiers import AccountId, DeliveryId, MessageId
from mailcheck.core.instants import MINUTE, Instant
from mailcheck.core.messages import UNDO_TIME, Delivery, Refusal
from mailcheck.core.rights import TagLimit
from mailcheck.ports.engine import Engine, Row, Transaction, Value
from mailcheck.store.content_store import read_content
from mailcheck.store.filter_sql import recipient_sql, select_matching
from mailcheck.store.listing import (
    MIN_CACHED_MESSAGES,
    HeaderCache,
    count_unread,
    read_newest,
    read_overview,
    read_page,
)
from mailcheck.store.mail_delivery import DeliverMails
from mailcheck.store.messages import (
    FROM_MESSAGE,
    SESSION_COLUMNS,
    SUMMARY_COLUMNS,
    InboxOverview,
    MessagePage,
    MessageRow,
    NewestMessages,
    Prefetch,
    hide_messages,
    lock_inboxes,
    next_position,
    read_inbox_named,
    read_inboxes,
    read_operator_inbox,
    remove_messages,
    session_of,
    summary_of,
)
from mailcheck.store.transactions import (
    Store,
    frees_space,
    inbox_write,
    read,
    read_number,
    read_values,
    write,
)

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

MOST_IN_QUERY = 10_000
"""Parameters of one statement; SQLite accepts three times as many."""

_ROW_COLUMNS = f"{SUMMARY_COLUMNS}, delivery.envelope_sender, delivery.request, {SESSION_COLUMNS}"


MAX_REFUSALS = 200
"""Maximum stored refusals of an inbox for one minute, the newest ones: strangers cause them."""


def _note_refusal_beside(transaction: Transaction, refusal: Refusal) -> None:
    """Record a refusal for a locked inbox, with the position of its next mail.

    It does not wait for rows of refusals either, so the counter of an existing row is unchanged.
    """
    since = _minute_of(refusal)
    ((all_of_minute, of_tag),) = transaction.rows(
        "SELECT COUNT(*), COUNT(CASE WHEN tag_key = ? THEN 1 END) FROM refusal "
        "WHERE account_id = ? AND refused_at >= ?",
        (fold_tag(refusal.tag), refusal.account_id, since),
    )
    if all_of_minute < MAX_REFUSALS and not (of_tag and asks_for_fault(refusal.tag)):
        _insert_refusal(transaction, refusal, "last_position + 1")


class MailStore(Store):
    """Stored mails, and the messages of an account. ``now`` hides expired messages.

    :param min_cached_messages: see `HeaderCache`.
    """

    def __init__(
        self, engine: Engine, default_quota: Quota, min_cached_messages: int = MIN_CACHED_MESSAGES
    ) -> None:
        super().__init__(engine)
        self.change_quota(default_quota)
        self._headers = HeaderCache(min_cached_messages)

    def change_quota(self, default_quota: Quota) -> None:
        """Set the quota of inboxes without their own."""
        self._quota = default_quota
        self._deliver = DeliverMails(default_quota)

    def free_bytes(self) -> int | None:
        """Return the free bytes of the disk, or `None` if the engine cannot determine it."""
        return self._engine.free_bytes()

    @read
    def find_inbox(self, transaction: Transaction, mailbox_name: str) -> InboxState | None:
        """Return an inbox by its mailbox name (lower case), or `None`."""
        return read_inbox_named(transaction, mailbox_name, self._quota)

    @read
    def find_account_inbox(
        self, transaction: Transaction, account_id: AccountId
    ) -> InboxState | None:
        """Return the inbox of an account, or `None`."""
        return read_inboxes(transaction, [account_id], self._quota).get(account_id)

    @read
    def find_operator_inbox(self, transaction: Transaction) -> InboxState | None:
        """Return the inbox that receives postmaster's mail, or `None`."""
        return read_operator_inbox(transaction, self._quota)

    def deliver(self, delivery: Delivery) -> Deferred[tuple[Position, ...]]:
        """Store a mail; fires when it is on disk, with the position for each recipient.

        :raises RecipientUnknown: an inbox has been deleted; the mail was not stored.
        :raises InboxFull: an inbox has no room; the mail was not stored.
        """
        return self._engine.write(self._deliver, delivery)

    @read
    def find_message_of_delivery(
        self, transaction: Transaction, account_id: AccountId, delivery_id: DeliveryId
    ) -> MessageId | None:
        """Return the first message of a delivery in an inbox, or `None`."""
        row = transaction.row(
            "SELECT id FROM message WHERE delivery_id = ? AND account_id = ? "
            "ORDER BY position LIMIT 1",
            (delivery_id, account_id),
        )
        return None if row is None else MessageId(str(row[0]))

    @inbox_write(lambda _, refusal: (refusal.account_id,), _note_refusal_beside)
    def note_refusal(self, transaction: Transaction, refusal: Refusal) -> None:
        """Record a refusal for waiting clients; it takes the next position of the inbox."""
        transaction.execute(
            "UPDATE inbox SET last_position = last_position + 1 WHERE account_id = ?",
            (refusal.account_id,),
        )
        if asks_for_fault(refusal.tag) and _count_refusal(transaction, refusal):
            return
        _insert_refusal(transaction, refusal, "last_position")
        transaction.execute(
            "DELETE FROM refusal WHERE account_id = ? AND refused_at >= ? AND position <= ("
            "SELECT position FROM refusal WHERE account_id = ? AND refused_at >= ? "
            "ORDER BY position DESC LIMIT 1 OFFSET ?)",
            (*(refusal.account_id, _minute_of(refusal)) * 2, MAX_REFUSALS),
        )

    @read
    def oldest_matches(
        self,
        transaction: Transaction,
        account_id: AccountId,
        wanted: MessageFilter,
        now: Instant,
        limit: int,
        prefetch: Prefetch | None = None,
    ) -> tuple[tuple[MessageRow, ...], Position]:
        """Return the oldest matching messages, and the newest position of the inbox.

        Messages without derived content are included, since they may match.
        """
        sql = "SELECT last_position FROM inbox WHERE account_id = ?"
        last_position = Position(read_number(transaction, sql, (account_id,)))
        if wanted.start >= last_position:
            return (), last_position
        rows = select_matching(
            transaction,
            _ROW_COLUMNS,
            (account_id, wanted, now),
            "ORDER BY message.position LIMIT ?",
            (limit,),
            or_underived=True,
        )
        messages = tuple(map(_message_of, rows))
        if prefetch is not None:
            messages = with_contents(transaction, messages, prefetch)
        return messages, last_position

    @read
    def newest_positions(
        self, transaction: Transaction, account_ids: Sequence[AccountId]
    ) -> dict[AccountId, Position]:
        """Return the newest position of each inbox."""
        found: dict[AccountId, Position] = {}
        for some in (
            account_ids[first : first + MOST_IN_QUERY]
            for first in range(0, len(account_ids), MOST_IN_QUERY)
        ):
            marks = ", ".join("?" * len(some))
            rows = transaction.rows(
                f"SELECT account_id, last_position FROM inbox WHERE account_id IN ({marks})",
                some,
            )
            found.update(rows)
        return found

    @read
    def page(
        self,
        transaction: Transaction,
        account_id: AccountId,
        wanted: MessageFilter,
        now: Instant,
        limit: int,
        offset: int,
    ) -> MessagePage:
        """Return a page of matching messages, newest first."""
        return read_page(
            transaction, account_id, wanted, now, limit, offset=offset, headers=self._headers
        )

    @read
    def newest(
        self,
        transaction: Transaction,
        account_id: AccountId,
        wanted: MessageFilter,
        now: Instant,
        limit: int,
        scan_limit: int,
    ) -> NewestMessages:
        """Return the messages since ``wanted.since`` among the newest that match otherwise.

        At most ``scan_limit`` messages are read, and ``limit`` of them are returned whole.
        ``wanted`` is a filter by recipient and time, without conditions on content.
        """
        return read_newest(transaction, account_id, wanted, now, limit, scan_limit=scan_limit)

    @read
    def overview(
        self,
        transaction: Transaction,
        account_id: AccountId,
        now: Instant,
        tags: int,
        allowed: TagLimit | None = None,
    ) -> InboxOverview:
        """Return the overview of an inbox, with at most ``tags`` of its tags, newest first.

        :param allowed: the tags to which the overview is limited.
        """
        state = read_inboxes(transaction, [account_id], self._quota)[account_id]
        return read_overview(transaction, state, now, tags, allowed)

    @read
    def find_message(
        self, transaction: Transaction, account_id: AccountId, message_id: MessageId, now: Instant
    ) -> MessageRow | None:
        """Return a message of the account, or `None`."""
        condition = "message.id = ? AND message.account_id = ? AND message.expires_at > ?"
        return _read_message(transaction, condition, (message_id, account_id, now))

    @read
    def subjects(
        self,
        transaction: Transaction,
        account_id: AccountId,
        message_ids: Sequence[MessageId],
        now: Instant,
    ) -> dict[MessageId, str]:
        """Return the subjects of messages of the account; those that are gone are left out."""
        if not message_ids:
            return {}
        marks = ", ".join("?" * len(message_ids))
        return dict(
            transaction.rows(
                f"SELECT message.id, delivery.subject {FROM_MESSAGE} WHERE message.account_id = ? "
                f"AND message.expires_at > ? AND message.id IN ({marks})",
                (account_id, now, *message_ids),
            )
        )

    @read
    def find_delivered(
        self, transaction: Transaction, account_id: AccountId, delivery_id: str, now: Instant
    ) -> MessageRow | None:
        """Return the account's first message of a delivery, or `None`."""
        condition = (
            "message.delivery_id = ? AND message.account_id = ? AND message.expires_at > ? "
            "ORDER BY message.position LIMIT 1"
        )
        return _read_message(transaction, condition, (delivery_id, account_id, now))

    @read
    def find_any_message(
        self, transaction: Transaction, message_id: MessageId, now: Instant
    ) -> MessageRow | None:
        """Return a message of any account: for share links, which prove access themselves."""
        condition = "message.id = ? AND message.expires_at > ?"
        return _read_message(transaction, condition, (message_id, now))

    @write
    def replace_share_token(
        self,
        transaction: Transaction,
        account_id: AccountId,
        message_id: MessageId,
        token: str,
        now: Instant,
    ) -> bool:
        """Replace the share token of a message; return false if it does not exist."""
        return bool(
            transaction.execute(
                "UPDATE message SET share_token = ? "
                "WHERE id = ? AND account_id = ? AND expires_at > ?",
                (token, message_id, account_id, now),
            )
        )

    @inbox_write(lambda _, account_id, *others: (account_id,))
    def mark_read(
        self, transaction: Transaction, account_id: AccountId, message_ids: Sequence[MessageId]
    ) -> None:
        """Mark messages as read; ignore those that do not exist.

        The change takes the next position of the inbox, so that mail programs find it.
        """
        lock_inboxes(transaction, [account_id])
        marks = ", ".join("?" * len(message_ids))
        which = f"account_id = ? AND is_read = 0 AND id IN ({marks})"
        given = account_id, *message_ids
        if transaction.row(f"SELECT 1 FROM message WHERE {which} LIMIT 1", given):
            transaction.execute(
                f"UPDATE message SET is_read = 1, mod_sequence = ? WHERE {which}",
                (next_position(transaction, account_id), *given),
            )

    @inbox_write(lambda _, account_id, *others: (account_id,))
    def mark_matches(
        self,
        transaction: Transaction,
        account_id: AccountId,
        wanted: MessageFilter,
        now: Instant,
        limit: int,
        is_read: int,
    ) -> int:
        """Mark at most ``limit`` matching messages as read (1) or unread (0).

        Return the number of messages that were not marked so before.
        """
        lock_inboxes(transaction, [account_id])
        of, changed = (account_id, wanted, now), "AND message.is_read <> ? LIMIT ?"
        found = select_matching(transaction, "message.position", of, changed, (is_read, limit))
        if not found:
            return 0
        marks = ", ".join("?" * len(found))
        return transaction.execute(
            "UPDATE message SET is_read = ?, mod_sequence = ? "
            f"WHERE account_id = ? AND position IN ({marks})",
            [
                is_read,
                next_position(transaction, account_id),
                account_id,
                *(row.position for row in found),
            ],
        )

    @read
    def count_unread(
        self,
        transaction: Transaction,
        account_id: AccountId,
        wanted: MessageFilter,
        now: Instant,
        scan_limit: int,
    ) -> int:
        """Count the unread messages among the ``scan_limit`` newest matching ones.

        ``wanted`` is a filter by recipient and time, without conditions on content.
        """
        return count_unread(transaction, account_id, wanted, now, scan_limit)

    @frees_space
    @inbox_write(lambda _, account_id, *others: (account_id,))
    def delete_message(
        self, transaction: Transaction, account_id: AccountId, message_id: MessageId, now: Instant
    ) -> bool:
        """Delete a message; return false if there is none."""
        found = transaction.rows(
            "SELECT id, account_id FROM message WHERE account_id = ? AND id = ? AND expires_at > ?",
            (account_id, message_id, now),
        )
        return remove_messages(transaction, found) == 1

    @frees_space
    @inbox_write(lambda _, account_id, *others: (account_id,))
    def delete_matches(
        self,
        transaction: Transaction,
        account_id: AccountId,
        wanted: MessageFilter,
        now: Instant,
        limit: int,
    ) -> int:
        """Delete at most ``limit`` matching messages; return their number."""
        return remove_messages(transaction, _matching(transaction, account_id, wanted, now, limit))

    @frees_space
    @inbox_write(lambda _, account_id, *others: (account_id,))
    def hide(
        self,
        transaction: Transaction,
        account_id: AccountId,
        message_ids: Sequence[MessageId],
        now: Instant,
    ) -> int:
        """Delete messages so that it can be undone; return their number.

        They expire now. The deletion of expired mail leaves them until `UNDO_TIME` has passed.
        """
        return hide_messages(transaction, account_id, message_ids, now)

    @frees_space
    @inbox_write(lambda _, account_id, *others: (account_id,))
    def hide_matches(
        self,
        transaction: Transaction,
        account_id: AccountId,
        wanted: MessageFilter,
        now: Instant,
        limit: int,
    ) -> int:
        """Delete at most ``limit`` matching messages as `hide` does; return their number."""
        found = _matching(transaction, account_id, wanted, now, limit)
        return hide_messages(transaction, account_id, [row.id for row in found], now)

    @inbox_write(lambda _, account_id, *others: (account_id,))
    def restore(
        self, transaction: Transaction, account_id: AccountId, hidden_at: Instant, now: Instant
    ) -> int:
        """Undo the deletions at a time; return the number of messages that are back.

        Nothing is restored when `UNDO_TIME` has passed.
        """
        lock_inboxes(transaction, [account_id])
        return transaction.execute(
            "UPDATE message SET expires_at = undo_expires_at, undo_expires_at = NULL "
            "WHERE account_id = ? AND expires_at = ? AND expires_at > ? "
            "AND undo_expires_at IS NOT NULL",
            (account_id, hidden_at, now - UNDO_TIME),
        )

    @read
    def recent_refusals(
        self,
        transaction: Transaction,
        account_id: AccountId,
        since: Instant,
        limit: int,
        wanted: MessageFilter = ANY,
    ) -> list[Refusal]:
        """Return the newest refusals since a time, newest first.

        Only refusals of mail to the recipient or tag of the filter are returned, and only those
        between its positions.
        """
        condition = "account_id = ? AND refused_at >= ? AND position > ?"
        values: list[Value] = [account_id, since, wanted.start]
        if wanted.up_to is not None:
            condition += " AND position <= ?"
            values.append(wanted.up_to)
        for part, some in recipient_sql(transaction, wanted, "refusal"):
            condition += f" AND {part}"
            values += some
        return read_values(
            transaction,
            Refusal,
            "SELECT account_id, recipient, envelope_sender, client_ip, reason, refused_at, "
            "tag, position, amount AS count FROM refusal "
            f"WHERE {condition} ORDER BY position DESC LIMIT ?",
            [*values, limit],
        )


def _read_message(
    transaction: Transaction, condition: str, values: Sequence[str | int]
) -> MessageRow | None:
    row = transaction.row(f"SELECT {_ROW_COLUMNS} {FROM_MESSAGE} WHERE {condition}", values)
    return None if row is None else _message_of(row)


def read_rows(
    transaction: Transaction, account_id: AccountId, positions: Sequence[Position]
) -> tuple[MessageRow, ...]:
    """Return the messages at these positions, newest first."""
    if not positions:
        return ()
    marks = ", ".join("?" * len(positions))
    rows = transaction.rows(
        f"SELECT {_ROW_COLUMNS} {FROM_MESSAGE} WHERE message.account_id = ? "
        f"AND message.position IN ({marks}) ORDER BY message.position DESC",
        [account_id, *positions],
    )
    return tuple(map(_message_of, rows))


def with_contents(
    transaction: Transaction, messages: Sequence[MessageRow], prefetch: Prefetch
) -> tuple[MessageRow, ...]:
    """Add the content, or the raw mail, of the messages that are to be read along."""
    left, room = prefetch.max_messages, prefetch.max_octets
    found = []
    for message in messages:
        size = message.summary.size
        if left and size < room and prefetch.wanted(message.summary):
            left -= 1
            room -= size
            content = read_content(transaction, message.summary.delivery_id, prefetch.max_octets)
            message = replace(message, content=content)
        found.append(message)
    return tuple(found)


def _message_of(row: Row) -> MessageRow:
    return MessageRow(summary_of(row), row.envelope_sender, session_of(row), request=row.request)


_COUNT_REFUSAL = """
    UPDATE refusal SET amount = amount + 1, {columns},
    position = (SELECT last_position FROM inbox WHERE inbox.account_id = refusal.account_id)
    WHERE account_id = ? AND refused_at >= ? AND tag_key = ?
"""


def _minute_of(refusal: Refusal) -> Instant:
    """Return the start of the minute of a refusal."""
    return Instant(refusal.refused_at - refusal.refused_at % MINUTE)


def _count_refusal(transaction: Transaction, refusal: Refusal) -> bool:
    """Add a refusal to the row of its tag and minute; return false if there is none yet."""
    columns = _columns_of(refusal)
    sql = _COUNT_REFUSAL.format(columns=", ".join(f"{column} = ?" for column in columns))
    row = (refusal.account_id, _minute_of(refusal), columns["tag_key"])
    return bool(transaction.execute(sql, (*columns.values(), *row)))


def _insert_refusal(transaction: Transaction, refusal: Refusal, position: str) -> None:
    columns = _columns_of(refusal)
    marks = ", ".join("?" * len(columns))
    transaction.execute(
        f"INSERT INTO refusal (account_id, position, {', '.join(columns)}) "
        f"SELECT account_id, {position}, {marks} FROM inbox WHERE account_id = ?",
        (*columns.values(), refusal.account_id),
    )


def _columns_of(refusal: Refusal) -> dict[str, Value]:
    return {
        "refused_at": refusal.refused_at,
        "recipient": refusal.recipient,
        "recipient_key": refusal.recipient.casefold(),
        "tag": refusal.tag,
        "tag_key": fold_tag(refusal.tag),
        "envelope_sender": refusal.envelope_sender,
        "client_ip": refusal.client_ip,
        "reason": refusal.reason,
    }


def _matching(
    transaction: Transaction,
    account_id: AccountId,
    wanted: MessageFilter,
    now: Instant,
    limit: int,
) -> Sequence[Row]:
    """Return id and account of at most ``limit`` matching messages."""
    columns, of = "message.id, message.account_id", (account_id, wanted, now)
    return select_matching(transaction, columns, of, "LIMIT ?", (limit,))
