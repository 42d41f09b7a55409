"""Lists and overviews of an inbox: their cost does not grow with what is stored."""

from collections.abc import Sequence
from dataclasses import replace

from mailcheck.core.accounts import Quota
from mailcheck.core.addresses import fold_tag
from mailcheck.core.content import Extracted
from mailcheck.core.cursors import Position
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import Instant
from mailcheck.core.messages import TagCount
from mailcheck.operations.ports import InboxOverview, MessagePage
from mailcheck.storage.content_store import load_list
from mailcheck.storage.engine import Row, Transaction, Value
from mailcheck.storage.filter_sql import filter_sql, is_counted_by_tag, looks_into_mails
from mailcheck.storage.inbox_rows import (
    FROM_MESSAGE,
    SUMMARY_COLUMNS,
    SUMMARY_WIDTH,
    read_inboxes,
    summary_of,
)

_NEWEST = "ORDER BY message.position DESC LIMIT ? OFFSET ?"


def read_page(
    transaction: Transaction,
    account_id: AccountId,
    wanted: MessageFilter,
    now: Instant,
    limit: int,
    offset: int,
) -> MessagePage:
    """Read a page of the messages that match, newest first."""
    condition, values = filter_sql(account_id, wanted, now)
    if looks_into_mails(wanted):
        # Mails are looked into once, for the page and the total alike.
        matches = _matching_positions(transaction, condition, values)
        rows = _read_positions(transaction, account_id, matches[offset : offset + limit])
        total = len(matches)
    else:
        rows = _read_rows(transaction, f"{condition} {_NEWEST}", [*values, limit, offset])
        total = _count(transaction, account_id, wanted, now)
    entries = tuple((summary_of(row), _extracted(row[SUMMARY_WIDTH:])) for row in rows)
    return MessagePage(entries, total, _last_position(transaction, account_id))


def read_overview(
    transaction: Transaction, account_id: AccountId, now: Instant, tags: int, quota: Quota
) -> InboxOverview:
    """Sum an inbox up. The caller's account exists: keys die with their account."""
    state = read_inboxes(transaction, [account_id], quota)[account_id]
    expired = _expired_by_tag(transaction, account_id, now)
    rows = transaction.rows(
        "SELECT tag_key, tag, message_count, latest_at FROM inbox_tag WHERE account_id = ? "
        "ORDER BY latest_at DESC, tag_key DESC LIMIT ?",
        (account_id, tags),
    )
    counts = [
        TagCount(tag, count - expired.get(key, 0), Instant(latest))
        for key, tag, count, latest in rows
        if count > expired.get(key, 0)
    ]
    state = replace(state, message_count=state.message_count - sum(expired.values()))
    return InboxOverview(state, tuple(counts), _count_tags(transaction, account_id, expired))


def _extracted(row: Row) -> Extracted | None:
    links, best_link, codes = row
    return None if links is None else Extracted(load_list(links), best_link, load_list(codes))


def _read_rows(transaction: Transaction, condition: str, values: Sequence[Value]) -> list[Row]:
    return transaction.rows(
        f"SELECT {SUMMARY_COLUMNS}, content.links, content.best_link, content.codes "
        f"{FROM_MESSAGE} LEFT JOIN content ON content.delivery_id = message.delivery_id "
        f"WHERE {condition}",
        values,
    )


def _read_positions(
    transaction: Transaction, account_id: AccountId, positions: Sequence[int]
) -> list[Row]:
    if not positions:
        return []
    marks = ", ".join("?" * len(positions))
    return _read_rows(
        transaction,
        f"message.account_id = ? AND message.position IN ({marks}) {_NEWEST}",
        [account_id, *positions, len(positions), 0],
    )


def _matching_positions(
    transaction: Transaction, condition: str, values: Sequence[Value]
) -> list[int]:
    query = f"SELECT message.position {FROM_MESSAGE} WHERE {condition}"
    return sorted((row[0] for row in transaction.rows(query, values)), reverse=True)


def _count(
    transaction: Transaction, account_id: AccountId, wanted: MessageFilter, now: Instant
) -> int:
    if not is_counted_by_tag(wanted):
        condition, values = filter_sql(account_id, wanted, now)
        query = f"SELECT COUNT(*) {FROM_MESSAGE} WHERE {condition}"
        return _number(transaction, query, *values)
    expired = _expired_by_tag(transaction, account_id, now)
    if wanted.tag is None:
        query = "SELECT message_count FROM inbox WHERE account_id = ?"
        return _number(transaction, query, account_id) - sum(expired.values())
    key = fold_tag(wanted.tag)
    query = "SELECT message_count FROM inbox_tag WHERE account_id = ? AND tag_key = ?"
    return _number(transaction, query, account_id, key) - expired.get(key, 0)


def _count_tags(transaction: Transaction, account_id: AccountId, expired: dict[str, int]) -> int:
    count = "SELECT COUNT(*) FROM inbox_tag WHERE account_id = ?"
    count_gone = f"{count} AND tag_key = ? AND message_count <= ?"
    return _number(transaction, count, account_id) - sum(
        _number(transaction, count_gone, account_id, key, number) for key, number in expired.items()
    )


def _expired_by_tag(
    transaction: Transaction, account_id: AccountId, now: Instant
) -> dict[str, int]:
    """Count what has expired and was not swept away yet: never more than a few rows."""
    return dict(
        transaction.rows(
            "SELECT tag_key, COUNT(*) FROM message "
            "WHERE expires_at <= ? AND account_id || '' = ? GROUP BY tag_key",
            (now, account_id),
        )
    )


def _last_position(transaction: Transaction, account_id: AccountId) -> Position:
    query = "SELECT last_position FROM inbox WHERE account_id = ?"
    return Position(_number(transaction, query, account_id))


def _number(transaction: Transaction, query: str, *values: str | int | bytes | None) -> int:
    row = transaction.row(query, values)
    return 0 if row is None else int(row[0])
