"""The store of the audit log."""

from mailcheck.core.audit import AuditEntry, AuditFilter
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import Instant
from mailcheck.ports.engine import Transaction, Value
from mailcheck.store.transactions import (
    Store,
    columns_of,
    delete_first,
    frees_space,
    insert,
    read,
    read_number,
    read_values,
    row_of,
    write,
)

_ENTRIES = f"SELECT {columns_of(AuditEntry, 'audit_entry')} FROM audit_entry"


def write_entry(transaction: Transaction, entry: AuditEntry) -> None:
    """Add an entry with the current name of its account, in the transaction of its change.

    An account that has been deleted meanwhile is `None`. Every store method that changes rights
    takes an entry and writes it with this function, so that a change and its entry are committed
    together.
    """
    known = transaction.row("SELECT id, name FROM account WHERE id = ?", (entry.account_id,))
    account = {"account_id": None} if known is None else {"account_name": known.name}
    # The row is locked until the commit: positions are in the order of commits.
    numbered = transaction.row(
        "INSERT INTO audit_position (id, last, journaled) VALUES (1, 1, 0) "
        "ON CONFLICT (id) DO UPDATE SET last = audit_position.last + 1 RETURNING last"
    )
    assert numbered is not None
    position = {"position": numbered.last}
    insert(transaction, "audit_entry", [row_of(entry) | account | position])


def write_entry_if(transaction: Transaction, entry: AuditEntry, changed: int) -> bool:
    """Add the entry of a change that has changed any rows; return whether it has."""
    if changed:
        write_entry(transaction, entry)
    return bool(changed)


def _conditions(wanted: AuditFilter) -> tuple[str, tuple[Value, ...]]:
    given = {"account_id": wanted.account_id, "action": wanted.action and wanted.action.value}
    known = {column: value for column, value in given.items() if value is not None}
    return "".join(f" AND {column} = ?" for column in known), tuple(known.values())


class AuditStore(Store):
    """The entries of the audit log. No method changes one."""

    @write
    def add(self, transaction: Transaction, entry: AuditEntry) -> None:
        """Add an entry about something that is not a change in the store."""
        write_entry(transaction, entry)

    @read
    def newest(
        self, transaction: Transaction, wanted: AuditFilter, before: int, limit: int
    ) -> list[AuditEntry]:
        """Return entries, newest first.

        :param before: only entries with a lower position; zero is no limit.
        """
        conditions, values = _conditions(wanted)
        return read_values(
            transaction,
            AuditEntry,
            f"{_ENTRIES} WHERE (? = 0 OR position < ?){conditions} ORDER BY position DESC LIMIT ?",
            (before, before, *values, limit),
        )

    @read
    def after(
        self, transaction: Transaction, wanted: AuditFilter, position: int, limit: int
    ) -> list[AuditEntry]:
        """Return entries with a higher position, oldest first."""
        conditions, values = _conditions(wanted)
        sql = f"{_ENTRIES} WHERE position > ?{conditions} ORDER BY position LIMIT ?"
        return read_values(transaction, AuditEntry, sql, (position, *values, limit))

    @read
    def last_position(self, transaction: Transaction) -> int:
        """Return the position of the last entry, or zero."""
        return read_number(transaction, "SELECT last FROM audit_position")

    @read
    def unjournaled(self, transaction: Transaction, limit: int) -> list[AuditEntry]:
        """Return the oldest entries that were not written to the journal yet."""
        sql = (
            f"{_ENTRIES} WHERE position > (SELECT journaled FROM audit_position) "
            "ORDER BY position LIMIT ?"
        )
        return read_values(transaction, AuditEntry, sql, (limit,))

    @write
    def note_journaled(self, transaction: Transaction, position: int) -> None:
        """Record that the journal has all entries up to a position."""
        transaction.execute(
            "UPDATE audit_position SET journaled = ? WHERE journaled < ?", (position, position)
        )

    @read
    def crowded(self, transaction: Transaction, most: int) -> list[tuple[AccountId | None, int]]:
        """Return the accounts with more than ``most`` entries, and the number beyond it.

        `None` stands for all entries without an account.
        """
        rows = transaction.rows(
            "SELECT account_id, COUNT(*) AS number FROM audit_entry "
            "GROUP BY account_id HAVING COUNT(*) > ?",
            (most,),
        )
        return [(row.account_id, row.number - most) for row in rows]

    @frees_space
    @write
    def forget_oldest(
        self, transaction: Transaction, account_id: AccountId | None, limit: int
    ) -> int:
        """Delete the oldest entries about an account, at most ``limit``; return their number."""
        of_account = "COALESCE(account_id, '') = ? ORDER BY position"
        sql = delete_first("audit_entry", "id", of_account)
        return transaction.execute(sql, (account_id or "", limit))

    @frees_space
    @write
    def forget(self, transaction: Transaction, before: Instant, limit: int) -> int:
        """Delete at most ``limit`` entries from before a moment; return their number."""
        sql = delete_first("audit_entry", "id", "happened_at < ? ORDER BY happened_at")
        return transaction.execute(sql, (before, limit))
