"""Store transactions: each method is one named transaction, and rows are read by name."""

from __future__ import annotations

import json
from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from functools import lru_cache, update_wrapper, wraps
from threading import Lock
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Self,
    TypeVar,
    get_type_hints,
    overload,
)

from msgspec import Struct, convert, to_builtins
from msgspec.inspect import CollectionType, DictType, StructType, TupleType, UnionType, type_info
from msgspec.json import Decoder

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
    """Return the rows of a cursor as named tuples.

    :param description: the description of the cursor (PEP 249); each column begins with its name.
    """
    return list(map(_row_class(tuple(column[0] for column in description))._make, rows))


def columns_of(kind: type[Struct], table: str, *others: str) -> str:
    """Return the columns of a table for the fields of a class, except ``others``."""
    return ", ".join(f"{table}.{name}" for name in kind.__struct_fields__ if name not in others)


_IN_JSON = (StructType, CollectionType, TupleType, DictType)
"""Types of fields that are stored as JSON, in a column with the name of the field."""

_JSON_FIELDS: dict[type, dict[str, Any]] = {}
_INSPECTING = Lock()


def _json_fields(kind: type[Any]) -> dict[str, Any]:
    """Return the types of the fields of a class that are stored as JSON.

    msgspec inspects a class at its first use, and only one thread may do it.
    """
    if kind not in _JSON_FIELDS:
        with _INSPECTING:
            Decoder(kind)
            _JSON_FIELDS[kind] = {
                name: of for name, of in get_type_hints(kind).items() if _is_in_json(of)
            }
    return _JSON_FIELDS[kind]


def _is_in_json(kind: Any) -> bool:
    known = type_info(kind)
    return any(
        isinstance(some, _IN_JSON)
        for some in (known.types if isinstance(known, UnionType) else (known,))
    )


def value_of(kind: type[Made], row: Row, **given: object) -> Made:
    """Return a value of a class from the columns of a row with the same names.

    Booleans, enums and JSON are converted back from their stored form.

    :param given: fields without a column, or with another stored form.
    """
    columns = {**row._asdict(), **given}
    for name, inner in _json_fields(kind).items():
        if isinstance(columns.get(name), str):
            columns[name] = convert(json.loads(columns[name]), inner)
    return convert(columns, kind, strict=False)


def row_of(value: Struct, *without: str, **others: Value) -> dict[str, Value]:
    """Return the columns of a value, in the form that `value_of` reads, and ``others``.

    :param without: fields that are no columns.
    """
    stored = {
        name: _stored(getattr(value, name))
        for name in value.__struct_fields__
        if name not in without
    }
    return stored | others


def _stored(value: object) -> Value:
    match value:
        case Enum():
            return _stored(value.value)
        case bool():
            return int(value)
        case None | str() | int() | bytes():
            return value
        case _:
            return json_of(value)


def json_of(value: object) -> str:
    """Return a value as the JSON that `value_of` reads."""
    return json.dumps(to_builtins(value))


def read_value(
    transaction: Transaction, kind: type[Made], sql: str, values: Sequence[Value] = ()
) -> Made | None:
    """Return the first row of a query as a value of a class, or `None` without rows."""
    row = transaction.row(sql, values)
    return None if row is None else value_of(kind, row)


def read_values(
    transaction: Transaction, kind: type[Made], sql: str, values: Sequence[Value] = ()
) -> list[Made]:
    """Return the rows of a query as values of a class."""
    return [value_of(kind, row) for row in transaction.rows(sql, values)]


def read_number(transaction: Transaction, sql: str, values: Sequence[Value] = ()) -> int:
    """Return the number that is the only column of the first row, or 0 without rows."""
    row = transaction.row(sql, values)
    return 0 if row is None else int(row[0])


def insert(transaction: Transaction, table: str, rows: Sequence[Mapping[str, Value]]) -> None:
    """Insert rows given as mappings of column names to values."""
    if rows:
        columns = ", ".join(rows[0])
        transaction.insert(f"{table} ({columns})", [tuple(row.values()) for row in rows])


def delete_first(table: str, key: str, which: str, returning: str = "") -> str:
    """Return a statement that deletes some rows. Its last parameter is their maximum number.

    :param key: the columns that identify a row.
    :param which: the condition for the rows, and their order if it matters.
    :param returning: the columns of the deleted rows to return.
    """
    some = f"SELECT {key} FROM {table} WHERE {which} LIMIT ?"
    result = f" RETURNING {returning}" if returning else ""
    return f"DELETE FROM {table} WHERE ({key}) IN ({some}){result}"


def values_of(rows: Sequence[Sequence[Value]]) -> str:
    """Return ``VALUES (?, ...), ...`` for rows."""
    marks = f"({', '.join('?' * len(rows[0]))})"
    return f"VALUES {', '.join([marks] * len(rows))}"


def escape_like(text: str) -> str:
    """Escape a text for LIKE with ESCAPE '!'."""
    for special in "!%_":
        text = text.replace(special, "!" + special)
    return text


class for_each(Generic[Item, Result]):  # noqa: N801
    """Turn a write of one item into a write of many, one after the other. A decorator.

    It is pickled as its name, so that a writer in another process finds it.
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
    """Named transactions over an engine: methods with `read`, `write` or `inbox_write`.

    Callers omit the transaction and get a Deferred. A write may run in another process, where its
    store has no attributes. It must depend on its arguments alone.
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
    """Run a store method on one consistent snapshot. A decorator."""

    @wraps(query)
    def run(
        store: Stored, /, *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Deferred[Result]:
        return store._engine.read(lambda transaction: query(store, transaction, *args, **kwargs))

    return run


_Call = tuple[Store, tuple[Any, ...], dict[str, Any]]
"""The arguments of a write until its group commit."""


class write(Generic[Stored, Parameters, Result]):  # noqa: N801
    """Run a store method in the next group commit. A decorator.

    The method returns its result, or an expected failure that fails the caller's Deferred. It is
    pickled as its name, so that a writer in another process finds it.
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
        """Run the method for each of its calls."""
        return [self._method(store, transaction, *args, **kwargs) for store, args, kwargs in items]


class inbox_write(Struct, frozen=True, eq=False):  # noqa: N801
    """Like `write`, for a method that changes the counters of inboxes. A decorator.

    :param accounts: returns the accounts of these inboxes from the transaction and the arguments.
    :param without_lock: runs instead of the method while another writer keeps an inbox locked.
    """

    accounts: Callable[..., Iterable[AccountId]]
    without_lock: Callable[..., Any] | None = None

    def __call__(
        self,
        method: Callable[Concatenate[Stored, Transaction, Parameters], Result | ExpectedFailure],
    ) -> _WriteInInboxes[Stored, Parameters, Result]:
        """Decorate a method."""
        return _WriteInInboxes(method, self.accounts, self.without_lock)


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
        """Return the accounts whose inboxes the calls change."""
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
    """Let a write that deletes data use the whole disk reserve. A decorator."""
    work.frees_space = True
    return work
