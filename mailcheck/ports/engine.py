"""The database behind the stores: SQLite or PostgreSQL.

A store writes SQL once, with ``?`` for parameters, in the dialect that both share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from mailcheck.core.errors import ExpectedFailure, StoreUnavailable
from mailcheck.core.identifiers import AccountId

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred


class RetryableError(StoreUnavailable):
    """Nothing was done, and the same may go well at once: a deadlock, a connection was lost."""


class RowLocked(StoreUnavailable):
    """The work was not done: another writer kept a row locked for too long."""


Item = TypeVar("Item")
Result = TypeVar("Result")
Value = str | int | bytes | None
Row = Any
"""A named tuple: ``row.subject`` is the column or the alias of this name."""
Condition = tuple[str, tuple[Value, ...]]
"""A part of a WHERE clause, and its parameters."""


class Transaction(Protocol):
    """A transaction under way, used in a thread of its own.

    ``locks_rows``: other writers work beside it, kept from single rows; else from everything.
    ``char_code_function``: the function that gives a character's code.
    """

    locks_rows: ClassVar[bool]
    char_code_function: ClassVar[str]

    def execute(self, sql: str, parameters: Sequence[Value] = ()) -> int:
        """Run a statement; gives the number of rows it changed."""

    def execute_many(self, sql: str, parameters: Iterable[Sequence[Value]]) -> None:
        """Run a statement once for each set of parameters."""

    def execute_over(self, sql: str, rows: Sequence[Sequence[Value]]) -> None:
        """Run a statement over a table: ``{rows}`` in it is ``VALUES (?, ...), ...``.

        A statement names the columns by ``WITH given (id, ...) AS ({rows})``. Nothing is run
        for no rows.
        """

    def rows_over(self, sql: str, rows: Sequence[Sequence[Value]]) -> list[Row]:
        """As `execute_over`, and give the rows that the statement returns."""

    def insert(self, into: str, rows: Sequence[Sequence[Value]]) -> None:
        """Insert all rows with few statements; ``into`` is ``table (column, ...)``."""

    def rows(self, sql: str, parameters: Sequence[Value] = ()) -> list[Row]:
        """Run a query and give all its rows."""

    def row(self, sql: str, parameters: Sequence[Value] = ()) -> Row | None:
        """Run a query and give its first row."""

    def containing(self, column: str, part: str) -> Condition:
        """Write that a text has a part, as this database finds out soonest."""

    def try_lock(self, work: int) -> bool:
        """Tell whether no other daemon does this work now; none begins it before the commit."""

    def locked_rows(self, sql: str, parameters: Sequence[Value], table: str) -> list[Row]:
        """Run a query and keep its rows of a table from other writers until the end.

        They are locked in the order of the query, and given as they are by then.
        """

    def locked_rows_over(self, sql: str, rows: Sequence[Sequence[Value]], table: str) -> list[Row]:
        """As `locked_rows`, over a table of rows as `execute_over` has it."""

    def lock(self, work: int) -> None:
        """Wait until no other daemon does this work; none begins it before the commit."""

    def touch(self) -> None:
        """Write something that changes nothing: the commit has to reach the disk all the same."""

    def clock_offset(self) -> int:
        """Say by how many milliseconds the clock that all daemons share is ahead of ours."""


Work = Callable[[Transaction, Sequence[Item]], Sequence[Result | ExpectedFailure]]
"""A write over all the items that wait for it: one result, or expected failure, for each.

It may be run again, item by item, when the run over all of them failed, and in
another process: it and its items can be pickled.
"""
LOCKED = "another writer keeps an inbox locked; try again later"


class InboxWork:
    """A write that moves counters of inboxes, which it locks before anything else.

    A group of several writes locks the inboxes of all of them first: groups that
    locked as they went would wait for each other. ``locks_all_first``: it does so itself
    for all its items, which saves a group of nothing else the question.
    """

    locks_all_first: ClassVar[bool] = False

    def accounts(self, transaction: Transaction, items: Sequence[Any]) -> Iterable[AccountId]:
        """Return whose inboxes are to be locked."""
        raise NotImplementedError

    def run_without_lock(self, transaction: Transaction, item: Any) -> Any:
        """Return the outcome of an item whose inbox another writer keeps locked.

        The rest of its group is committed.
        """
        return StoreUnavailable(LOCKED)


class MailWork(InboxWork):
    """A write of whole mails, of which it can be found out later whether it was done."""

    def octets(self, item: Any) -> int:
        """Return how much an item is to write."""
        raise NotImplementedError

    def find_outcomes(self, transaction: Transaction, items: Sequence[Any]) -> Sequence[Any]:
        """Return the outcome of each item that is stored, `None` for the others."""
        raise NotImplementedError


class Engine(Protocol):
    """A database. Any failure of its own arrives as `StoreUnavailable`."""

    def write(self, work: Work[Item, Result], item: Item) -> Deferred[Result]:
        """Run ``work`` for the item in the next group commit; fires when that is on disk.

        Items given while a commit runs are committed together in the next one.
        """

    def read(self, query: Callable[[Transaction], Result]) -> Deferred[Result]:
        """Run a query on one consistent snapshot; never waits for a writer."""

    def remote_query(self, query: Callable[[Transaction], Result]) -> Callable[[], Result] | None:
        """Give what runs a query in another process, if both can be pickled; else nothing.

        There it raises what `read` fails with.
        """

    @property
    def damage(self) -> str:
        """What damage a read or write has met since the start, or an empty string."""

    def free_bytes(self) -> int | None:
        """Say how much more the disk can hold; nothing when that is not ours to know."""

    def reclaim_space(self) -> Deferred[None]:
        """Give some of the space that expired mail left back to the disk, where that is ours."""
