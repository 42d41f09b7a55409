"""Passkeys, and challenges that wait for an answer."""

from __future__ import annotations

from mailcheck.core.accounts import Account
from mailcheck.core.audit import Action, AuditEntry
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import Instant
from mailcheck.core.signing_in.passkeys import MAX_PASSKEYS, Passkey
from mailcheck.ports.engine import Transaction, Value
from mailcheck.store.accounts.account_store import ACCOUNTS, ACCOUNTS_LOCK
from mailcheck.store.accounts.audit_store import write_entry, write_entry_if
from mailcheck.store.transactions import (
    Store,
    columns_of,
    insert,
    read,
    read_value,
    read_values,
    row_of,
    write,
)

_PASSKEY = columns_of(Passkey, "passkey")


class PasskeyStore(Store):
    """Passkeys of accounts. A credential id belongs to one passkey."""

    @write
    def add_passkey(
        self, transaction: Transaction, passkey: Passkey, entry: AuditEntry
    ) -> InvalidParameter | None:
        """Add a passkey.

        :raises InvalidParameter: the account has the maximum number, or the credential is known.
        """
        transaction.lock(ACCOUNTS_LOCK)
        if len(_list(transaction, passkey.account_id)) >= MAX_PASSKEYS:
            problem = f"an account has at most {MAX_PASSKEYS} passkeys: remove one first"
            return InvalidParameter("credential", problem)
        known = transaction.row(
            "SELECT 1 FROM passkey WHERE credential_id = ?", (passkey.credential_id,)
        )
        if known is not None:
            return InvalidParameter("credential", "this passkey is registered already")
        insert(transaction, "passkey", [row_of(passkey)])
        write_entry(transaction, entry)
        return None

    @read
    def passkeys_of(self, transaction: Transaction, account_id: AccountId) -> list[Passkey]:
        """Return the passkeys of an account, oldest first."""
        return _list(transaction, account_id)

    @read
    def find_passkey(
        self, transaction: Transaction, credential_id: bytes
    ) -> tuple[Passkey, Account] | None:
        """Return a passkey by its credential id, with its account, or `None`."""
        sql = f"SELECT {_PASSKEY} FROM passkey WHERE credential_id = ?"
        found = read_value(transaction, Passkey, sql, (credential_id,))
        if found is None:
            return None
        sql = f"{ACCOUNTS} WHERE account.id = ?"
        owner = read_value(transaction, Account, sql, (found.account_id,))
        return None if owner is None else (found, owner)

    @write
    def note_use(
        self, transaction: Transaction, passkey_id: str, sign_count: int, now: Instant
    ) -> bool:
        """Record a use. Return false if the counter has not grown, as of a copied passkey."""
        return bool(
            transaction.execute(
                "UPDATE passkey SET sign_count = ?, last_used_at = ? "
                "WHERE id = ? AND (sign_count < ? OR (sign_count = 0 AND ? = 0))",
                (sign_count, now, passkey_id, sign_count, sign_count),
            )
        )

    @write
    def rename_passkey(
        self,
        transaction: Transaction,
        account_id: AccountId,
        passkey_id: str,
        name: str,
        entry: AuditEntry,
    ) -> bool:
        """Rename a passkey of an account; return false if there is none."""
        sql = "UPDATE passkey SET name = ? WHERE id = ? AND account_id = ?"
        changed = transaction.execute(sql, (name, passkey_id, account_id))
        return write_entry_if(transaction, entry, changed)

    @write
    def remove_passkeys(
        self,
        transaction: Transaction,
        account_id: AccountId,
        passkey_id: str | None,
        entry: AuditEntry,
    ) -> list[str]:
        """Remove one or all passkeys of an account; return the names of the removed ones.

        After the last one, the password alone signs in again.
        """
        return _remove(transaction, account_id, passkey_id, entry)

    @write
    def remove_spare_passkey(
        self,
        transaction: Transaction,
        account_id: AccountId,
        passkey_id: str,
        entry: AuditEntry,
        *,
        has_passwords: bool,
    ) -> list[str] | InvalidParameter:
        """Remove a passkey as `remove_passkeys` does, unless it is the last way to sign in.

        :param has_passwords: whether a password is a way to sign in.
        :raises InvalidParameter: the person could not sign in any more.
        """
        tables = ["linked_identity", *(["account_password"] if has_passwords else [])]
        transaction.lock(ACCOUNTS_LOCK)
        if [passkey.id for passkey in _list(transaction, account_id)] == [passkey_id] and not any(
            transaction.rows(f"SELECT 1 FROM {table} WHERE account_id = ?", (account_id,))
            for table in tables
        ):
            return InvalidParameter(
                "id", "this passkey is your only way to sign in: add another one first"
            )
        return _remove(transaction, account_id, passkey_id, entry)

    @write
    def require_passkey(
        self,
        transaction: Transaction,
        account_id: AccountId,
        entry: AuditEntry,
        *,
        is_required: bool,
    ) -> bool:
        """Require a passkey after the password, or not. Return false if there is no passkey."""
        if is_required and not _list(transaction, account_id):
            return False
        changed = _require_passkey(transaction, account_id, is_required=is_required)
        return write_entry_if(transaction, entry, changed)

    @write
    def add_challenge(
        self, transaction: Transaction, digest: bytes, now: Instant, expires_at: Instant
    ) -> None:
        """Add a challenge, and delete expired ones."""
        transaction.execute("DELETE FROM passkey_challenge WHERE expires_at <= ?", (now,))
        row: dict[str, Value] = {"digest": digest, "expires_at": expires_at}
        insert(transaction, "passkey_challenge", [row])

    @write
    def use_challenge(self, transaction: Transaction, digest: bytes, now: Instant) -> bool:
        """Use up a challenge; return false if it is unknown, used or expired."""
        row = transaction.row(
            "DELETE FROM passkey_challenge WHERE digest = ? RETURNING expires_at", (digest,)
        )
        return row is not None and bool(row.expires_at > now)


def _remove(
    transaction: Transaction, account_id: AccountId, passkey_id: str | None, entry: AuditEntry
) -> list[str]:
    removed = [
        key for key in _list(transaction, account_id) if passkey_id is None or key.id == passkey_id
    ]
    for number, passkey in enumerate(removed):
        transaction.execute("DELETE FROM passkey WHERE id = ?", (passkey.id,))
        write_entry(
            transaction, entry.followed_by(number, Action(entry.action), account_id, passkey.name)
        )
    if not _list(transaction, account_id):
        _require_passkey(transaction, account_id, is_required=False)
    return [key.name for key in removed]


def _list(transaction: Transaction, account_id: AccountId) -> list[Passkey]:
    sql = f"SELECT {_PASSKEY} FROM passkey WHERE account_id = ? ORDER BY created_at, id"
    return read_values(transaction, Passkey, sql, (account_id,))


def _require_passkey(transaction: Transaction, account_id: AccountId, *, is_required: bool) -> int:
    return transaction.execute(
        "UPDATE account_password SET needs_passkey = ? WHERE account_id = ?",
        (int(is_required), account_id),
    )
