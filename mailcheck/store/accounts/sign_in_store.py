"""The store of passwords, registrations, invitations and sessions."""

from __future__ import annotations

from msgspec import Struct

from mailcheck.core.accounts import Account
from mailcheck.core.audit import AuditEntry
from mailcheck.core.errors import AccountNameTaken, InvitationInvalid
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import Instant
from mailcheck.core.projects import Membership
from mailcheck.ports.engine import Transaction, Value
from mailcheck.store.accounts.account_store import (
    ACCOUNT_COLUMNS,
    ACCOUNT_TABLES,
    ACCOUNTS_LOCK,
    insert_account,
    memberships_of,
)
from mailcheck.store.accounts.audit_store import write_entry, write_entry_if
from mailcheck.store.transactions import Store, frees_space, insert, read, value_of, write

SESSION_ID_LENGTH = 8
"""Number of bytes of a session's digest in its id."""


INTO_PASSWORD = "INSERT INTO account_password (account_id, hash, changed_at) VALUES (?, ?, ?)"  # noqa: S105


class StoredPassword(Struct, frozen=True):
    """An account and the hash of its password, or `None` without a password.

    With ``needs_passkey``, the password alone does not sign in.
    """

    account: Account
    password_hash: str | None
    needs_passkey: bool = False


class SessionRow(Struct, frozen=True):
    """A session that has not ended, and its account.

    ``confirmed_at`` is when the person signed in or confirmed who they are. ``projects`` are those
    of the person that are not disabled, by name.
    """

    account: Account
    created_at: Instant
    seen_at: Instant
    confirmed_at: Instant
    projects: tuple[Membership, ...] = ()


class ListedSession(Struct, frozen=True):
    """A session as its owner sees it. ``id`` is not secret; ``client`` is the address."""

    id: str
    client: str
    created_at: Instant
    seen_at: Instant


class PasswordStore(Store):
    """Passwords, and accounts that people create for themselves."""

    @read
    def find_password(self, transaction: Transaction, name: str) -> StoredPassword | None:
        """Return an account by its name, with the hash of its password, or `None`."""
        row = transaction.row(
            "SELECT account_password.hash AS password_hash, account_password.needs_passkey, "
            f"{ACCOUNT_COLUMNS} "
            f"FROM {ACCOUNT_TABLES} "
            f"LEFT JOIN account_password ON account_password.account_id = account.id "
            f"WHERE account.name = ?",
            (name,),
        )
        if row is None:
            return None
        return StoredPassword(value_of(Account, row), row.password_hash, bool(row.needs_passkey))

    @write
    def set_password(
        self,
        transaction: Transaction,
        account_id: AccountId,
        password_hash: str,
        entry: AuditEntry,
    ) -> None:
        """Replace a password, and end all sessions of the account."""
        transaction.execute(
            f"{INTO_PASSWORD} ON CONFLICT (account_id) DO UPDATE "
            "SET hash = excluded.hash, changed_at = excluded.changed_at",
            (account_id, password_hash, entry.happened_at),
        )
        transaction.execute("DELETE FROM dashboard_session WHERE account_id = ?", (account_id,))
        write_entry(transaction, entry)

    @write
    def set_first_password(
        self,
        transaction: Transaction,
        account_id: AccountId,
        password_hash: str,
        entry: AuditEntry,
    ) -> bool:
        """Set the password of an account without one; return false if it has one."""
        changed = transaction.execute(
            f"{INTO_PASSWORD} ON CONFLICT (account_id) DO NOTHING",
            (account_id, password_hash, entry.happened_at),
        )
        return write_entry_if(transaction, entry, changed)

    @write
    def renew_hash(
        self, transaction: Transaction, account_id: AccountId, old: str, new: str
    ) -> None:
        """Replace a hash by another one of the same password, unless it was changed meanwhile."""
        transaction.execute(
            "UPDATE account_password SET hash = ? WHERE account_id = ? AND hash = ?",
            (new, account_id, old),
        )

    @write
    def register(
        self,
        transaction: Transaction,
        account: Account,
        password_hash: str,
        invitation: bytes | None,
        entry: AuditEntry,
    ) -> AccountNameTaken | InvitationInvalid | None:
        """Add an account with a password, and use up the invitation with this digest, if any.

        :raises AccountNameTaken: the name is taken; the invitation stays valid.
        :raises InvitationInvalid: it was used, has expired, or never existed; no account is added.
        """
        transaction.lock(ACCOUNTS_LOCK)
        now = entry.happened_at
        if invitation is not None and not _has_invitation(transaction, invitation, now):
            return InvitationInvalid("this invitation was used before, or has expired")
        taken = insert_account(transaction, account)
        if taken is not None:
            return taken
        transaction.execute(INTO_PASSWORD, (account.id, password_hash, now))
        if invitation is not None:
            transaction.execute("DELETE FROM invitation WHERE digest = ?", (invitation,))
        write_entry(transaction, entry)
        return None

    @write
    def add_invitation(
        self, transaction: Transaction, digest: bytes, expires_at: Instant, entry: AuditEntry
    ) -> None:
        """Add an invitation, and delete expired ones."""
        now = entry.happened_at
        transaction.execute("DELETE FROM invitation WHERE expires_at <= ?", (now,))
        transaction.execute(
            "INSERT INTO invitation (digest, created_at, expires_at) VALUES (?, ?, ?)",
            (digest, now, expires_at),
        )
        write_entry(transaction, entry)

    @read
    def has_invitation(self, transaction: Transaction, digest: bytes, now: Instant) -> bool:
        """Return whether an invitation is valid."""
        return _has_invitation(transaction, digest, now)


def _has_invitation(transaction: Transaction, digest: bytes, now: Instant) -> bool:
    row = transaction.row(
        "SELECT 1 FROM invitation WHERE digest = ? AND expires_at > ?", (digest, now)
    )
    return row is not None


class SessionStore(Store):
    """Sessions of the dashboard, by the digest of their secret."""

    @write
    def open_session(
        self,
        transaction: Transaction,
        digest: bytes,
        account_id: AccountId,
        ends_at: Instant,
        entry: AuditEntry,
        is_company: bool = False,
    ) -> None:
        """Add a session for the client of the entry, and delete ended ones."""
        now = entry.happened_at
        transaction.execute("DELETE FROM dashboard_session WHERE ends_at <= ?", (now,))
        row: dict[str, Value] = {
            "digest": digest,
            "account_id": account_id,
            "client": entry.client,
            "created_at": now,
            "seen_at": now,
            "confirmed_at": now,
            "ends_at": ends_at,
            "is_company": int(is_company),
        }
        insert(transaction, "dashboard_session", [row])
        write_entry(transaction, entry)

    @read
    def list_sessions(
        self, transaction: Transaction, account_id: AccountId, now: Instant
    ) -> list[ListedSession]:
        """Return the sessions of an account that have not ended, the last used first."""
        return [
            ListedSession(session_id(row.digest), row.client, row.created_at, row.seen_at)
            for row in transaction.rows(
                "SELECT digest, client, created_at, seen_at FROM dashboard_session "
                "WHERE account_id = ? AND ends_at > ? ORDER BY seen_at DESC, created_at DESC",
                (account_id, now),
            )
        ]

    @read
    def find_session(
        self, transaction: Transaction, digest: bytes, now: Instant
    ) -> SessionRow | None:
        """Return a session that has not ended, or `None`."""
        row = transaction.row(
            "SELECT dashboard_session.created_at AS begun_at, dashboard_session.seen_at, "
            f"dashboard_session.confirmed_at, {ACCOUNT_COLUMNS} FROM {ACCOUNT_TABLES} "
            "JOIN dashboard_session ON dashboard_session.account_id = account.id "
            "WHERE dashboard_session.digest = ? AND dashboard_session.ends_at > ?",
            (digest, now),
        )
        if row is None:
            return None
        projects = [
            membership
            for membership in memberships_of(transaction, row.id)
            if membership.project.disabled_at is None
        ]
        account = value_of(Account, row)
        return SessionRow(account, row.begun_at, row.seen_at, row.confirmed_at, tuple(projects))

    @write
    def note_confirmation(self, transaction: Transaction, digest: bytes, now: Instant) -> None:
        """Record that the person of a session has confirmed who they are."""
        transaction.execute(
            "UPDATE dashboard_session SET confirmed_at = ? WHERE digest = ?", (now, digest)
        )

    @write
    def note_session_use(
        self, transaction: Transaction, digest: bytes, now: Instant, ends_at: Instant
    ) -> None:
        """Record the last use of a session, and when it ends without further use."""
        transaction.execute(
            "UPDATE dashboard_session SET seen_at = ?, ends_at = ? WHERE digest = ?",
            (now, ends_at, digest),
        )

    @frees_space
    @write
    def end_session(self, transaction: Transaction, digest: bytes, entry: AuditEntry) -> bool:
        """End a session, if it exists. Return whether the company's sign-in service opened it."""
        row = transaction.row(
            "DELETE FROM dashboard_session WHERE digest = ? RETURNING is_company", (digest,)
        )
        if row is None:
            return False
        write_entry(transaction, entry)
        return bool(row.is_company)

    @frees_space
    @write
    def end_listed(
        self,
        transaction: Transaction,
        account_id: AccountId,
        listed_id: str,
        entry: AuditEntry,
    ) -> bool:
        """End a session of an account by its id (`session_id`); return false if there is none."""
        ended = delete_listed(transaction, "dashboard_session", "account_id", account_id, listed_id)
        return write_entry_if(transaction, entry, ended)


def delete_listed(
    transaction: Transaction, table: str, owner: str, account_id: AccountId, listed_id: str
) -> int:
    """Delete the rows of an account whose digests have an id in lists; return their number.

    :param owner: the column of the account.
    """
    rows = transaction.rows(f"SELECT digest FROM {table} WHERE {owner} = ?", (account_id,))
    digests = [(row.digest,) for row in rows if session_id(row.digest) == listed_id]
    transaction.execute_many(f"DELETE FROM {table} WHERE digest = ?", digests)
    return len(digests)


def session_id(digest: bytes) -> str:
    """Return the id of a session in lists: the beginning of its digest, which opens nothing."""
    return bytes(digest)[:SESSION_ID_LENGTH].hex()
