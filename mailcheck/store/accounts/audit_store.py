"""The store of the audit log."""

from msgspec.structs import asdict

from mailcheck.core.audit import AuditEntry
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import Instant
from mailcheck.ports.engine import Transaction
from mailcheck.store.transactions import (
    Store,
    columns_of,
    frees_space,
    insert,
    read,
    value_of,
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
    insert(transaction, "audit_entry", [asdict(entry) | account | position])


class AuditStore(Store):
    """The entries of the audit log. No method changes one."""

    @write
    def add(self, transaction: Transaction, entry: AuditEntry) -> None:
        """Add an entry about something that is not a change in the store."""
        write_entry(transaction, entry)

    @read
    def newest(
        self, transaction: Transaction, account_id: AccountId | None, before: int, limit: int
    ) -> list[AuditEntry]:
        """Return entries of an account, or of all (`None`), newest first.

        :param before: only entries with a lower position; zero is no limit.
        """
        rows = transaction.rows(
            f"{_ENTRIES} WHERE (? = 0 OR position < ?) AND (? = '' OR account_id = ?) "
            "ORDER BY position DESC LIMIT ?",
            (before, before, account_id or "", account_id or "", limit),
        )
        return [value_of(AuditEntry, row) for row in rows]

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
        return transaction.execute(
            "DELETE FROM audit_entry WHERE id IN (SELECT id FROM audit_entry "
            "WHERE COALESCE(account_id, '') = ? ORDER BY position LIMIT ?)",
            (account_id or "", limit),
        )

    @frees_space
    @write
    def forget(self, transaction: Transaction, before: Instant, limit: int) -> int:
        """Delete at most ``limit`` entries from before a moment; return their number."""
        return transaction.execute(
            "DELETE FROM audit_entry WHERE id IN ("
            "SELECT id FROM audit_entry WHERE happened_at < ? ORDER BY happened_at LIMIT ?)",
            (before, limit),
        )
