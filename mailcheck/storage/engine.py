"""The engine seam: what a store needs of a database, whichever it is.

A store writes SQL once, with ``?`` for parameters, in the dialect that SQLite
and PostgreSQL share. One store method is one named transaction.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from twisted.internet.defer import Deferred

from mailcheck.core.errors import ExpectedFailure, StoreUnavailable


class Repeatable(StoreUnavailable):
    """Nothing was done, and the same may go well at once: a deadlock, a connection was lost."""


Item = TypeVar("Item")
Result = TypeVar("Result")
Value = str | int | bytes | None
Row = tuple[Any, ...]


class Transaction(Protocol):
    """A transaction under way, used in a thread of its own."""

    def execute(self, sql: str, parameters: Sequence[Value] = ()) -> int:
        """Run a statement; gives the number of rows it changed."""

    def execute_many(self, sql: str, parameters: Iterable[Sequence[Value]]) -> None:
        """Run a statement once for each set of parameters."""

    def insert(self, into: str, rows: Sequence[Sequence[Value]]) -> None:
        """Insert all rows with few statements; ``into`` is ``table (column, ...)``."""

    def rows(self, sql: str, parameters: Sequence[Value] = ()) -> list[Row]:
        """Run a query and give all its rows."""

    def row(self, sql: str, parameters: Sequence[Value] = ()) -> Row | None:
        """Run a query and give its first row."""

    def is_only_one(self, work: int) -> bool:
        """Tell whether no other daemon does this work now; none begins it before the commit."""


Work = Callable[[Transaction, Sequence[Item]], Sequence[Result | ExpectedFailure]]
"""A write over all the items that wait for it: one result, or expected failure, for each.

It may be run again, item by item, when the run over all of them failed, and in
another process: it and its items can be pickled.
"""


class Engine(Protocol):
    """A database. Any failure of its own arrives as `StoreUnavailable`."""

    def write(self, work: Work[Item, Result], item: Item) -> Deferred[Result]:
        """Run ``work`` for the item in the next group commit; fires when that is on disk.

        Items given while a commit runs are committed together in the next one.
        """

    def read(self, query: Callable[[Transaction], Result]) -> Deferred[Result]:
        """Run a query on one consistent snapshot; never waits for a writer."""

    def free_bytes(self) -> int | None:
        """Say how much more the disk can hold; nothing when that is not ours to know."""


class for_each(Generic[Item, Result]):  # noqa: N801
    """Turn a write of one item into one over many: each runs by itself. A decorator.

    Pickled it is its name, so that a writer in another process finds it.
    """

    def __init__(self, work: Callable[[Transaction, Item], Result | ExpectedFailure]) -> None:
        self._work = work
        self.__module__ = work.__module__
        self.__doc__ = work.__doc__

    def __reduce__(self) -> str:
        return self._work.__name__

    def __call__(
        self, transaction: Transaction, items: Sequence[Item]
    ) -> list[Result | ExpectedFailure]:
        """Run the work for each item."""
        return [self._work(transaction, item) for item in items]
