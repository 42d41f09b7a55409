"""Accounts, API keys, passwords, registrations, invitations and sessions of the dashboard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import asdict

from mailcheck.core.accounts import Account, ApiKey
from mailcheck.core.cursors import Position
from mailcheck.core.errors import AccountNameTaken, InvitationInvalid
from mailcheck.core.identifiers import AccountId, KeyId
from mailcheck.core.instants import Instant
from mailcheck.store.accounts.lookalikes import look_alike
from mailcheck.store.engine import (
    Engine,
    Transaction,
    Value,
    columns_of,
    for_each,
    insert,
    makes_room,
    value_of,
)

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred


class KeptPassword(Struct, frozen=True):
    """An account and the hash of its password, if it has one."""

    account: Account
    password_hash: str | None


class SessionRow(Struct, frozen=True):
    """A session that has not ended, and whose it is."""

    account: Account
    created_at: Instant
    seen_at: Instant


_ACCOUNT_COLUMNS = f"{columns_of(Account, 'account', 'mailbox_name')}, inbox.mailbox_name"

ACCOUNTS = 0x6D61_6961
"""The work of adding accounts: of several daemons one does it at a time."""

_TABLES = "account JOIN inbox ON inbox.account_id = account.id"


def _insert_account(transaction: Transaction, account: Account) -> AccountNameTaken | None:
    """Insert an account and its empty inbox; the operator's role moves to it where it has it."""
    # Names, the operator and invitations are looked at before they are given away.
    transaction.lock(ACCOUNTS)
    names = [row.name for row in transaction.rows("SELECT name FROM account")]
    if account.name in names:
        return AccountNameTaken(f"there is an account named {account.name!r} already")
    if any(look_alike(account.name, name) for name in names):
        problem = (
            f"the name {account.name!r} looks like that of another account: choose another one"
        )
        return AccountNameTaken(problem)
    if account.is_operator:
        transaction.execute("UPDATE account SET is_operator = 0 WHERE is_operator = 1")
    row = asdict(account) | {"is_operator": int(account.is_operator)}
    mailbox_name = row.pop("mailbox_name")
    insert(transaction, "account", [row])
    transaction.execute(
        "INSERT INTO inbox (account_id, mailbox_name, last_position, message_count, byte_count) "
        "VALUES (?, ?, 0, 0, 0)",
        (account.id, mailbox_name),
    )
    return None


_ACCOUNT = f"SELECT {_ACCOUNT_COLUMNS} FROM {_TABLES}"

_KEY_COLUMNS = columns_of(ApiKey, "api_key")


class AccountStore:
    """Accounts and their API keys."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add_account(self, account: Account) -> Deferred[None]:
        """Add an account and its empty inbox; the operator's role moves to it where it has it.

        :raises AccountNameTaken: there is one of this name.
        """
        return self._engine.write(_add_account, account)

    def find_account(self, name: str) -> Deferred[Account | None]:
        """Find an account by name."""

        def query(transaction: Transaction) -> Account | None:
            row = transaction.row(f"{_ACCOUNT} WHERE account.name = ?", (name,))
            return None if row is None else value_of(Account, row)

        return self._engine.read(query)

    def list_accounts(self) -> Deferred[list[Account]]:
        """List all accounts, oldest first."""
        return self._engine.read(
            lambda t: [
                value_of(Account, row)
                for row in t.rows(f"{_ACCOUNT} ORDER BY account.created_at, account.id")
            ]
        )

    def add_key(self, key: ApiKey, digest: bytes) -> Deferred[None]:
        """Add an API key by its digest; nothing happens when there is one of this digest."""
        return self._engine.write(_add_key, (key, digest))

    def find_key(self, digest: bytes) -> Deferred[ApiKey | None]:
        """Find a key by the digest of its secret, a revoked one too."""

        def query(transaction: Transaction) -> ApiKey | None:
            row = transaction.row(
                f"SELECT {_KEY_COLUMNS} FROM api_key WHERE digest = ?",
                (digest,),
            )
            return None if row is None else value_of(ApiKey, row)

        return self._engine.read(query)

    def find_caller(self, digest: bytes) -> Deferred[tuple[ApiKey, Position] | None]:
        """Find a key as `find_key` does, and the newest position of its inbox at that moment."""

        def query(transaction: Transaction) -> tuple[ApiKey, Position] | None:
            row = transaction.row(
                f"SELECT {_KEY_COLUMNS}, last_position FROM api_key "
                "JOIN inbox USING (account_id) WHERE digest = ?",
                (digest,),
            )
            return None if row is None else (value_of(ApiKey, row), row.last_position)

        return self._engine.read(query)

    def list_keys(self, account_id: AccountId) -> Deferred[list[ApiKey]]:
        """List the keys of an account, oldest first."""
        return self._engine.read(
            lambda t: [
                value_of(ApiKey, row)
                for row in t.rows(
                    f"SELECT {_KEY_COLUMNS} FROM api_key WHERE account_id = ? "
                    "ORDER BY created_at, id",
                    (account_id,),
                )
            ]
        )

    def revoke_key(self, key_id: KeyId, now: Instant) -> Deferred[bool]:
        """Revoke a key for good; false when there is none (left) to revoke."""
        return self._engine.write(_revoke_key, (now, key_id))

    def revoked_of(self, key_ids: Sequence[KeyId]) -> Deferred[list[KeyId]]:
        """Give those of these keys that have been revoked."""
        query = "SELECT id FROM api_key WHERE revoked_at IS NOT NULL AND id IN ({rows})"
        return self._engine.read(
            lambda t: [row.id for row in t.rows_over(query, [(one,) for one in key_ids])]
        )

    def set_key_fault(self, key_id: KeyId, every: int | None) -> Deferred[bool]:
        """Let every so manieth mail of a valid key fail, or none; false where there is no such."""
        return self._engine.write(_set_key_fault, (every, key_id))

    def note_key_use(self, uses: Sequence[tuple[KeyId, Instant]]) -> Deferred[None]:
        """Remember when keys were last used."""
        return self._engine.write(_note_key_use, uses)


@for_each
def _add_account(transaction: Transaction, account: Account) -> AccountNameTaken | None:
    return _insert_account(transaction, account)


@for_each
def _add_key(transaction: Transaction, item: tuple[ApiKey, bytes]) -> None:
    key, digest = item
    values: dict[str, Value] = asdict(key) | {"digest": digest}
    transaction.execute(
        f"INSERT INTO api_key ({', '.join(values)}) VALUES ({', '.join('?' * len(values))}) "
        "ON CONFLICT (digest) DO NOTHING",
        tuple(values.values()),
    )


@for_each
def _revoke_key(transaction: Transaction, item: tuple[Instant, KeyId]) -> bool:
    return bool(
        transaction.execute(
            "UPDATE api_key SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL", item
        )
    )


@for_each
def _set_key_fault(transaction: Transaction, item: tuple[int | None, KeyId]) -> bool:
    return bool(
        transaction.execute(
            "UPDATE api_key SET fails_every = ? WHERE id = ? AND revoked_at IS NULL", item
        )
    )


@for_each
def _note_key_use(transaction: Transaction, uses: Sequence[tuple[KeyId, Instant]]) -> None:
    # In one order for everybody; a later use that another daemon has noted stays.
    transaction.execute_many(
        "UPDATE api_key SET last_used_at = ? "
        "WHERE id = ? AND (last_used_at IS NULL OR last_used_at < ?)",
        [(moment, key, moment) for key, moment in sorted(uses)],
    )


_INTO_PASSWORD = "INSERT INTO account_password (account_id, hash, changed_at) VALUES (?, ?, ?)"  # noqa: S105


class PasswordStore:
    """Passwords, and accounts that people make for themselves."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def find_password(self, name: str) -> Deferred[KeptPassword | None]:
        """Find an account by its name, with the hash of its password."""

        def query(transaction: Transaction) -> KeptPassword | None:
            row = transaction.row(
                f"SELECT account_password.hash AS password_hash, {_ACCOUNT_COLUMNS} FROM {_TABLES} "
                f"LEFT JOIN account_password ON account_password.account_id = account.id "
                f"WHERE account.name = ?",
                (name,),
            )
            return None if row is None else KeptPassword(value_of(Account, row), row.password_hash)

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
    taken = _insert_account(transaction, account)
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


class SessionStore:
    """Sessions of the dashboard, by the digest of their secret."""

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
                f"SELECT dashboard_session.created_at AS begun_at, dashboard_session.seen_at, "
                f"{_ACCOUNT_COLUMNS} FROM {_TABLES} "
                f"JOIN dashboard_session ON dashboard_session.account_id = account.id "
                f"WHERE dashboard_session.digest = ? AND dashboard_session.ends_at > ?",
                (digest, now),
            )
            if row is None:
                return None
            return SessionRow(value_of(Account, row), row.begun_at, row.seen_at)

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
