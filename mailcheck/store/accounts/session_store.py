"""Sessions of the dashboard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import Instant
from mailcheck.operations.accounts.dashboard_ports import SessionRow
from mailcheck.store.accounts.account_store import ACCOUNT_COLUMNS, ACCOUNT_TABLES, account_of
from mailcheck.store.engine import Engine, Transaction, for_each, makes_room

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred


class SqlSessionStore:
    """Fills the port `SessionStore` on any engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def open_session(
        self, digest: bytes, account_id: AccountId, now: Instant, ends_at: Instant
    ) -> Deferred[None]:
        """Keep a new session; those that have ended are forgotten."""
        return self._engine.write(_open_session, (digest, account_id, now, ends_at))

    def find_session(self, digest: bytes, now: Instant) -> Deferred[SessionRow | None]:
        """Find a session that has not ended."""

        def query(transaction: Transaction) -> SessionRow | None:
            row = transaction.row(
                f"SELECT dashboard_session.created_at, dashboard_session.seen_at, "
                f"{ACCOUNT_COLUMNS} FROM {ACCOUNT_TABLES} "
                f"JOIN dashboard_session ON dashboard_session.account_id = account.id "
                f"WHERE dashboard_session.digest = ? AND dashboard_session.ends_at > ?",
                (digest, now),
            )
            if row is None:
                return None
            created_at, seen_at, *account = row
            return SessionRow(account_of(account), created_at, seen_at)

        return self._engine.read(query)

    def note_session_use(self, digest: bytes, now: Instant, ends_at: Instant) -> Deferred[None]:
        """Remember when a session was used, and when it ends if it is not used again."""
        return self._engine.write(_note_session_use, (now, ends_at, digest))

    def end_session(self, digest: bytes) -> Deferred[None]:
        """End a session; nothing happens when there is none."""
        return self._engine.write(_end_session, digest)


@for_each
def _open_session(
    transaction: Transaction, item: tuple[bytes, AccountId, Instant, Instant]
) -> None:
    digest, account_id, now, ends_at = item
    transaction.execute("DELETE FROM dashboard_session WHERE ends_at <= ?", (now,))
    transaction.execute(
        "INSERT INTO dashboard_session (digest, account_id, created_at, seen_at, ends_at) "
        "VALUES (?, ?, ?, ?, ?)",
        (digest, account_id, now, now, ends_at),
    )


@for_each
def _note_session_use(transaction: Transaction, item: tuple[Instant, Instant, bytes]) -> None:
    transaction.execute(
        "UPDATE dashboard_session SET seen_at = ?, ends_at = ? WHERE digest = ?", item
    )


@makes_room
@for_each
def _end_session(transaction: Transaction, digest: bytes) -> None:
    transaction.execute("DELETE FROM dashboard_session WHERE digest = ?", (digest,))
