"""Forgetting what is too old, a bounded piece at a time so that no mail waits behind it."""

from collections.abc import Callable

from twisted.internet.defer import Deferred

from mailcheck.core.instants import Instant
from mailcheck.storage.engine import Engine, Row, Transaction, for_each, for_each_in
from mailcheck.storage.removing import remove_messages


class SqlExpiryStore:
    """Fills the port `ExpiryStore` on any engine."""

    def __init__(self, engine: Engine, give_back_space: Callable[[], Deferred[None]]) -> None:
        self._engine = engine
        self.give_back_space = give_back_space

    def expire(self, now: Instant, limit: int) -> Deferred[int]:
        """Delete at most ``limit`` messages that have expired; gives how many."""
        return self._engine.write(_expire, (now, limit))

    def forget_refusals(self, before: Instant) -> Deferred[int]:
        """Delete refusals older than a moment."""
        return self._engine.write(_forget_refusals, before)


SWEEPING = 0x6D61_696D
"""The work of forgetting: of several daemons one does it at a time."""


def _expired(transaction: Transaction, item: tuple[Instant, int]) -> list[Row]:
    return transaction.rows(
        "SELECT id, account_id FROM message WHERE expires_at <= ? ORDER BY expires_at LIMIT ?",
        item,
    )


@for_each_in(lambda transaction, item: {row[1] for row in _expired(transaction, item)})
def _expire(transaction: Transaction, item: tuple[Instant, int]) -> int:
    if not transaction.is_only_one(SWEEPING):
        return 0
    return remove_messages(transaction, _expired(transaction, item))


@for_each
def _forget_refusals(transaction: Transaction, before: Instant) -> int:
    if not transaction.is_only_one(SWEEPING):
        return 0
    return transaction.execute("DELETE FROM refusal WHERE refused_at < ?", (before,))
