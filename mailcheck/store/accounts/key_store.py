"""The store of API keys, and of the access of programs that is stored like keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.core.accounts import ApiKey, KeyMaker
from mailcheck.core.audit import AuditEntry
from mailcheck.core.cursors import Position
from mailcheck.core.identifiers import AccountId, KeyId
from mailcheck.core.instants import Instant
from mailcheck.core.projects import Role
from mailcheck.ports.engine import Transaction
from mailcheck.store.accounts.audit_store import write_entry
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

KEY_COLUMNS = columns_of(ApiKey, "api_key")

IS_GRANTED = f"""
    (api_key.granted_by IS NULL OR api_key.granted_by = api_key.account_id OR EXISTS (
        SELECT 1 FROM member JOIN account AS grantor ON grantor.id = member.account_id
        WHERE member.project_id = api_key.account_id AND grantor.id = api_key.granted_by
        AND member.role = '{Role.OWNER}' AND grantor.disabled_at IS NULL
    ))
"""
"""Whether the person who has granted a key to an OAuth client may still grant it."""


_MAKERS = """
    SELECT api_key.id AS key_id, COALESCE(api_key.made_by, api_key.granted_by) AS account_id,
        maker.name, CASE WHEN maker.id IS NOT NULL AND maker.disabled_at IS NULL AND (
            maker.id = api_key.account_id OR EXISTS (
                SELECT 1 FROM member WHERE member.project_id = api_key.account_id
                AND member.account_id = maker.id
            )
        ) THEN 1 ELSE 0 END AS is_present
    FROM api_key
    LEFT JOIN account AS maker ON maker.id = COALESCE(api_key.made_by, api_key.granted_by)
    WHERE api_key.account_id = ? AND COALESCE(api_key.made_by, api_key.granted_by) IS NOT NULL
"""


class KnownKey(Struct, frozen=True):
    """A key, the newest position of its inbox, and whether its account is disabled."""

    key: ApiKey
    position: Position
    is_disabled: bool


class KeyStore(Store):
    """API keys of accounts."""

    @write
    def add_key(
        self, transaction: Transaction, key: ApiKey, digest: bytes, entry: AuditEntry
    ) -> None:
        """Add an API key by its digest, unless the digest exists."""
        values = row_of(key, digest=digest)
        if transaction.execute(
            f"INSERT INTO api_key ({', '.join(values)}) VALUES ({', '.join('?' * len(values))}) "
            "ON CONFLICT (digest) DO NOTHING",
            tuple(values.values()),
        ):
            write_entry(transaction, entry)

    @read
    def find_key(self, transaction: Transaction, digest: bytes) -> ApiKey | None:
        """Return a key by the digest of its secret, even if it is revoked, or `None`."""
        sql = f"SELECT {KEY_COLUMNS} FROM api_key WHERE digest = ?"
        return read_value(transaction, ApiKey, sql, (digest,))

    @read
    def find_caller(self, transaction: Transaction, digest: bytes) -> KnownKey | None:
        """Return a key like `find_key`, with the state of its account."""
        row = transaction.row(
            f"SELECT {KEY_COLUMNS}, last_position, disabled_at FROM api_key "
            "JOIN inbox ON inbox.account_id = api_key.account_id "
            "JOIN account ON account.id = api_key.account_id WHERE digest = ?",
            (digest,),
        )
        if row is None:
            return None
        return KnownKey(value_of(ApiKey, row), row.last_position, row.disabled_at is not None)

    @read
    def get_key(self, transaction: Transaction, key_id: KeyId) -> ApiKey | None:
        """Return a key by its id, even if it is revoked, or `None`."""
        sql = f"SELECT {KEY_COLUMNS} FROM api_key WHERE id = ?"
        return read_value(transaction, ApiKey, sql, (key_id,))

    @read
    def makers_of(
        self, transaction: Transaction, account_id: AccountId
    ) -> Mapping[KeyId, KeyMaker]:
        """Return who has made the keys of an account, as far as it is known."""
        rows = transaction.rows(_MAKERS, (account_id,))
        return {
            row.key_id: KeyMaker(row.account_id, row.name or "", not row.is_present) for row in rows
        }

    @write
    def rotate_key(
        self,
        transaction: Transaction,
        key_id: KeyId,
        until: Instant,
        following: ApiKey,
        digest: bytes,
        entry: AuditEntry,
    ) -> ApiKey | None:
        """Add a key in place of a valid one, which expires at a time; return the older key.

        Return `None` if there is no valid key with this id. It never expires later than before.
        """
        older = read_value(
            transaction,
            ApiKey,
            "UPDATE api_key SET expires_at = CASE WHEN expires_at < ? THEN expires_at ELSE ? END "
            "WHERE id = ? AND revoked_at IS NULL AND client_id IS NULL "
            f"AND (expires_at IS NULL OR expires_at > ?) RETURNING {KEY_COLUMNS}",
            (until, until, key_id, entry.happened_at),
        )
        if older is not None:
            insert(transaction, "api_key", [row_of(following, digest=digest)])
            write_entry(transaction, entry)
        return older

    @read
    def list_keys(self, transaction: Transaction, account_id: AccountId) -> list[ApiKey]:
        """Return the keys of an account, oldest first."""
        sql = f"SELECT {KEY_COLUMNS} FROM api_key WHERE account_id = ? ORDER BY created_at, id"
        return read_values(transaction, ApiKey, sql, (account_id,))

    @write
    def revoke_key(
        self, transaction: Transaction, key_id: KeyId, entry: AuditEntry
    ) -> ApiKey | None:
        """Revoke a key permanently and return it; return `None` if the key is not valid."""
        key = revoke(transaction, key_id, entry.happened_at)
        if key is not None:
            _note_key(transaction, entry, key)
        return key

    @write
    def set_key_fault(self, transaction: Transaction, key_id: KeyId, every: int | None) -> bool:
        """Let every n-th mail of a valid key fail, or none; return false for any other key."""
        return bool(
            transaction.execute(
                "UPDATE api_key SET fails_every = ? WHERE id = ? AND revoked_at IS NULL",
                (every, key_id),
            )
        )

    @write
    def note_key_use(self, transaction: Transaction, uses: Sequence[tuple[KeyId, Instant]]) -> None:
        """Record when keys were last used."""
        # In the same order in all daemons. A later use that another daemon recorded stays.
        transaction.execute_many(
            "UPDATE api_key SET last_used_at = ? "
            "WHERE id = ? AND (last_used_at IS NULL OR last_used_at < ?)",
            [(moment, key, moment) for key, moment in sorted(uses)],
        )

    @write
    def add_key_days(
        self, transaction: Transaction, counts: Sequence[tuple[KeyId, int, int]], before: int
    ) -> None:
        """Add to the numbers of requests of keys by day, and delete days before one."""
        for key_id, day, requests in sorted(counts):
            transaction.execute(
                "INSERT INTO key_use_day (key_id, day, requests) "
                "SELECT id, ?, ? FROM api_key WHERE id = ? ON CONFLICT (key_id, day) "
                "DO UPDATE SET requests = key_use_day.requests + excluded.requests",
                (day, requests, key_id),
            )
        transaction.execute("DELETE FROM key_use_day WHERE day < ?", (before,))

    @read
    def key_days(
        self, transaction: Transaction, account_id: AccountId, since: int
    ) -> Mapping[int, int]:
        """Return the requests of all keys of an account by day, from a day on."""
        rows = transaction.rows(
            "SELECT day, SUM(requests) AS requests FROM key_use_day "
            "JOIN api_key ON api_key.id = key_use_day.key_id "
            "WHERE api_key.account_id = ? AND day >= ? GROUP BY day",
            (account_id, since),
        )
        return {row.day: int(row.requests) for row in rows}


def revoke(transaction: Transaction, key_id: KeyId, now: Instant) -> ApiKey | None:
    """Revoke a key or a grant and return it; return `None` if it is not valid."""
    sql = (
        "UPDATE api_key SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL "
        f"RETURNING {KEY_COLUMNS}"
    )
    return read_value(transaction, ApiKey, sql, (now, key_id))


def _note_key(transaction: Transaction, entry: AuditEntry, key: ApiKey) -> None:
    write_entry(transaction, replace(entry, account_id=key.account_id, detail=key.described))
