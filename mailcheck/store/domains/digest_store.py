"""The store of digests: settings, and which are due."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from mailcheck.core.domains.digests import Digest, DigestSettings
from mailcheck.core.domains.watches import Alert
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import Instant
from mailcheck.ports.engine import Transaction
from mailcheck.store.domains.watch_store import ALERTS
from mailcheck.store.transactions import Store, json_of, read, read_value, read_values, write

_SAVE = """
    INSERT INTO digest (account_id, settings, begins_at, next_at, left_to) VALUES (?, ?, ?, ?, '[]')
    ON CONFLICT (account_id) DO UPDATE SET settings = excluded.settings, next_at = excluded.next_at,
    left_to = '[]'
"""

_DUE = """
    SELECT digest.account_id, account.name AS account_name, mailbox_name, settings, begins_at,
    left_to AS "left" FROM digest JOIN account ON account.id = digest.account_id
    JOIN inbox ON inbox.account_id = digest.account_id
    WHERE next_at <= ? ORDER BY next_at, digest.account_id LIMIT ?
"""


class _Stored(Struct):
    settings: DigestSettings


class DigestStore(Store):
    """Digests. An account without one has no row."""

    @read
    def find(self, transaction: Transaction, account_id: AccountId) -> DigestSettings:
        """Return the settings of an account; the default ones if it has no digest."""
        sql = "SELECT settings FROM digest WHERE account_id = ?"
        stored = read_value(transaction, _Stored, sql, (account_id,))
        return DigestSettings() if stored is None else stored.settings

    @write
    def save(
        self,
        transaction: Transaction,
        account_id: AccountId,
        settings: DigestSettings,
        now: Instant,
        next_at: Instant,
    ) -> None:
        """Store the settings. A new digest is about the time from now on."""
        transaction.execute(_SAVE, (account_id, json_of(settings), now, next_at))

    @write
    def delete(self, transaction: Transaction, account_id: AccountId) -> None:
        """Delete the digest of an account."""
        transaction.execute("DELETE FROM digest WHERE account_id = ?", (account_id,))

    @read
    def due(self, transaction: Transaction, now: Instant, limit: int) -> list[Digest]:
        """Return digests that are due, the longest overdue first."""
        return read_values(transaction, Digest, _DUE, (now, limit))

    @write
    def note_sent(
        self,
        transaction: Transaction,
        account_id: AccountId,
        begins_at: Instant,
        next_at: Instant,
    ) -> None:
        """Record that a digest was sent; the next one is about the time after it."""
        transaction.execute(
            "UPDATE digest SET begins_at = ?, next_at = ?, left_to = '[]' WHERE account_id = ?",
            (begins_at, next_at, account_id),
        )

    @write
    def put_off(
        self,
        transaction: Transaction,
        account_id: AccountId,
        next_at: Instant,
        left: Sequence[str] = (),
    ) -> None:
        """Record that a digest is to be sent later to some receivers, or to all."""
        transaction.execute(
            "UPDATE digest SET next_at = ?, left_to = ? WHERE account_id = ?",
            (next_at, json_of(left), account_id),
        )

    @read
    def alerts_since(
        self, transaction: Transaction, account_id: AccountId, since: Instant, limit: int
    ) -> list[Alert]:
        """Return the alerts of an account that are open or ended since a time, newest first."""
        sql = (
            f"{ALERTS} WHERE account_id = ? AND (ended_at IS NULL OR ended_at >= ?) "
            "ORDER BY CASE WHEN ended_at IS NULL THEN 0 ELSE 1 END, opened_at DESC LIMIT ?"
        )
        return read_values(transaction, Alert, sql, (account_id, since, limit))
