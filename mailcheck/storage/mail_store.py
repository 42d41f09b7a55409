"""The mail store: deliveries in, messages out. One method is one transaction."""

from collections.abc import Sequence

from twisted.internet.defer import Deferred

from mailcheck.core.accounts import InboxState, Quota
from mailcheck.core.cursors import START, Position
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import AccountId, MessageId
from mailcheck.core.instants import Instant
from mailcheck.core.messages import Delivery, MessageSummary, Refusal
from mailcheck.operations.ports import InboxOverview, MessagePage, MessageRow
from mailcheck.storage.delivering import DeliverMails
from mailcheck.storage.engine import Engine, Row, Transaction, for_each, for_each_in
from mailcheck.storage.filter_sql import filter_sql
from mailcheck.storage.inbox_rows import (
    FROM_MESSAGE,
    SESSION_COLUMNS,
    SUMMARY_COLUMNS,
    SUMMARY_WIDTH,
    read_inbox_named,
    read_inboxes,
    read_operator_inbox,
    session_of,
    summary_of,
)
from mailcheck.storage.listing import read_overview, read_page
from mailcheck.storage.removing import remove_messages

MOST_IN_QUERY = 10_000
"""Parameters of one statement; SQLite takes three times as many."""

_ROW_COLUMNS = f"{SUMMARY_COLUMNS}, delivery.envelope_sender, {SESSION_COLUMNS}"


class SqlMailStore:
    """Fills the ports `DeliveryStore` and `MessageStore` on any engine."""

    def __init__(self, engine: Engine, default_quota: Quota) -> None:
        self._engine = engine
        self._quota = default_quota
        self._deliver = DeliverMails(default_quota)

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
        """Store a mail; fires when it is on disk, with the position for each recipient."""
        return self._engine.write(self._deliver, delivery)

    def note_refusal(self, refusal: Refusal) -> Deferred[None]:
        """Keep a refusal for those who wait for the mail."""
        return self._engine.write(_note_refusals, refusal)

    def oldest_matches(
        self, account_id: AccountId, wanted: MessageFilter, now: Instant, limit: int
    ) -> Deferred[tuple[tuple[MessageRow, ...], Position]]:
        """List the oldest messages that match, and the inbox's newest position."""

        def query(transaction: Transaction) -> tuple[tuple[MessageRow, ...], Position]:
            row = transaction.row(
                "SELECT last_position FROM inbox WHERE account_id = ?", (account_id,)
            )
            last_position = START if row is None else Position(row[0])
            if wanted.start >= last_position:
                return (), last_position
            condition, values = filter_sql(account_id, wanted, now)
            rows = transaction.rows(
                f"SELECT {_ROW_COLUMNS} {FROM_MESSAGE} WHERE {condition} "
                f"ORDER BY message.position LIMIT ?",
                [*values, limit],
            )
            return tuple(map(_message_of, rows)), last_position

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
                found.update((AccountId(name), Position(newest)) for name, newest in rows)
            return found

        return self._engine.read(query)

    def newest(
        self, account_id: AccountId, since: Instant, now: Instant, limit: int
    ) -> Deferred[tuple[MessageSummary, ...]]:
        """List the newest messages since a moment, newest first; nothing is counted."""
        return self._engine.read(
            lambda t: tuple(
                summary_of(row)
                for row in t.rows(
                    f"SELECT {SUMMARY_COLUMNS} {FROM_MESSAGE} WHERE message.account_id = ? "
                    "AND message.received_at >= ? AND +message.expires_at > ? "
                    "ORDER BY message.received_at DESC, message.position DESC LIMIT ?",
                    (account_id, since, now, limit),
                )
            )
        )

    def page(
        self, account_id: AccountId, wanted: MessageFilter, now: Instant, limit: int, offset: int
    ) -> Deferred[MessagePage]:
        """List messages that match, newest first."""
        return self._engine.read(lambda t: read_page(t, account_id, wanted, now, limit, offset))

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
        """Find a message whosever it is."""
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
        self, account_id: AccountId, since: Instant, limit: int
    ) -> Deferred[list[Refusal]]:
        """List the newest refusals since a moment, newest first."""
        return self._engine.read(
            lambda t: [
                Refusal(*row)
                for row in t.rows(
                    "SELECT account_id, recipient, envelope_sender, client_ip, reason, refused_at "
                    "FROM refusal WHERE account_id = ? AND refused_at >= ? "
                    "ORDER BY refused_at DESC LIMIT ?",
                    (account_id, since, limit),
                )
            ]
        )


def _read_message(
    transaction: Transaction, condition: str, values: Sequence[str | int]
) -> MessageRow | None:
    row = transaction.row(f"SELECT {_ROW_COLUMNS} {FROM_MESSAGE} WHERE {condition}", values)
    return None if row is None else _message_of(row)


def _message_of(row: Row) -> MessageRow:
    return MessageRow(summary_of(row), row[SUMMARY_WIDTH], session_of(row[SUMMARY_WIDTH + 1 :]))


def _note_refusals(transaction: Transaction, refusals: Sequence[Refusal]) -> list[None]:
    transaction.execute_many(
        "INSERT INTO refusal "
        "(account_id, recipient, envelope_sender, client_ip, reason, refused_at) "
        "SELECT ?, ?, ?, ?, ?, ? WHERE EXISTS (SELECT 1 FROM inbox WHERE account_id = ?)",
        [
            (
                refusal.account_id,
                refusal.recipient,
                refusal.envelope_sender,
                refusal.client_ip,
                refusal.reason,
                refusal.refused_at,
                refusal.account_id,
            )
            for refusal in refusals
        ],
    )
    return [None] * len(refusals)


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
def _delete_message(transaction: Transaction, item: tuple[AccountId, MessageId, Instant]) -> bool:
    found = transaction.rows(
        "SELECT id, account_id FROM message WHERE account_id = ? AND id = ? AND expires_at > ?",
        item,
    )
    return remove_messages(transaction, found) == 1


@for_each_in(lambda _, item: (item[0],))
def _delete_matches(
    transaction: Transaction, item: tuple[AccountId, MessageFilter, Instant, int]
) -> int:
    account_id, wanted, now, limit = item
    condition, values = filter_sql(account_id, wanted, now)
    found = transaction.rows(
        f"SELECT message.id, message.account_id {FROM_MESSAGE} WHERE {condition} LIMIT ?",
        [*values, limit],
    )
    return remove_messages(transaction, found)
