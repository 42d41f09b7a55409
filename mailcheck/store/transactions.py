"""Transactions of stores: one method is one named transaction, and rows are read by name."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, update_wrapper, wraps
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from msgspec import Struct, convert

from mailcheck.core.errors import ExpectedFailure
from mailcheck.core.identifiers import AccountId
from mailcheck.ports.engine import Engine, InboxWork, Item, Result, Row, Transaction, Value

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred


Made = TypeVar("Made")


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
    """Named transactions over an engine: methods that `read`, `write` or `inbox_write` decorates.

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

    frees_space = False

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


class inbox_write:  # noqa: N801
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


def frees_space(work: Deleting) -> Deleting:
    """Let a write that deletes use the last of what is in reserve on a full disk. A decorator."""
    work.frees_space = True
    return work
