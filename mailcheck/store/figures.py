"""Figures of a whole store, for metrics."""

from msgspec import Struct

from mailcheck.core.accounts import Quota
from mailcheck.core.instants import Instant
from mailcheck.ports.engine import Transaction
from mailcheck.store.transactions import Store, read


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


class FigureStore(Store):
    """Reads the figures. The counters of inboxes are read, not the messages."""

    @read
    def figures(self, transaction: Transaction, quota: Quota) -> StoreFigures:
        """Return the figures. ``quota`` is that of accounts without their own."""
        (row,) = transaction.rows(
            "SELECT CAST(COALESCE(SUM(i.message_count), 0) AS BIGINT), "
            "CAST(COALESCE(SUM(i.byte_count), 0) AS BIGINT), COUNT(*), "
            "COALESCE(MAX(1.0 * i.message_count / COALESCE(a.max_messages, CAST(? AS BIGINT))), 0),"
            " COALESCE(MAX(1.0 * i.byte_count / COALESCE(a.max_bytes, CAST(? AS BIGINT))), 0) "
            "FROM inbox i JOIN account a ON a.id = i.account_id",
            (quota.max_messages, quota.max_bytes),
        )
        messages, octets, inboxes, of_messages, of_octets = row
        oldest = transaction.row("SELECT received_at FROM message ORDER BY id LIMIT 1")
        return StoreFigures(
            messages,
            octets,
            inboxes,
            None if oldest is None else oldest[0],
            float(max(of_messages, of_octets)),
        )
