"""Protocols for the database behind the stores: SQLite or PostgreSQL.

Stores use SQL that both understand, with ``?`` for parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from mailcheck.core.errors import ExpectedFailure, StoreUnavailable
from mailcheck.core.identifiers import AccountId

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred


class RetryableError(StoreUnavailable):
    """Nothing was changed and a retry may succeed, as after a deadlock or a lost connection."""


class RowLocked(StoreUnavailable):
    """The work was not done, since another writer held a row lock for too long."""


Item = TypeVar("Item")
Result = TypeVar("Result")
Value = str | int | bytes | None
Row = Any
"""A named tuple. ``row.subject`` is the column or alias of this name."""
Condition = tuple[str, tuple[Value, ...]]
"""A condition for a WHERE clause, and its parameters."""


class Transaction(Protocol):
    """An open transaction, used in its own thread.

    ``locks_rows``: writers lock single rows; otherwise a writer excludes all others.
    ``char_code_function``: name of the SQL function that returns a character's code.
    """

    locks_rows: ClassVar[bool]
    char_code_function: ClassVar[str]

    def execute(self, sql: str, parameters: Sequence[Value] = ()) -> int:
        """Run a statement and return the number of rows it changed."""

    def execute_many(self, sql: str, parameters: Iterable[Sequence[Value]]) -> None:
        """Run a statement once for each set of parameters."""

    def execute_over(self, sql: str, rows: Sequence[Sequence[Value]]) -> None:
        """Run a statement on a table of values: ``{rows}`` becomes ``VALUES (?, ...), ...``.

        A statement names the columns by ``WITH given (id, ...) AS ({rows})``. Without rows, it
        is not run.
        """

    def rows_over(self, sql: str, rows: Sequence[Sequence[Value]]) -> list[Row]:
        """Run a statement as `execute_over` does, and return the resulting rows."""

    def insert(self, into: str, rows: Sequence[Sequence[Value]]) -> None:
        """Insert rows with few statements. ``into`` is ``table (column, ...)``."""

    def rows(self, sql: str, parameters: Sequence[Value] = ()) -> list[Row]:
        """Run a query and return all its rows."""

    def row(self, sql: str, parameters: Sequence[Value] = ()) -> Row | None:
        """Run a query and return its first row, or `None`."""

    def containing(self, column: str, part: str) -> Condition:
        """Return the fastest condition of this database for a text that contains a part."""

    def try_lock(self, work: int) -> bool:
        """Try to lock this kind of work until the end, and return whether that succeeded."""

    def locked_rows(self, sql: str, parameters: Sequence[Value], table: str) -> list[Row]:
        """Run a query and lock its rows of a table against other writers until the end.

        The rows are locked in the order of the query and returned with their values at that time.
        """

    def locked_rows_over(self, sql: str, rows: Sequence[Sequence[Value]], table: str) -> list[Row]:
        """Lock rows as `locked_rows` does, with a table of values as in `execute_over`."""

    def lock(self, work: int) -> None:
        """Lock this kind of work until the end. Wait while another daemon holds the lock."""

    def touch(self) -> None:
        """Write an unchanged value, to check that a commit reaches the disk."""

    def clock_offset(self) -> int:
        """Return the milliseconds by which the clock that daemons share is ahead of this one."""


Work = Callable[[Transaction, Sequence[Item]], Sequence[Result | ExpectedFailure]]
"""A write for a batch of items. It returns a result or an expected failure for each item.

If the batch fails, it may be run again for each single item and in another process, so it and
its items can be pickled.
"""
LOCKED = "another writer keeps an inbox locked; try again later"


class InboxWork:
    """A write that changes counters of inboxes. Their rows are locked before anything else.

    A group of several writes locks the inboxes of all of them first, to avoid deadlocks between
    groups. ``locks_all_first``: the write locks them for all its items itself, so a group that
    has only this write needs no query for the accounts.
    """

    locks_all_first: ClassVar[bool] = False

    def accounts(self, transaction: Transaction, items: Sequence[Any]) -> Iterable[AccountId]:
        """Return the accounts whose inboxes must be locked."""
        raise NotImplementedError

    def run_without_lock(self, transaction: Transaction, item: Any) -> Any:
        """Return the outcome of an item whose inbox is locked by another writer.

        The other items of its group are committed.
        """
        return StoreUnavailable(LOCKED)


class MailWork(InboxWork):
    """A write of whole mails. Whether it was committed can be determined later."""

    def octets(self, item: Any) -> int:
        """Return the number of octets that an item writes."""
        raise NotImplementedError

    def find_outcomes(self, transaction: Transaction, items: Sequence[Any]) -> Sequence[Any]:
        """Return the outcome of each stored item, and `None` for the others."""
        raise NotImplementedError


class Engine(Protocol):
    """A database. Its own failures are raised as `StoreUnavailable`."""

    def write(self, work: Work[Item, Result], item: Item) -> Deferred[Result]:
        """Run ``work`` for the item in the next group commit. Fires when that is on disk.

        Items that arrive during a commit are committed together in the next one.
        """

    def read(self, query: Callable[[Transaction], Result]) -> Deferred[Result]:
        """Run a query on one consistent snapshot, without waiting for writers."""

    def remote_query(self, query: Callable[[Transaction], Result]) -> Callable[[], Result] | None:
        """Return a function that runs the query in another process, or `None` if impossible.

        The function can be pickled if the query can. It raises the same failures as `read`.
        """

    @property
    def damage(self) -> str:
        """The damage that a read or write has met since the start, or an empty string."""

    def free_bytes(self) -> int | None:
        """Return the free bytes of the disk, or `None` if they are unknown."""

    def reclaim_space(self) -> Deferred[None]:
        """Return some space of expired mail to the disk, if this database needs that."""
