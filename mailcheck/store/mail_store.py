"""The mail store: deliveries in, messages out. One method is one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mailcheck.core.accounts import InboxState, Quota
from mailcheck.core.addresses import fold_tag
from mailcheck.core.cursors import START, Position
from mailcheck.core.faults import asks_for_fault
from mailcheck.core.filters import ANY, MessageFilter
from mailcheck.core.identifiers import AccountId, MessageId
from mailcheck.core.instants import MINUTE, Instant
from mailcheck.core.messages import Delivery, Refusal
from mailcheck.store.content_store import read_content
from mailcheck.store.delivering import DeliverMails
from mailcheck.store.engine import (
    Engine,
    Row,
    Transaction,
    Value,
    for_each,
    for_each_in,
    makes_room,
    value_of,
)
from mailcheck.store.filter_sql import address_parts, filter_sql
from mailcheck.store.inbox_rows import (
    FROM_CONTENT,
    FROM_MESSAGE,
    SESSION_COLUMNS,
    SUMMARY_COLUMNS,
    lock_inboxes,
    read_inbox_named,
    read_inboxes,
    read_operator_inbox,
    remove_messages,
    session_of,
    summary_of,
)
from mailcheck.store.listing import (
    WORTH_HOLDING,
    HeldHeaders,
    count_unread,
    read_newest,
    read_overview,
    read_page,
)
from mailcheck.store.messages import (
    InboxOverview,
    MessagePage,
    MessageRow,
    NewestMessages,
    ReadAlong,
)

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

MOST_IN_QUERY = 10_000
"""Parameters of one statement; SQLite takes three times as many."""

_ROW_COLUMNS = f"{SUMMARY_COLUMNS}, delivery.envelope_sender, {SESSION_COLUMNS}"


class MailStore:
    """Stored mails, and the messages of one account. ``now`` hides what has expired.

    :param worth_holding: see `HeldHeaders`.
    """

    def __init__(
        self, engine: Engine, default_quota: Quota, worth_holding: int = WORTH_HOLDING
    ) -> None:
        self._engine = engine
        self._quota = default_quota
        self._deliver = DeliverMails(default_quota)
        self._headers = HeldHeaders(worth_holding)

    def free_bytes(self) -> int | None:
        """Say how much more can be stored; nothing when that is not ours to know."""
        return self._engine.free_bytes()

    def find_inbox(self, mailbox_name: str) -> Deferred[InboxState | None]:
        """Find an inbox by its mailbox name (lower case)."""
        return self._engine.read(lambda t: read_inbox_named(t, mailbox_name, self._quota))

    def find_account_inbox(self, account_id: AccountId) -> Deferred[InboxState | None]:
        """Find the inbox of an account."""
        return self._engine.read(
            lambda t: read_inboxes(t, [account_id], self._quota).get(account_id)
        )

    def find_operator_inbox(self) -> Deferred[InboxState | None]:
        """Find the inbox that postmaster's mail goes to."""
        return self._engine.read(lambda t: read_operator_inbox(t, self._quota))

    def deliver(self, delivery: Delivery) -> Deferred[tuple[Position, ...]]:
        """Store a mail; fires when it is on disk, with the position for each recipient.

        :raises RecipientUnknown: an inbox has gone; nothing was stored.
        :raises InboxFull: an inbox has no room; nothing was stored.
        """
        return self._engine.write(self._deliver, delivery)

    def note_refusal(self, refusal: Refusal) -> Deferred[None]:
        """Keep a refusal for those who wait for the mail; it takes the inbox's next position."""
        return self._engine.write(_note_refusal, refusal)

    def oldest_matches(
        self,
        account_id: AccountId,
        wanted: MessageFilter,
        now: Instant,
        limit: int,
        along: ReadAlong | None = None,
    ) -> Deferred[tuple[tuple[MessageRow, ...], Position]]:
        """List the oldest messages that match, and the inbox's newest position.

        One that was not taken apart yet is among them whatever is asked of its content.
        """

        def query(transaction: Transaction) -> tuple[tuple[MessageRow, ...], Position]:
            row = transaction.row(
                "SELECT last_position FROM inbox WHERE account_id = ?", (account_id,)
            )
            last_position = START if row is None else Position(row.last_position)
            if wanted.start >= last_position:
                return (), last_position
            condition, values = filter_sql(transaction, account_id, wanted, now, or_underived=True)
            rows = transaction.rows(
                f"SELECT {_ROW_COLUMNS} {FROM_CONTENT} WHERE {condition} "
                f"ORDER BY message.position LIMIT ?",
                [*values, limit],
            )
            messages = tuple(map(_message_of, rows))
            if along is not None:
                messages = _with_contents(transaction, messages, along)
            return messages, last_position

        return self._engine.read(query)

    def newest_positions(
        self, account_ids: Sequence[AccountId]
    ) -> Deferred[dict[AccountId, Position]]:
        """Give the newest position of each of these inboxes."""

        def query(transaction: Transaction) -> dict[AccountId, Position]:
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

        return self._engine.read(query)

    def page(
        self, account_id: AccountId, wanted: MessageFilter, now: Instant, limit: int, offset: int
    ) -> Deferred[MessagePage]:
        """List messages that match, newest first."""
        return self._engine.read(
            lambda t: read_page(t, account_id, wanted, now, limit, offset, self._headers)
        )

    def newest(
        self,
        account_id: AccountId,
        wanted: MessageFilter,
        now: Instant,
        limit: int,
        looked_through: int,
    ) -> Deferred[NewestMessages]:
        """Give those that came ``since``, of so many newest ones that match all else.

        Its cost does not grow with what came. ``limit`` of them are given whole. ``wanted``
        says to whom and when, and asks for nothing that is in a message.
        """
        return self._engine.read(
            lambda t: read_newest(t, account_id, wanted, now, limit, looked_through)
        )

    def overview(self, account_id: AccountId, now: Instant, tags: int) -> Deferred[InboxOverview]:
        """Sum an inbox up, with at most ``tags`` of its tags, newest first."""
        return self._engine.read(lambda t: read_overview(t, account_id, now, tags, self._quota))

    def find_message(
        self, account_id: AccountId, message_id: MessageId, now: Instant
    ) -> Deferred[MessageRow | None]:
        """Find a message of the account."""
        condition = "message.id = ? AND message.account_id = ? AND message.expires_at > ?"
        return self._engine.read(
            lambda t: _read_message(t, condition, (message_id, account_id, now))
        )

    def find_any_message(self, message_id: MessageId, now: Instant) -> Deferred[MessageRow | None]:
        """Find a message whosever it is: for share links, which prove their right themselves."""
        condition = "message.id = ? AND message.expires_at > ?"
        return self._engine.read(lambda t: _read_message(t, condition, (message_id, now)))

    def replace_share_token(
        self, account_id: AccountId, message_id: MessageId, token: str, now: Instant
    ) -> Deferred[bool]:
        """Give a message a new share token; false when there is no such message."""
        return self._engine.write(_replace_share_token, (token, message_id, account_id, now))

    def mark_read(self, account_id: AccountId, message_id: MessageId) -> Deferred[None]:
        """Remember that a message was opened; nothing happens when there is none."""
        return self._engine.write(_mark_read, (message_id, account_id))

    def mark_matches_read(
        self, account_id: AccountId, wanted: MessageFilter, now: Instant, limit: int
    ) -> Deferred[int]:
        """Remember of at most ``limit`` unread messages that they were seen; gives how many."""
        return self._engine.write(_mark_matches_read, (account_id, wanted, now, limit))

    def count_unread(
        self, account_id: AccountId, wanted: MessageFilter, now: Instant, looked_through: int
    ) -> Deferred[int]:
        """Count the unread ones of so many newest messages that match.

        Its cost does not grow with what came. ``wanted`` says to whom and when, and asks for
        nothing that is in a message.
        """
        return self._engine.read(lambda t: count_unread(t, account_id, wanted, now, looked_through))

    def delete_message(
        self, account_id: AccountId, message_id: MessageId, now: Instant
    ) -> Deferred[bool]:
        """Delete a message; false when there is none."""
        return self._engine.write(_delete_message, (account_id, message_id, now))

    def delete_matches(
        self, account_id: AccountId, wanted: MessageFilter, now: Instant, limit: int
    ) -> Deferred[int]:
        """Delete at most ``limit`` messages that match; gives how many."""
        return self._engine.write(_delete_matches, (account_id, wanted, now, limit))

    def recent_refusals(
        self, account_id: AccountId, since: Instant, limit: int, wanted: MessageFilter = ANY
    ) -> Deferred[list[Refusal]]:
        """List the newest refusals since a moment, newest first.

        Only those between the positions of the filter; of mail to whom it asks for
        come before all others.
        """
        condition = "account_id = ? AND refused_at >= ? AND position > ?"
        values: list[Value] = [account_id, since, wanted.start]
        if wanted.up_to is not None:
            condition += " AND position <= ?"
            values.append(wanted.up_to)
        parts = address_parts(wanted, "refusal")
        is_other = f"CASE WHEN {' AND '.join(part for part, _ in parts)} THEN 0 ELSE 1 END, "
        order = (is_other if parts else "") + "position DESC"
        values += [value for _, some in parts for value in some]
        return self._engine.read(
            lambda t: [
                value_of(Refusal, row)
                for row in t.rows(
                    "SELECT account_id, recipient, envelope_sender, client_ip, reason, refused_at, "
                    "tag, position, amount AS count FROM refusal "
                    f"WHERE {condition} ORDER BY {order} LIMIT ?",
                    [*values, limit],
                )
            ]
        )


def _read_message(
    transaction: Transaction, condition: str, values: Sequence[str | int]
) -> MessageRow | None:
    row = transaction.row(f"SELECT {_ROW_COLUMNS} {FROM_MESSAGE} WHERE {condition}", values)
    return None if row is None else _message_of(row)


def _with_contents(
    transaction: Transaction, messages: Sequence[MessageRow], along: ReadAlong
) -> tuple[MessageRow, ...]:
    left, room = along.most, along.below
    found = []
    for message in messages:
        size = message.summary.size
        if left and size < room and along.wanted(message.summary):
            left -= 1
            room -= size
            content = read_content(transaction, message.summary.delivery_id, along.below)
            message = replace(message, content=content)
        found.append(message)
    return tuple(found)


def _message_of(row: Row) -> MessageRow:
    return MessageRow(summary_of(row), row.envelope_sender, session_of(row))


def _note_refusal_beside(transaction: Transaction, refusal: Refusal) -> None:
    """Note a refusal of an inbox that is locked: its position is the next mail's.

    It does not wait for rows of refusals either: the count of an existing row stays as it is.
    """
    since = _minute_of(refusal)
    ((all_of_minute, of_tag),) = transaction.rows(
        "SELECT COUNT(*), COUNT(CASE WHEN tag_key = ? THEN 1 END) FROM refusal "
        "WHERE account_id = ? AND refused_at >= ?",
        (fold_tag(refusal.tag), refusal.account_id, since),
    )
    if all_of_minute < MAX_REFUSALS and not (of_tag and asks_for_fault(refusal.tag)):
        _insert_refusal(transaction, refusal, "last_position + 1")


_COUNT_REFUSAL = """
    UPDATE refusal SET amount = amount + 1, refused_at = ?, recipient = ?, recipient_key = ?,
    envelope_sender = ?, client_ip = ?, reason = ?,
    position = (SELECT last_position FROM inbox WHERE inbox.account_id = ?)
    WHERE account_id = ? AND refused_at >= ? AND tag_key = ?
"""

MAX_REFUSALS = 200
"""Refusals of an inbox that are kept of one minute, the newest: strangers cause them."""


@for_each_in(lambda _, refusal: (refusal.account_id,), _note_refusal_beside)
def _note_refusal(transaction: Transaction, refusal: Refusal) -> None:
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


def _minute_of(refusal: Refusal) -> Instant:
    """Return when the minute of a refusal began."""
    return Instant(refusal.refused_at - refusal.refused_at % MINUTE)


def _count_refusal(transaction: Transaction, refusal: Refusal) -> bool:
    """Add a refusal to the row of its tag and minute; return false if there is none yet."""
    values = (
        refusal.refused_at,
        refusal.recipient,
        refusal.recipient.casefold(),
        refusal.envelope_sender,
        refusal.client_ip,
        refusal.reason,
        refusal.account_id,
        refusal.account_id,
        _minute_of(refusal),
        fold_tag(refusal.tag),
    )
    return bool(transaction.execute(_COUNT_REFUSAL, values))


def _insert_refusal(transaction: Transaction, refusal: Refusal, position: str) -> None:
    values: dict[str, Value] = {
        "refused_at": refusal.refused_at,
        "recipient": refusal.recipient,
        "recipient_key": refusal.recipient.casefold(),
        "tag": refusal.tag,
        "tag_key": fold_tag(refusal.tag),
        "envelope_sender": refusal.envelope_sender,
        "client_ip": refusal.client_ip,
        "reason": refusal.reason,
    }
    marks = ", ".join("?" * len(values))
    transaction.execute(
        f"INSERT INTO refusal (account_id, position, {', '.join(values)}) "
        f"SELECT account_id, {position}, {marks} FROM inbox WHERE account_id = ?",
        (*values.values(), refusal.account_id),
    )


@for_each
def _replace_share_token(
    transaction: Transaction, item: tuple[str, MessageId, AccountId, Instant]
) -> bool:
    return bool(
        transaction.execute(
            "UPDATE message SET share_token = ? WHERE id = ? AND account_id = ? AND expires_at > ?",
            item,
        )
    )


@for_each
def _mark_read(transaction: Transaction, item: tuple[MessageId, AccountId]) -> None:
    transaction.execute(
        "UPDATE message SET is_read = 1 WHERE id = ? AND account_id = ? AND is_read = 0", item
    )


@for_each_in(lambda _, item: (item[0],))
def _mark_matches_read(
    transaction: Transaction, item: tuple[AccountId, MessageFilter, Instant, int]
) -> int:
    account_id, wanted, now, limit = item
    lock_inboxes(transaction, [account_id])
    condition, values = filter_sql(transaction, account_id, wanted, now)
    found = transaction.rows(
        f"SELECT message.position {FROM_CONTENT} WHERE {condition} AND message.is_read = 0 LIMIT ?",
        [*values, limit],
    )
    if not found:
        return 0
    marks = ", ".join("?" * len(found))
    return transaction.execute(
        f"UPDATE message SET is_read = 1 WHERE account_id = ? AND position IN ({marks})",
        [account_id, *(row.position for row in found)],
    )


@makes_room
@for_each_in(lambda _, item: (item[0],))
def _delete_message(transaction: Transaction, item: tuple[AccountId, MessageId, Instant]) -> bool:
    found = transaction.rows(
        "SELECT id, account_id FROM message WHERE account_id = ? AND id = ? AND expires_at > ?",
        item,
    )
    return remove_messages(transaction, found) == 1


@makes_room
@for_each_in(lambda _, item: (item[0],))
def _delete_matches(
    transaction: Transaction, item: tuple[AccountId, MessageFilter, Instant, int]
) -> int:
    account_id, wanted, now, limit = item
    condition, values = filter_sql(transaction, account_id, wanted, now)
    found = transaction.rows(
        f"SELECT message.id, message.account_id {FROM_CONTENT} WHERE {condition} LIMIT ?",
        [*values, limit],
    )
    return remove_messages(transaction, found)
