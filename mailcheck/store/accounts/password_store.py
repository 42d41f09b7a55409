"""Passwords, registrations and invitations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mailcheck.core.accounts import Account
from mailcheck.core.errors import AccountNameTaken, InvitationInvalid
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import Instant
from mailcheck.operations.accounts.dashboard_ports import KeptPassword
from mailcheck.store.accounts.account_store import (
    ACCOUNT_COLUMNS,
    ACCOUNT_TABLES,
    ACCOUNTS,
    account_of,
    insert_account,
)
from mailcheck.store.engine import Engine, Transaction, for_each

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

_INTO_PASSWORD = "INSERT INTO account_password (account_id, hash, changed_at) VALUES (?, ?, ?)"  # noqa: S105


class SqlPasswordStore:
    """Fills the port `PasswordStore` on any engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def find_password(self, name: str) -> Deferred[KeptPassword | None]:
        """Find an account by its name, with the hash of its password."""

        def query(transaction: Transaction) -> KeptPassword | None:
            row = transaction.row(
                f"SELECT account_password.hash, {ACCOUNT_COLUMNS} FROM {ACCOUNT_TABLES} "
                f"LEFT JOIN account_password ON account_password.account_id = account.id "
                f"WHERE account.name = ?",
                (name,),
            )
            return None if row is None else KeptPassword(account_of(row[1:]), row[0])

        return self._engine.read(query)

    def set_password(
        self, account_id: AccountId, password_hash: str, now: Instant
    ) -> Deferred[None]:
        """Replace a password; all sessions of the account end with it."""
        return self._engine.write(_set_password, (account_id, password_hash, now))

    def set_first_password(
        self, account_id: AccountId, password_hash: str, now: Instant
    ) -> Deferred[bool]:
        """Set the password of an account that has none; false when it has one."""
        return self._engine.write(_set_first_password, (account_id, password_hash, now))

    def renew_hash(self, account_id: AccountId, old: str, new: str) -> Deferred[None]:
        """Replace a hash by another one of the same password, unless it was changed meanwhile."""
        return self._engine.write(_renew_hash, (new, account_id, old))

    def register(
        self, account: Account, password_hash: str, invitation: bytes | None, now: Instant
    ) -> Deferred[None]:
        """Add an account with a password; an invitation, given by its digest, is used up.

        :raises AccountNameTaken: there is one of this name; the invitation stays.
        :raises InvitationInvalid: it was used, has expired, or never was; nothing is added.
        """
        return self._engine.write(_register, (account, password_hash, invitation, now))

    def add_invitation(
        self, digest: bytes, created_at: Instant, expires_at: Instant
    ) -> Deferred[None]:
        """Keep an invitation; those that have expired are forgotten."""
        return self._engine.write(_add_invitation, (digest, created_at, expires_at))

    def has_invitation(self, digest: bytes, now: Instant) -> Deferred[bool]:
        """Tell whether an invitation can still be used."""
        return self._engine.read(lambda t: _has_invitation(t, digest, now))


def _has_invitation(transaction: Transaction, digest: bytes, now: Instant) -> bool:
    row = transaction.row(
        "SELECT 1 FROM invitation WHERE digest = ? AND expires_at > ?", (digest, now)
    )
    return row is not None


@for_each
def _set_password(transaction: Transaction, item: tuple[AccountId, str, Instant]) -> None:
    transaction.execute(
        f"{_INTO_PASSWORD} ON CONFLICT (account_id) DO UPDATE "
        "SET hash = excluded.hash, changed_at = excluded.changed_at",
        item,
    )
    transaction.execute("DELETE FROM dashboard_session WHERE account_id = ?", item[:1])


@for_each
def _set_first_password(transaction: Transaction, item: tuple[AccountId, str, Instant]) -> bool:
    return bool(transaction.execute(f"{_INTO_PASSWORD} ON CONFLICT (account_id) DO NOTHING", item))


@for_each
def _renew_hash(transaction: Transaction, item: tuple[str, AccountId, str]) -> None:
    transaction.execute(
        "UPDATE account_password SET hash = ? WHERE account_id = ? AND hash = ?", item
    )


@for_each
def _register(
    transaction: Transaction, item: tuple[Account, str, bytes | None, Instant]
) -> AccountNameTaken | InvitationInvalid | None:
    account, password_hash, invitation, now = item
    transaction.lock(ACCOUNTS)
    if invitation is not None and not _has_invitation(transaction, invitation, now):
        return InvitationInvalid("this invitation was used before, or has expired")
    taken = insert_account(transaction, account)
    if taken is not None:
        return taken
    transaction.execute(_INTO_PASSWORD, (account.id, password_hash, now))
    if invitation is not None:
        transaction.execute("DELETE FROM invitation WHERE digest = ?", (invitation,))
    return None


@for_each
def _add_invitation(transaction: Transaction, item: tuple[bytes, Instant, Instant]) -> None:
    transaction.execute("DELETE FROM invitation WHERE expires_at <= ?", (item[1],))
    transaction.execute(
        "INSERT INTO invitation (digest, created_at, expires_at) VALUES (?, ?, ?)", item
    )
