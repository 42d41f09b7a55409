"""Lists and overviews of an inbox, whose cost does not grow with the number of messages.

The authors and subjects of large inboxes are cached in memory, where lists search them. A database
reads a row of each mail to compare two short texts. For 200,000 mails that takes a hundred times as
long as the rest of a list. An index of word parts would cost time for each incoming mail. The cache
costs nothing before the first search.
"""

import threading
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import islice

from msgspec.structs import replace

from mailcheck.core.accounts import InboxState
from mailcheck.core.addresses import fold_tag
from mailcheck.core.content import DERIVATION, Extracted, fold_text
from mailcheck.core.cursors import START, Position
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import BEGINNING, Instant
from mailcheck.core.memory.recent import LruCache
from mailcheck.core.messages import TagCount
from mailcheck.core.rights import TagLimit
from mailcheck.ports.engine import Row, Transaction, Value
from mailcheck.store.filter_sql import (
    UNDERIVED,
    allowed_sql,
    derived_sql,
    filter_sql,
    is_counted_by_recipient,
    is_counted_by_tag,
    needs_scan,
)
from mailcheck.store.messages import (
    FROM_CONTENT,
    FROM_MESSAGE,
    SUMMARY_COLUMNS,
    InboxOverview,
    MessagePage,
    NewestMessages,
    summary_of,
)
from mailcheck.store.transactions import columns_of, read_number, value_of

MAX_CACHED_MESSAGES = 500_000
"""Maximum cached messages of all inboxes together, about 100 bytes each; an LRU cache."""

MIN_CACHED_MESSAGES = 2_000
"""Minimum number of messages of a cached inbox; for a smaller one the database is as fast."""

READ_AT_ONCE = 10_000

BLOCK = 64
"""Texts that are searched as one."""

FEW = 16
"""Matches in a block up to which looking up each is faster than comparing all texts."""

MAX_CACHED_SEARCHES = 8
"""Cached searches of an inbox: further pages and repeated searches continue from them."""

_SEPARATOR = "\n"
"""Separates two texts. Folded texts and search terms do not contain it."""

_STATE = """
    SELECT message_count, last_position, (
        SELECT MIN(message.position) FROM message WHERE message.account_id = inbox.account_id
    ) AS oldest FROM inbox WHERE account_id = ?
"""

_NEWER = f"""
    SELECT message.position, delivery.author_key, delivery.subject_key {FROM_MESSAGE}
    WHERE message.account_id = ? AND message.position > ? ORDER BY message.position LIMIT ?
"""

# Expired but not deleted yet, in all inboxes: never more than a few rows.
_EXPIRED = "SELECT position FROM message WHERE expires_at <= ? AND account_id || '' = ?"

_EXTRACTED = columns_of(Extracted, "content")

_NEWEST = "ORDER BY message.position DESC LIMIT ? OFFSET ?"


def read_page(
    transaction: Transaction,
    account_id: AccountId,
    wanted: MessageFilter,
    now: Instant,
    limit: int,
    offset: int,
    headers: "HeaderCache | None" = None,
) -> MessagePage:
    """Return a page of the matching messages, newest first.

    :param headers: the cache for searches by author and subject, if they may use one.
    """
    not_searched = 0
    if needs_scan(wanted):
        # Mails are scanned once for the page, the total and the number of unknown matches.
        found = None
        if headers is not None:
            found = headers.page(transaction, account_id, wanted, now, limit, offset)
        if found is None:
            matches, not_searched = _scan_messages(transaction, account_id, wanted, now)
            found = matches[offset : offset + limit], len(matches)
        positions, total = found
        rows = _read_positions(transaction, account_id, positions)
    else:
        condition, values = filter_sql(transaction, account_id, wanted, now)
        rows = _read_rows(transaction, f"{condition} {_NEWEST}", [*values, limit, offset])
        total = _count(transaction, account_id, wanted, now)
    entries = tuple((summary_of(row), _extracted(row)) for row in rows)
    return MessagePage(entries, total, _last_position(transaction, account_id), not_searched)


def read_newest(
    transaction: Transaction,
    account_id: AccountId,
    wanted: MessageFilter,
    now: Instant,
    limit: int,
    scan_limit: int,
) -> NewestMessages:
    """Return the newest matching messages; ``since`` is applied to those alone.

    :param wanted: a filter by recipient and time, without conditions on content.
    """
    condition, values = filter_sql(transaction, account_id, replace(wanted, since=None), now)
    query = f"SELECT position, received_at FROM message WHERE {condition} {_NEWEST}"
    newest = transaction.rows(query, [*values, scan_limit, 0])
    since = BEGINNING if wanted.since is None else wanted.since
    positions = tuple(row.position for row in newest if row.received_at >= since)
    rows = _read_positions(transaction, account_id, positions[:limit])
    return NewestMessages(tuple(map(summary_of, rows)), positions)


def count_unread(
    transaction: Transaction,
    account_id: AccountId,
    wanted: MessageFilter,
    now: Instant,
    scan_limit: int,
) -> int:
    """Count the unread messages among the newest matching ones.

    :param wanted: a filter by recipient and time, without conditions on content.
    """
    condition, values = filter_sql(transaction, account_id, wanted, now)
    newest = f"SELECT message.is_read FROM message WHERE {condition} {_NEWEST}"
    query = f"SELECT COUNT(*) FROM ({newest}) AS newest WHERE is_read = 0"
    return read_number(transaction, query, [*values, scan_limit, 0])


def read_overview(
    transaction: Transaction,
    state: InboxState,
    now: Instant,
    tags: int,
    allowed: TagLimit | None = None,
) -> InboxOverview:
    """Return the overview of an inbox.

    :param allowed: the tags to which the caller is limited: only these are counted.
    """
    account_id = state.account_id
    expired = _expired_by_tag(transaction, account_id, now)
    values: tuple[Value, ...] = (tags,)
    condition, limit = "TRUE", "LIMIT ?"
    if allowed is not None:  # all its tags are read, since their messages are counted
        ((condition, values),), limit = allowed_sql(allowed, "inbox_tag"), ""
    rows = transaction.rows(
        "SELECT tag_key, tag, message_count, latest_at FROM inbox_tag "
        f"WHERE account_id = ? AND {condition} ORDER BY latest_at DESC, tag_key DESC {limit}",
        (account_id, *values),
    )
    counts = [
        TagCount(row.tag, row.message_count - expired.get(row.tag_key, 0), row.latest_at)
        for row in rows
        if row.message_count > expired.get(row.tag_key, 0)
    ]
    total, messages = len(counts), sum(count.message_count for count in counts)
    if allowed is None:
        messages = state.message_count - sum(expired.values())
        if len(rows) == tags:  # there may be more tags
            total = _count_tags(transaction, account_id, expired)
    return InboxOverview(replace(state, message_count=messages), tuple(counts[:tags]), total)


def _extracted(row: Row) -> Extracted | None:
    if row.derivation is None or row.derivation < DERIVATION:
        return None
    return value_of(Extracted, row)


def _read_rows(transaction: Transaction, condition: str, values: Sequence[Value]) -> list[Row]:
    return transaction.rows(
        f"SELECT {SUMMARY_COLUMNS}, content.derivation, {_EXTRACTED} {FROM_CONTENT} "
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


def _scan_messages(
    transaction: Transaction, account_id: AccountId, wanted: MessageFilter, now: Instant
) -> tuple[list[int], int]:
    """Return the positions of the matching messages, newest first.

    Also return the number of possible matches whose content is not derived yet.
    """
    condition, values = filter_sql(transaction, account_id, wanted, now, or_underived=True)
    in_content = derived_sql(transaction, wanted)
    if in_content is None:
        found = transaction.rows(
            f"SELECT message.position {FROM_CONTENT} WHERE {condition}", values
        )
        return sorted((row.position for row in found), reverse=True), 0
    derived, asked = in_content
    rows = transaction.rows(
        f"SELECT message.position, {UNDERIVED} AS is_underived, "
        f"CASE WHEN {UNDERIVED} THEN {derived} ELSE 1 = 1 END AS is_match "
        f"{FROM_CONTENT} WHERE {condition}",
        [*asked, *values],
    )
    positions = sorted((row.position for row in rows if row.is_match), reverse=True)
    return positions, sum(bool(row.is_underived) for row in rows)


def _count(
    transaction: Transaction, account_id: AccountId, wanted: MessageFilter, now: Instant
) -> int:
    if is_counted_by_recipient(wanted):
        return _count_recipient(transaction, account_id, str(wanted.recipient), now)
    if not is_counted_by_tag(wanted):
        condition, values = filter_sql(transaction, account_id, wanted, now)
        query = f"SELECT COUNT(*) FROM message WHERE {condition}"
        return read_number(transaction, query, values)
    expired = _expired_by_tag(transaction, account_id, now)
    if wanted.tag is None:
        query = "SELECT message_count FROM inbox WHERE account_id = ?"
        return read_number(transaction, query, (account_id,)) - sum(expired.values())
    key = fold_tag(wanted.tag)
    query = "SELECT message_count FROM inbox_tag WHERE account_id = ? AND tag_key = ?"
    return read_number(transaction, query, (account_id, key)) - expired.get(key, 0)


def _count_recipient(
    transaction: Transaction, account_id: AccountId, recipient: str, now: Instant
) -> int:
    """Count the messages to an address, by its index alone, without reading their expiry."""
    count, key = "SELECT COUNT(*) FROM message WHERE", recipient.casefold()
    of_recipient = f"{count} account_id = ? AND recipient_key = ?"
    stored = read_number(transaction, of_recipient, (account_id, key))
    # Expired but not deleted yet: never more than a few rows.
    expired = f"{count} expires_at <= ? AND account_id || '' = ? AND recipient_key || '' = ?"
    return stored - read_number(transaction, expired, (now, account_id, key))


def _count_tags(transaction: Transaction, account_id: AccountId, expired: dict[str, int]) -> int:
    count_gone = (
        "SELECT COUNT(*) FROM inbox_tag WHERE account_id = ? AND tag_key = ? AND message_count <= ?"
    )
    of_inbox = "SELECT tag_count FROM inbox WHERE account_id = ?"
    return read_number(transaction, of_inbox, (account_id,)) - sum(
        read_number(transaction, count_gone, (account_id, key, number))
        for key, number in expired.items()
    )


def _expired_by_tag(
    transaction: Transaction, account_id: AccountId, now: Instant
) -> dict[str, int]:
    """Count expired messages that are not deleted yet, by tag; never more than a few rows."""
    return dict(
        transaction.rows(
            "SELECT tag_key, COUNT(*) FROM message "
            "WHERE expires_at <= ? AND account_id || '' = ? GROUP BY tag_key",
            (now, account_id),
        )
    )


def _last_position(transaction: Transaction, account_id: AccountId) -> Position:
    query = "SELECT last_position FROM inbox WHERE account_id = ?"
    return Position(read_number(transaction, query, (account_id,)))


class HeaderCache:
    """Finds messages by author and subject, with the same rules as `MessageFilter`.

    :param min_cached_messages: minimum messages of a cached inbox, at least 1.
    """

    def __init__(self, min_cached_messages: int = MIN_CACHED_MESSAGES) -> None:
        self._worth_holding = min_cached_messages
        # Several threads read at the same time, each in its own snapshot.
        self._lock = threading.Lock()
        self._held: LruCache[AccountId, _Headers] = LruCache(MAX_CACHED_MESSAGES, len)

    def page(
        self,
        transaction: Transaction,
        account_id: AccountId,
        wanted: MessageFilter,
        now: Instant,
        limit: int,
        offset: int,
    ) -> tuple[list[int], int] | None:
        """Return the positions of a page of matches, newest first, and the number of all matches.

        :return: `None` if the filter has other conditions, or the inbox is too small or too large.
        """
        if wanted.asks_only() or not wanted.asks_only("author", "subject"):
            return None
        state = transaction.row(_STATE, (account_id,))
        if state is None or not self._worth_holding <= state.message_count <= MAX_CACHED_MESSAGES:
            return None
        author, subject = (
            part if part is None else fold_text(part) for part in (wanted.author, wanted.subject)
        )
        expired = [row.position for row in transaction.rows(_EXPIRED, (now, account_id))]
        with self._lock:
            headers = self._current(transaction, account_id, state)
            marks = headers.containing(author, subject)
            headers.unmark(marks, state.oldest, state.last_position, expired)
            return headers.newest_marked(marks, limit, offset), marks.count(1)

    def _current(self, transaction: Transaction, account_id: AccountId, state: Row) -> "_Headers":
        """Return the cached headers of an inbox, updated to the snapshot of the transaction.

        Positions only grow, so new messages are after the last one. The oldest messages are deleted
        first. If the count from the oldest position on is right, no other message was deleted.
        """
        count, oldest, newest = state.message_count, state.oldest, state.last_position
        headers = self._held.get(account_id) or _Headers()
        headers.read_newer(transaction, account_id)
        if not headers.count_between(oldest, newest) == count > len(headers) // 2:
            headers = _Headers()
            headers.read_newer(transaction, account_id)
        self._held.put(account_id, headers)
        return headers


class _Headers:
    """The authors and subjects of one inbox, by position."""

    def __init__(self) -> None:
        self._positions = array("q")
        self._authors: list[str] = []
        self._subjects: list[str] = []
        # By field and searched text: one mark per message, as far as it was searched.
        self._searches: LruCache[tuple[bool, str], bytearray] = LruCache(MAX_CACHED_SEARCHES)

    def __len__(self) -> int:
        return len(self._positions)

    def count_between(self, oldest: int, newest: int) -> int:
        first, end = self._between(oldest, newest)
        return end - first

    def _between(self, oldest: int, newest: int) -> tuple[int, int]:
        return bisect_left(self._positions, oldest), bisect_right(self._positions, newest)

    def read_newer(self, transaction: Transaction, account_id: AccountId) -> None:
        is_more = True
        while is_more:
            newest = self._positions[-1] if self._positions else START
            rows = transaction.rows(_NEWER, (account_id, newest, READ_AT_ONCE))
            _append(self._authors, len(self), [row.author_key for row in rows])
            _append(self._subjects, len(self), [row.subject_key for row in rows])
            self._positions.extend(row.position for row in rows)
            is_more = len(rows) == READ_AT_ONCE

    def containing(self, author: str | None, subject: str | None) -> bytearray:
        """Return a mark for each message that contains both parts; ``None`` matches all."""
        marks = [
            self._search(part, in_subject=in_subject)
            for part, in_subject in ((author, False), (subject, True))
            if part is not None
        ]
        # Compared as large integers in one step.
        number, *others = (int.from_bytes(some, "little") for some in marks)
        for other in others:
            number &= other
        return bytearray(number.to_bytes(len(self), "little"))

    def unmark(self, marks: bytearray, oldest: int, newest: int, gone: Iterable[int]) -> None:
        """Remove the marks of older, newer and deleted messages."""
        first, end = self._between(oldest, newest)
        marks[:first] = bytes(first)
        marks[end:] = bytes(len(marks) - end)
        for position in gone:
            first, end = self._between(position, position)
            marks[first:end] = bytes(end - first)

    def newest_marked(self, marks: bytearray, limit: int, offset: int) -> list[int]:
        """Return the positions of ``limit`` marked messages after an offset, newest first."""
        found: list[int] = []
        at = len(marks)
        while len(found) < offset + limit and (at := marks.rfind(1, 0, at)) >= 0:
            found.append(self._positions[at])
        return found[offset:]

    def _search(self, part: str, *, in_subject: bool) -> bytearray:
        key = in_subject, part
        marks = self._searches.get(key) or bytearray()
        blocks = self._subjects if in_subject else self._authors
        first = len(marks) // BLOCK
        del marks[first * BLOCK :]  # the last block may have grown
        marks.extend(bytes(len(self) - len(marks)))
        for number, block in enumerate(islice(blocks, first, None), first):
            if part in block:
                _mark(marks, number * BLOCK, block, part)
        self._searches.put(key, marks)
        return marks


def _mark(marks: bytearray, start: int, block: str, part: str) -> None:
    """Mark the texts of a block that contain a part; ``start`` is the index of the first text."""
    if block.count(part) > FEW:
        found = bytes(part in text for text in block.split(_SEPARATOR))
        marks[start : start + len(found)] = found
        return
    at = block.find(part)
    while at >= 0:
        marks[start + block.count(_SEPARATOR, 0, at)] = 1
        end = block.find(_SEPARATOR, at)
        at = block.find(part, end + 1) if end >= 0 else -1


def _append(blocks: list[str], held: int, texts: list[str]) -> None:
    if held % BLOCK:
        texts = blocks.pop().split(_SEPARATOR) + texts
    blocks += [
        _SEPARATOR.join(texts[start : start + BLOCK]) for start in range(0, len(texts), BLOCK)
    ]
