"""Figures of a whole store, for metrics."""

from msgspec import Struct

from mailcheck.core.accounts import Quota
from mailcheck.core.instants import Instant
from mailcheck.ports.engine import Transaction
from mailcheck.store.transactions import Store, read, value_of


class StoreFigures(Struct, frozen=True):
    """What a store contains.

    ``octets`` is the raw mail. ``oldest`` is the receipt of the oldest message, if there is one.
    ``fullest`` is the largest part of its quota that an inbox uses, of messages or of bytes.
    """

    messages: int
    octets: int
    inboxes: int
    oldest: Instant | None
    fullest: float


_FIGURES = """
    SELECT CAST(COALESCE(SUM(i.message_count), 0) AS BIGINT) AS messages,
        CAST(COALESCE(SUM(i.byte_count), 0) AS BIGINT) AS octets, COUNT(*) AS inboxes,
        COALESCE(MAX(
            1.0 * i.message_count / COALESCE(a.max_messages, CAST(? AS BIGINT))
        ), 0) AS of_messages,
        COALESCE(MAX(
            1.0 * i.byte_count / COALESCE(a.max_bytes, CAST(? AS BIGINT))
        ), 0) AS of_octets,
        (SELECT received_at FROM message ORDER BY id LIMIT 1) AS oldest
    FROM inbox i JOIN account a ON a.id = i.account_id
"""


class FigureStore(Store):
    """Reads the figures. The counters of inboxes are read, not the messages."""

    @read
    def figures(self, transaction: Transaction, quota: Quota) -> StoreFigures:
        """Return the figures. ``quota`` is that of accounts without their own."""
        (row,) = transaction.rows(_FIGURES, (quota.max_messages, quota.max_bytes))
        return value_of(StoreFigures, row, fullest=float(max(row.of_messages, row.of_octets)))
