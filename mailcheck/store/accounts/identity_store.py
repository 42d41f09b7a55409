"""Identities of a company's sign-in service, and links with which the operator lets people in."""

from __future__ import annotations

from mailcheck.core.accounts import Account
from mailcheck.core.audit import AuditEntry
from mailcheck.core.errors import AccountNameTaken, IdentityTaken
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import Instant
from mailcheck.core.signing_in.company import KnownPerson, LinkedIdentity, ManagedPerson
from mailcheck.ports.engine import Transaction, Value
from mailcheck.store.accounts.account_store import (
    ACCOUNT_COLUMNS,
    ACCOUNT_TABLES,
    ACCOUNTS,
    ACCOUNTS_LOCK,
    insert_account,
)
from mailcheck.store.accounts.audit_store import write_entry, write_entry_if
from mailcheck.store.transactions import (
    Store,
    columns_of,
    insert,
    read,
    read_value,
    read_values,
    row_of,
    value_of,
    write,
)

_IDENTITY = columns_of(LinkedIdentity, "linked_identity")


class IdentityStore(Store):
    """Linked identities and sign-in links."""

    @read
    def find_account(self, transaction: Transaction, issuer: str, subject: str) -> Account | None:
        """Return the account of an identity, or `None`."""
        return _find_account(transaction, issuer, subject)

    @write
    def add_person(
        self,
        transaction: Transaction,
        account: Account,
        identity: LinkedIdentity,
        entry: AuditEntry,
    ) -> KnownPerson | AccountNameTaken:
        """Add an account with its identity. If the identity is known meanwhile, return its account.

        :raises AccountNameTaken: the name exists, or looks like an existing one.
        """
        transaction.lock(ACCOUNTS_LOCK)
        known = _find_account(transaction, identity.issuer, identity.subject)
        if known is not None:
            return KnownPerson(known, is_new=False)
        taken = insert_account(transaction, account)
        if taken is not None:
            return taken
        insert(transaction, "linked_identity", [row_of(identity)])
        write_entry(transaction, entry)
        return KnownPerson(account, is_new=True)

    @write
    def link(
        self, transaction: Transaction, identity: LinkedIdentity, entry: AuditEntry
    ) -> IdentityTaken | None:
        """Link an identity to an account, in place of another identity of the same issuer.

        :raises IdentityTaken: the identity signs in to another account.
        """
        transaction.lock(ACCOUNTS_LOCK)
        known = _find_account(transaction, identity.issuer, identity.subject)
        if known is not None and known.id != identity.account_id:
            return IdentityTaken("this person signs in to another account; remove that link first")
        transaction.execute(
            "DELETE FROM linked_identity WHERE account_id = ? AND issuer = ?",
            (identity.account_id, identity.issuer),
        )
        insert(transaction, "linked_identity", [row_of(identity)])
        write_entry(transaction, entry)
        return None

    @write
    def note_external_id(
        self, transaction: Transaction, issuer: str, subject: str, external_id: str | None
    ) -> None:
        """Record the id that a person who signs in has in the directory."""
        transaction.execute(
            "UPDATE linked_identity SET external_id = ? WHERE issuer = ? AND subject = ?",
            (external_id, issuer, subject),
        )

    @read
    def find_managed(self, transaction: Transaction, external_id: str) -> ManagedPerson | None:
        """Return the account that the directory manages under an id, or `None`."""
        row = transaction.row(
            f"SELECT {ACCOUNT_COLUMNS}, provisioned_user.is_created FROM {ACCOUNT_TABLES} "
            "JOIN provisioned_user ON provisioned_user.account_id = account.id "
            "WHERE provisioned_user.external_id = ?",
            (external_id,),
        )
        return None if row is None else ManagedPerson(value_of(Account, row), bool(row.is_created))

    @write
    def unlink(self, transaction: Transaction, account_id: AccountId, entry: AuditEntry) -> bool:
        """Remove all identities of an account; return false if it has none."""
        sql = "DELETE FROM linked_identity WHERE account_id = ?"
        return write_entry_if(transaction, entry, transaction.execute(sql, (account_id,)))

    @read
    def identities_of(
        self, transaction: Transaction, account_id: AccountId
    ) -> list[LinkedIdentity]:
        """Return the identities of an account."""
        sql = f"SELECT {_IDENTITY} FROM linked_identity WHERE account_id = ? ORDER BY issuer"
        return read_values(transaction, LinkedIdentity, sql, (account_id,))

    @write
    def add_link(
        self,
        transaction: Transaction,
        digest: bytes,
        account_id: AccountId,
        expires_at: Instant,
        entry: AuditEntry,
    ) -> None:
        """Add a sign-in link, and delete expired ones."""
        transaction.execute("DELETE FROM sign_in_link WHERE expires_at <= ?", (entry.happened_at,))
        row: dict[str, Value] = {
            "digest": digest,
            "account_id": account_id,
            "expires_at": expires_at,
        }
        insert(transaction, "sign_in_link", [row])
        write_entry(transaction, entry)

    @write
    def use_link(self, transaction: Transaction, digest: bytes, now: Instant) -> Account | None:
        """Use up a sign-in link. Return its account, or `None` if the link is not valid."""
        account = read_value(
            transaction,
            Account,
            f"{ACCOUNTS} JOIN sign_in_link ON sign_in_link.account_id = account.id "
            "WHERE sign_in_link.digest = ? AND sign_in_link.expires_at > ?",
            (digest, now),
        )
        gone = transaction.execute("DELETE FROM sign_in_link WHERE digest = ?", (digest,))
        return account if gone else None


def _find_account(transaction: Transaction, issuer: str, subject: str) -> Account | None:
    sql = (
        f"{ACCOUNTS} JOIN linked_identity ON linked_identity.account_id = account.id "
        "WHERE linked_identity.issuer = ? AND linked_identity.subject = ?"
    )
    return read_value(transaction, Account, sql, (issuer, subject))
