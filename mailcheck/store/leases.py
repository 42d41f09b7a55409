"""Rows of a table that wait for work, which daemons claim with leases.

A lease says which daemon works on a row. When it ends, another daemon may take the row over. Times
of leases use the clock that all daemons share, the database's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from msgspec import Struct

from mailcheck.ports.engine import Transaction, Value
from mailcheck.ports.workers import Lease

RowId = TypeVar("RowId", bound=str)


class LeasedRows(Struct, frozen=True):
    """The rows of a table with an ``id``, and the columns of their leases.

    :param waiting: the condition for rows that may be claimed.
    :param due: the column by which the rows of an account are ordered.
    :param on_claim: further columns that a claim changes.
    """

    table: str
    waiting: str
    due: str
    on_claim: str = ""
    holder: str = "lease_holder"
    until: str = "lease_until"

    @property
    def is_free(self) -> str:
        """The condition that no daemon has a row. Its parameter is the current time."""
        return f"({self.until} IS NULL OR {self.until} <= ?)"

    def in_turns(self, rows: str, columns: str = "", limit: str = "") -> str:
        """Return a query for the ids of the rows to claim next, in which accounts take turns.

        The first row of each account comes first, then the second ones. Rows that are claimed
        already count. An account with a hundred rows thus does not delay another one.

        Its parameters are the time, the parameters of ``rows``, the time, and the maximum number.

        :param rows: the tables of the waiting rows, and their condition.
        :param columns: further columns to return.
        :param limit: a further condition, for the ``turn`` of a row.
        """
        return f"""
            SELECT id{columns} FROM (
                SELECT {self.table}.id{columns}, {self.until}, {self.due}, ROW_NUMBER() OVER (
                    PARTITION BY {self.table}.account_id
                    ORDER BY CASE WHEN {self.is_free} THEN 1 ELSE 0 END, {self.due}, {self.table}.id
                ) AS turn FROM {rows}
            ) AS waiting WHERE {self.is_free}{limit} ORDER BY turn, {self.due}, id LIMIT ?
        """

    def claim(
        self, transaction: Transaction, row_id: str, holder: str, until: int, shared_now: int
    ) -> bool:
        """Claim a row; return false if it does not wait, or a daemon has it."""
        changed = transaction.execute(
            f"UPDATE {self.table} SET {self.holder} = ?, {self.until} = ?{self.on_claim} "
            f"WHERE id = ? AND {self.waiting} AND {self.is_free}",
            (holder, until, row_id, shared_now),
        )
        return bool(changed)

    def renew(
        self, transaction: Transaction, lease: Lease, row_ids: Sequence[RowId]
    ) -> frozenset[RowId]:
        """Extend the leases of rows; return the rows that the holder still has."""
        until = lease.until + transaction.clock_offset()
        sql = (
            f"UPDATE {self.table} SET {self.until} = ? "
            f"WHERE id = ? AND {self.waiting} AND {self.holder} = ?"
        )
        return frozenset(
            row_id for row_id in row_ids if transaction.execute(sql, (until, row_id, lease.holder))
        )

    def release(self, transaction: Transaction, holder: str, changes: str = "") -> None:
        """Release all rows of a holder, with further changes of columns."""
        transaction.execute(
            f"UPDATE {self.table} SET {self.holder} = NULL, {self.until} = NULL{changes} "
            f"WHERE {self.waiting} AND {self.holder} = ?",
            (holder,),
        )

    def give_back(
        self, transaction: Transaction, row_id: str, holder: str, **changes: Value
    ) -> None:
        """Release a row of a holder, with further values of columns."""
        columns = {self.holder: None, self.until: None} | changes
        settings = ", ".join(f"{column} = ?" for column in columns)
        transaction.execute(
            f"UPDATE {self.table} SET {settings} WHERE id = ? AND {self.holder} = ?",
            (*columns.values(), row_id, holder),
        )
