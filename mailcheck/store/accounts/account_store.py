"""The store of accounts and API keys."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from mailcheck.core.accounts import Access, Account, AccountLimits, AccountUse, PersonalAccess
from mailcheck.core.audit import AuditEntry
from mailcheck.core.errors import AccountNameTaken
from mailcheck.core.identifiers import AccountId, KeyId
from mailcheck.core.instants import Instant
from mailcheck.core.projects import Membership
from mailcheck.ports.engine import Transaction
from mailcheck.store.accounts.audit_store import write_entry, write_entry_if
from mailcheck.store.accounts.confusable_names import look_alike
from mailcheck.store.accounts.key_store import IS_GRANTED, KeyStore
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

ACCOUNT_COLUMNS = f"{columns_of(Account, 'account', 'mailbox_name')}, inbox.mailbox_name"

ACCOUNTS_LOCK = 0x6D61_6961
"""Lock for creating accounts, which one daemon does at a time."""

ACCOUNT_TABLES = "account JOIN inbox ON inbox.account_id = account.id"


_WITHOUT_OPERATOR = "UPDATE account SET is_operator = 0 WHERE is_operator = 1"


def _find_taken(
    transaction: Transaction, wanted: str, except_for: AccountId | None = None
) -> AccountNameTaken | None:
    """Return an error if another account has this name, or one that looks like it."""
    names = [
        row.name for row in transaction.rows("SELECT id, name FROM account") if row.id != except_for
    ]
    if wanted in names:
        return AccountNameTaken(f"there is an account named {wanted!r} already")
    if any(look_alike(wanted, name) for name in names):
        return AccountNameTaken(
            f"the name {wanted!r} looks like that of another account: choose another one"
        )
    return None


def insert_account(transaction: Transaction, account: Account) -> AccountNameTaken | None:
    """Insert an account and its empty inbox, and transfer the operator's role if it has it."""
    # Names, the operator and invitations are checked before they are used.
    transaction.lock(ACCOUNTS_LOCK)
    taken = _find_taken(transaction, account.name)
    if taken is not None:
        return taken
    if account.is_operator:
        transaction.execute(_WITHOUT_OPERATOR)
    insert(transaction, "account", [row_of(account, "mailbox_name")])
    transaction.execute(
        "INSERT INTO inbox (account_id, mailbox_name, last_position, message_count, byte_count) "
        "VALUES (?, ?, 0, 0, 0)",
        (account.id, account.mailbox_name),
    )
    return None


def rename_account(
    transaction: Transaction, account_id: AccountId, name: str, entry: AuditEntry
) -> AccountNameTaken | None:
    """Rename an account, and note it, in the transaction of a larger change.

    :raises AccountNameTaken: another account has the name, or a similar one.
    """
    transaction.lock(ACCOUNTS_LOCK)
    taken = _find_taken(transaction, name, account_id)
    if taken is None:
        transaction.execute("UPDATE account SET name = ? WHERE id = ?", (name, account_id))
        write_entry(transaction, entry)
    return taken


def disable_account(transaction: Transaction, account_id: AccountId, entry: AuditEntry) -> bool:
    """Disable an account as `AccountStore.disable` does, in the transaction of a larger change."""
    transaction.execute("DELETE FROM dashboard_session WHERE account_id = ?", (account_id,))
    sql = "UPDATE account SET disabled_at = ? WHERE id = ? AND disabled_at IS NULL"
    changed = transaction.execute(sql, (entry.happened_at, account_id))
    return write_entry_if(transaction, entry, changed)


def enable_account(transaction: Transaction, account_id: AccountId, entry: AuditEntry) -> bool:
    """Enable an account as `AccountStore.enable` does, in the transaction of a larger change."""
    sql = "UPDATE account SET disabled_at = NULL WHERE id = ? AND disabled_at IS NOT NULL"
    return write_entry_if(transaction, entry, transaction.execute(sql, (account_id,)))


ACCOUNTS = f"SELECT {ACCOUNT_COLUMNS} FROM {ACCOUNT_TABLES}"
"""Selects the columns of `Account`."""

FIRST_ACCOUNT = ""
"""Stands for the first account among the names in the configuration."""


def _bound_to(transaction: Transaction, name: str) -> Account | None:
    sql = (
        f"{ACCOUNTS} JOIN configured_account ON configured_account.account_id = account.id "
        "WHERE configured_account.name = ?"
    )
    return read_value(transaction, Account, sql, (name,))


def _find_named(transaction: Transaction, name: str) -> Account | None:
    return read_value(transaction, Account, f"{ACCOUNTS} WHERE account.name = ?", (name,))


def _bind(transaction: Transaction, name: str, account_id: AccountId) -> None:
    transaction.execute(
        "INSERT INTO configured_account (name, account_id) VALUES (?, ?) "
        "ON CONFLICT (name) DO NOTHING",
        (name, account_id),
    )


_USES = f"""
    SELECT {ACCOUNT_COLUMNS}, inbox.message_count, inbox.byte_count, (
        SELECT MAX(used_at) FROM (
            SELECT last_used_at AS used_at FROM api_key WHERE api_key.account_id = account.id
            UNION ALL SELECT seen_at FROM dashboard_session
            WHERE dashboard_session.account_id = account.id
        ) AS uses
    ) AS last_active_at
    FROM {ACCOUNT_TABLES} ORDER BY account.created_at, account.id
"""


_GRANTED_BY = "(granted_by = ? OR account_id = ?)"
"""The condition for access of programs that a person has connected to any project, or of a project
itself."""

_ACCESS = f"""
    SELECT (SELECT COUNT(*) FROM dashboard_session WHERE account_id = ? AND ends_at > ?)
        AS sessions,
    (SELECT COUNT(*) FROM api_key WHERE client_id IS NOT NULL AND revoked_at IS NULL
        AND (expires_at IS NULL OR expires_at > ?) AND {_GRANTED_BY}) AS programs,
    (SELECT COUNT(*) FROM api_key WHERE client_id IS NULL AND revoked_at IS NULL
        AND (expires_at IS NULL OR expires_at > ?) AND account_id = ?) AS keys,
    (SELECT COUNT(*) FROM api_key WHERE client_id IS NULL AND revoked_at IS NULL
        AND (expires_at IS NULL OR expires_at > ?) AND account_id <> ? AND made_by = ?)
        AS shared_keys
"""


def _access_of(transaction: Transaction, account_id: AccountId, now: Instant) -> PersonalAccess:
    person = (account_id, account_id)
    (row,) = transaction.rows(
        _ACCESS, (account_id, now, now, *person, now, account_id, now, *person)
    )
    return value_of(PersonalAccess, row)


class AccountNames(Store):
    """Names of accounts, by which the hosts are configured that their webhooks may reach."""

    @read
    def account_name(self, transaction: Transaction, account_id: AccountId) -> str:
        """Return the name of an account, or an empty string if it does not exist."""
        row = transaction.row("SELECT name FROM account WHERE id = ?", (account_id,))
        return "" if row is None else str(row.name)


class AccountStore(KeyStore):
    """Accounts and their API keys."""

    @write
    def add_account(
        self, transaction: Transaction, account: Account, entry: AuditEntry
    ) -> AccountNameTaken | None:
        """Add an account and its empty inbox, and transfer the operator's role if it has it.

        The very first account is the one that the configuration means by an empty name.

        :raises AccountNameTaken: the name exists, or looks like an existing one.
        """
        taken = insert_account(transaction, account)
        if taken is not None:
            return taken
        if len(transaction.rows("SELECT id FROM account LIMIT 2")) == 1:
            _bind(transaction, FIRST_ACCOUNT, account.id)
        write_entry(transaction, entry)
        return None

    @read
    def first_account(self, transaction: Transaction) -> Account | None:
        """Return the first account, unless it was deleted or a visitor has made it."""
        return _bound_to(transaction, FIRST_ACCOUNT)

    @write
    def bind(self, transaction: Transaction, name: str) -> Account | None:
        """Return the account that was meant by a name first, or `None`.

        It is the account that has the name at the first call, even if it is renamed later.
        """
        known = _bound_to(transaction, name)
        if known is not None:
            return known
        found = _find_named(transaction, name)
        if found is not None:
            _bind(transaction, name, found.id)
        return found

    @read
    def find_account(self, transaction: Transaction, name: str) -> Account | None:
        """Return an account by its name, or `None`."""
        return _find_named(transaction, name)

    @read
    def get_account(self, transaction: Transaction, account_id: str) -> Account | None:
        """Return an account by its id, or `None`."""
        sql = f"{ACCOUNTS} WHERE account.id = ?"
        return read_value(transaction, Account, sql, (account_id,))

    @read
    def list_accounts(self, transaction: Transaction) -> list[Account]:
        """Return all accounts, oldest first."""
        sql = f"{ACCOUNTS} ORDER BY account.created_at, account.id"
        return read_values(transaction, Account, sql)

    @read
    def list_uses(self, transaction: Transaction) -> list[AccountUse]:
        """Return all accounts with the size of their inboxes and their last activity."""
        return [
            value_of(AccountUse, row, account=value_of(Account, row))
            for row in transaction.rows(_USES)
        ]

    @write
    def rename(
        self, transaction: Transaction, account_id: AccountId, name: str, entry: AuditEntry
    ) -> AccountNameTaken | None:
        """Rename an account. Its addresses stay.

        :raises AccountNameTaken: another account has the name, or a similar one.
        """
        return rename_account(transaction, account_id, name, entry)

    @write
    def set_limits(
        self,
        transaction: Transaction,
        account_id: AccountId,
        limits: AccountLimits,
        entry: AuditEntry,
    ) -> None:
        """Set the quota and the retention of an account; `None` is the configured one."""
        transaction.execute(
            "UPDATE account SET max_messages = ?, max_bytes = ?, retention_hours = ? WHERE id = ?",
            (limits.max_messages, limits.max_bytes, limits.retention_hours, account_id),
        )
        write_entry(transaction, entry)

    @write
    def make_operator(
        self, transaction: Transaction, account_id: AccountId, entry: AuditEntry
    ) -> None:
        """Transfer the operator's role to an account."""
        transaction.lock(ACCOUNTS_LOCK)
        transaction.execute(_WITHOUT_OPERATOR)
        transaction.execute("UPDATE account SET is_operator = 1 WHERE id = ?", (account_id,))
        write_entry(transaction, entry)

    @write
    def disable(self, transaction: Transaction, account_id: AccountId, entry: AuditEntry) -> bool:
        """Disable an account and end its sessions; return false if it is disabled already."""
        return disable_account(transaction, account_id, entry)

    @write
    def end_access(
        self, transaction: Transaction, account_id: AccountId, entry: AuditEntry
    ) -> PersonalAccess:
        """End the sessions of a person, and the access that the person has given to programs."""
        open_now = _access_of(transaction, account_id, entry.happened_at)
        transaction.execute("DELETE FROM dashboard_session WHERE account_id = ?", (account_id,))
        transaction.execute(
            "UPDATE api_key SET revoked_at = ? WHERE client_id IS NOT NULL AND revoked_at IS NULL "
            f"AND {_GRANTED_BY}",
            (entry.happened_at, account_id, account_id),
        )
        detail = f"{open_now.sessions} sessions, {open_now.programs} programs"
        write_entry(transaction, replace(entry, detail=detail))
        return open_now

    @read
    def access_of(
        self, transaction: Transaction, account_id: AccountId, now: Instant
    ) -> PersonalAccess:
        """Count what a person can use at a time."""
        return _access_of(transaction, account_id, now)

    @write
    def enable(self, transaction: Transaction, account_id: AccountId, entry: AuditEntry) -> bool:
        """Enable a disabled account; return false if it is not disabled."""
        return enable_account(transaction, account_id, entry)

    @read
    def ended_of(
        self, transaction: Transaction, accesses: Sequence[Access], now: Instant
    ) -> list[Access]:
        """Return the accesses that have ended.

        Callers without a key, such as pages, have an id that no key has.
        """
        ended_keys = _ended_keys(transaction, {access.key_id for access in accesses}, now)
        active = {
            row.id
            for row in transaction.rows_over(
                "SELECT id, disabled_at FROM account WHERE id IN ({rows})",
                [(account_id,) for account_id in {access.account_id for access in accesses}],
            )
            if row.disabled_at is None
        }
        seen = _seen_by(transaction, {access.session for access in accesses} - {b""}, now)
        passwords = _usable_passwords(
            transaction, {access.account_id for access in accesses if access.password_hash}
        )
        return [
            access
            for access in accesses
            if access.key_id in ended_keys
            or access.account_id not in active
            or (access.session and access.account_id not in seen.get(access.session, ()))
            or (access.password_hash and passwords.get(access.account_id) != access.password_hash)
            or (access.ends_at is not None and access.ends_at <= now)
        ]


def _ended_keys(transaction: Transaction, key_ids: set[KeyId], now: Instant) -> set[KeyId]:
    """Return the keys that are revoked or expired, or whose grantor may not grant them now."""
    return {
        row.id
        for row in transaction.rows_over(
            f"SELECT id, revoked_at, expires_at, {IS_GRANTED} AS is_granted "
            "FROM api_key WHERE id IN ({rows})",
            [(key_id,) for key_id in key_ids],
        )
        if row.revoked_at is not None
        or not row.is_granted
        or (row.expires_at is not None and row.expires_at <= now)
    }


def _seen_by(
    transaction: Transaction, digests: set[bytes], now: Instant
) -> dict[bytes, set[AccountId]]:
    """Return the accounts that each session may show: the person's own one, and its projects."""
    sessions = [
        row
        for row in transaction.rows_over(
            "SELECT digest, dashboard_session.account_id, ends_at, disabled_at "
            "FROM dashboard_session JOIN account ON account.id = dashboard_session.account_id "
            "WHERE digest IN ({rows})",
            [(digest,) for digest in digests],
        )
        if row.ends_at > now and row.disabled_at is None
    ]
    people = {row.account_id for row in sessions}
    projects: dict[AccountId, set[AccountId]] = {person: {person} for person in people}
    for row in transaction.rows_over(
        "SELECT project_id, account_id FROM member WHERE account_id IN ({rows})",
        [(person,) for person in people],
    ):
        projects[row.account_id].add(row.project_id)
    return {bytes(row.digest): projects[row.account_id] for row in sessions}


def _usable_passwords(
    transaction: Transaction, account_ids: set[AccountId]
) -> dict[AccountId, str]:
    """Return the hashes of the passwords that sign in without a passkey."""
    return {
        row.account_id: row.hash
        for row in transaction.rows_over(
            "SELECT account_id, hash, needs_passkey FROM account_password "
            "WHERE account_id IN ({rows})",
            [(account_id,) for account_id in account_ids],
        )
        if not row.needs_passkey
    }


def memberships_of(transaction: Transaction, account_id: AccountId) -> list[Membership]:
    """Return the projects of a person, by name."""
    rows = transaction.rows(
        f"SELECT {ACCOUNT_COLUMNS}, member.role FROM {ACCOUNT_TABLES} "
        "JOIN member ON member.project_id = account.id "
        "WHERE member.account_id = ? ORDER BY account.name",
        (account_id,),
    )
    return [value_of(Membership, row, project=value_of(Account, row)) for row in rows]
