"""The engine seam: what a store needs of a database, whichever it is.

A store writes SQL once, with ``?`` for parameters, in the dialect that SQLite
and PostgreSQL share. One store method is one named transaction.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, update_wrapper, wraps
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Concatenate,
    Generic,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    overload,
)

from msgspec import Struct, convert

from mailcheck.core.errors import ExpectedFailure, StoreUnavailable
from mailcheck.core.identifiers import AccountId

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred


class Repeatable(StoreUnavailable):
    """Nothing was done, and the same may go well at once: a deadlock, a connection was lost."""


class RowLocked(StoreUnavailable):
    """The work was not done: another writer kept a row locked for too long."""


Item = TypeVar("Item")
Result = TypeVar("Result")
Made = TypeVar("Made")
Value = str | int | bytes | None
Row = Any
"""A named tuple: ``row.subject`` is the column or the alias of this name."""

Condition = tuple[str, tuple[Value, ...]]
"""A part of a WHERE clause, and its parameters."""


class Transaction(Protocol):
    """A transaction under way, used in a thread of its own.

    ``locks_rows``: other writers work beside it, kept from single rows; else from everything.
    ``code_of``: the function that gives a character's code.
    """

    locks_rows: ClassVar[bool]
    code_of: ClassVar[str]

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

    def is_only_one(self, work: int) -> bool:
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


@lru_cache(1_000)
def _row_class(columns: tuple[str, ...]) -> Any:
    return namedtuple("Row", columns, rename=True)


def named_rows(description: Sequence[Sequence[Any]], rows: Iterable[tuple[Any, ...]]) -> list[Row]:
    """Return the rows of a cursor by the names of their columns.

    :param description: the cursor's (PEP 249): of each column, the name comes first.
    """
    return list(map(_row_class(tuple(column[0] for column in description))._make, rows))


def columns_of(kind: type[Struct], table: str, *others: str) -> str:
    """Return the columns of a table for the fields of a class; ``others`` have no such column."""
    return ", ".join(f"{table}.{name}" for name in kind.__struct_fields__ if name not in others)


def value_of(kind: type[Made], row: Row, **given: object) -> Made:
    """Return a value whose fields are columns of a row, by their names.

    Booleans and enums become what they were before they were stored.

    :param given: fields that are not a column, or that are not stored as they are.
    """
    return convert({**row._asdict(), **given}, kind, strict=False)


def insert(transaction: Transaction, table: str, rows: Sequence[Mapping[str, Value]]) -> None:
    """Insert rows that are given by the names of their columns."""
    if rows:
        columns = ", ".join(rows[0])
        transaction.insert(f"{table} ({columns})", [tuple(row.values()) for row in rows])


def values_of(rows: Sequence[Sequence[Value]]) -> str:
    """Write ``VALUES (?, ...), ...`` for some rows."""
    marks = f"({', '.join('?' * len(rows[0]))})"
    return f"VALUES {', '.join([marks] * len(rows))}"


def escape_like(text: str) -> str:
    """Write a text so that it stands for itself in LIKE with ESCAPE '!'."""
    for special in "!%_":
        text = text.replace(special, "!" + special)
    return text


class Engine(Protocol):
    """A database. Any failure of its own arrives as `StoreUnavailable`."""

    def write(self, work: Work[Item, Result], item: Item) -> Deferred[Result]:
        """Run ``work`` for the item in the next group commit; fires when that is on disk.

        Items given while a commit runs are committed together in the next one.
        """

    def read(self, query: Callable[[Transaction], Result]) -> Deferred[Result]:
        """Run a query on one consistent snapshot; never waits for a writer."""

    def elsewhere(self, query: Callable[[Transaction], Result]) -> Callable[[], Result] | None:
        """Give what runs a query in another process, if both can be pickled; else nothing.

        There it raises what `read` fails with.
        """

    @property
    def damage(self) -> str:
        """What damage a read or write has met since the start, or an empty string."""

    def free_bytes(self) -> int | None:
        """Say how much more the disk can hold; nothing when that is not ours to know."""

    def give_back_space(self) -> Deferred[None]:
        """Give some of the space that expired mail left back to the disk, where that is ours."""


class for_each(Generic[Item, Result]):  # noqa: N801
    """Turn a write of one item into one over many: each runs by itself. A decorator.

    Pickled it is its name, so that a writer in another process finds it.
    """

    def __init__(self, work: Callable[[Transaction, Item], Result | ExpectedFailure]) -> None:
        self._work: Callable[[Transaction, Item], Result | ExpectedFailure] = work
        self.__module__ = work.__module__
        self.__doc__ = work.__doc__

    def __reduce__(self) -> str:
        return self._work.__name__

    def __call__(
        self, transaction: Transaction, items: Sequence[Item]
    ) -> list[Result | ExpectedFailure]:
        """Run the work for each item."""
        return [self._work(transaction, item) for item in items]


class Store:
    """Named transactions over an engine: methods that `read`, `write` or `write_in` decorates.

    Callers leave the transaction out, and get a Deferred. A write may run in another process,
    where its store has no attributes: it depends on its arguments alone.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[type[Store]]]:
        return object.__new__, (type(self),)


Parameters = ParamSpec("Parameters")
Stored = TypeVar("Stored", bound=Store)


def read(
    query: Callable[Concatenate[Stored, Transaction, Parameters], Result],
) -> Callable[Concatenate[Stored, Parameters], Deferred[Result]]:
    """Run a method of a store on one consistent snapshot. A decorator."""

    @wraps(query)
    def run(
        store: Stored, /, *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Deferred[Result]:
        return store._engine.read(lambda transaction: query(store, transaction, *args, **kwargs))

    return run


_Call = tuple[Store, tuple[Any, ...], dict[str, Any]]
"""A call of a write: it waits for the next group commit."""


class write(Generic[Stored, Parameters, Result]):  # noqa: N801
    """Run a method of a store in the next group commit. A decorator.

    The method returns its result, or the expected failure with which the caller's Deferred
    fires. Pickled it is its name, so that a writer in another process finds it.
    """

    makes_room = False

    def __init__(
        self,
        method: Callable[Concatenate[Stored, Transaction, Parameters], Result | ExpectedFailure],
    ) -> None:
        self._method: Callable[..., Result | ExpectedFailure] = method
        update_wrapper(self, method)

    def __reduce__(self) -> str:
        return self._method.__qualname__

    @overload
    def __get__(self, store: None, kind: object) -> Self: ...

    @overload
    def __get__(self, store: Stored, kind: object) -> Callable[Parameters, Deferred[Result]]: ...

    def __get__(self, store: Stored | None, kind: object) -> Any:
        if store is None:
            return self

        def submit(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Deferred[Result]:
            return store._engine.write(self, (store, args, kwargs))

        return submit

    def __call__(
        self, transaction: Transaction, items: Sequence[_Call]
    ) -> list[Result | ExpectedFailure]:
        """Run the method for each call of it."""
        return [self._method(store, transaction, *args, **kwargs) for store, args, kwargs in items]


class write_in:  # noqa: N801
    """As `write`, for a method that moves counters of inboxes. A decorator.

    :param accounts: returns whose inboxes a call is about, from the transaction and the arguments.
    :param without_lock: runs instead of the method while another writer keeps such an inbox locked.
    """

    def __init__(
        self,
        accounts: Callable[..., Iterable[AccountId]],
        without_lock: Callable[..., Any] | None = None,
    ) -> None:
        self._accounts = accounts
        self._without_lock = without_lock

    def __call__(
        self,
        method: Callable[Concatenate[Stored, Transaction, Parameters], Result | ExpectedFailure],
    ) -> _WriteInInboxes[Stored, Parameters, Result]:
        """Decorate a method."""
        return _WriteInInboxes(method, self._accounts, self._without_lock)


class _WriteInInboxes(write[Stored, Parameters, Result], InboxWork):
    def __init__(
        self,
        method: Callable[Concatenate[Stored, Transaction, Parameters], Result | ExpectedFailure],
        accounts: Callable[..., Iterable[AccountId]],
        without_lock: Callable[..., Any] | None,
    ) -> None:
        super().__init__(method)
        self._accounts = accounts
        self._without_lock = without_lock

    def accounts(self, transaction: Transaction, items: Sequence[_Call]) -> set[AccountId]:
        """Return whose inboxes the calls are about."""
        return {
            account
            for _, args, kwargs in items
            for account in self._accounts(transaction, *args, **kwargs)
        }

    def run_without_lock(self, transaction: Transaction, item: _Call) -> Any:
        """Return the outcome of a call whose inbox another writer keeps locked."""
        if self._without_lock is None:
            return super().run_without_lock(transaction, item)
        _, args, kwargs = item
        return self._without_lock(transaction, *args, **kwargs)


Deleting = TypeVar("Deleting", bound=write[Any, ..., Any])


def makes_room(work: Deleting) -> Deleting:
    """Let a write that deletes use the last of what is in reserve on a full disk. A decorator."""
    work.makes_room = True
    return work
