"""Connections to PostgreSQL: calls with timeouts, transactions, and the writer's connection.

Statements without a result are sent with the next statement or with COMMIT, so that a group of
mails costs two round trips. Statements over rows are prepared once per connection, since parsing
and planning them took a third of the server's time for a small group.
"""

import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from io import BytesIO
from itertools import chain
from typing import Any, ClassVar
from weakref import WeakSet

import psycopg2
from psycopg2 import errors
from psycopg2.extensions import TRANSACTION_STATUS_IDLE, TRANSACTION_STATUS_INTRANS

from mailcheck.core.errors import StoreDamaged, StoreFull, StoreUnavailable
from mailcheck.engines.committing import LockedInboxes
from mailcheck.engines.postgresql_rows import bind_arrays, replace_nul
from mailcheck.engines.postgresql_server import LONGEST_CALL, connect, message_of
from mailcheck.ports.engine import Condition, RetryableError, Row, RowLocked, Transaction, Value
from mailcheck.store.transactions import named_rows

WRITERS_LOCK_TIMEOUT = 2.0
"""Seconds that the writer waits for a row lock. All mail waits with it. A group of another daemon
holds its locks for a few milliseconds."""

CLOCK_NOISE = 100
"""Milliseconds by which two equal clocks seem to differ, since the query takes a while."""

COPY_PIECE = 262_144
"""Octets passed to libpq at a time."""

_HEADER = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)
_TRAILER = struct.pack(">h", -1)
_NULL = struct.pack(">i", -1)
_BIGINT = struct.Struct(">iq")
_LENGTH = struct.Struct(">i")
_COLUMNS = struct.Struct(">h")

INDEX_PLANS = """
    SET enable_seqscan = off; SET enable_bitmapscan = off; SET plan_cache_mode = force_generic_plan
"""
"""Settings for the planner. All queries have an index; lists need its order. With outdated
statistics, in a store that grows fast, the planner would read and sort the whole table for one
page. It would also keep that plan for a statement that was prepared while the table was small.
"""

_LOCKED = "FOR NO KEY UPDATE OF "

_PROGRAMMING_ERRORS = (
    psycopg2.IntegrityError,
    psycopg2.ProgrammingError,
    psycopg2.DataError,
    psycopg2.NotSupportedError,
)
"""Errors caused by wrong statements, which are not failures of the database."""

_RETRYABLE = (
    errors.DeadlockDetected,
    errors.SerializationFailure,
    # Another host has become the primary since the connection was made.
    errors.ReadOnlySqlTransaction,
)

_KINDS: dict[type[psycopg2.Error], type[StoreUnavailable]] = {
    errors.DiskFull: StoreFull,
    errors.DataCorrupted: StoreDamaged,
    errors.IndexCorrupted: StoreDamaged,
    errors.LockNotAvailable: RowLocked,
}

_FOR_WRITER = f"{INDEX_PLANS}; SET lock_timeout = {WRITERS_LOCK_TIMEOUT * 1000:.0f}"


class Connection:
    """A connection that is opened on demand, and again after it was lost."""

    def __init__(
        self,
        url: str,
        clock: Callable[[], float] = time.time,
        longest_call: float = LONGEST_CALL,
        settings: str = "",
    ) -> None:
        self.clock = clock
        self._url = url
        self._longest_call = longest_call
        self._settings = settings
        self._connection: Any = None
        self._deadline: float | None = None
        self._is_aborted = False
        self._lock = threading.Lock()
        self._prepared: dict[str, str] = {}

    def open(self) -> Any:
        """Return the psycopg2 connection.

        :raises StoreUnavailable: no host answers.
        """
        if self._connection is None or self._connection.closed:
            self._is_aborted = False
            try:
                self._connection = connect(self._url, self._settings)
            except psycopg2.Error as error:
                raise StoreUnavailable(
                    f"the database cannot be reached: {message_of(error)}"
                ) from error
            self._prepared = {}
            call_timeouts().add(self)
        return self._connection

    def prepared(self, statement: str) -> str:
        """Return the name of a prepared statement, whose parameters are $1, $2, ...

        The first use prepares it in a separate round trip. A later rollback does not undo this.
        """
        name = self._prepared.get(statement)
        if name is None:
            name = f"s{len(self._prepared)}"
            with self.call(lambda: True), self._connection.cursor() as cursor:
                cursor.execute(f"PREPARE {name} AS {statement}")
            self._prepared[statement] = name
        return name

    @property
    def status(self) -> int:
        """State of the transaction as libpq reports it; idle without a connection."""
        if self._connection is None or self._connection.closed:
            return TRANSACTION_STATUS_IDLE
        status: int = self._connection.info.transaction_status
        return status

    @contextmanager
    def call(self, is_retryable: Callable[[], bool]) -> Iterator[None]:
        """Wrap a call to the server and translate its errors.

        :param is_retryable: called if the connection was lost during the call.
        :raises RetryableError: a retry may succeed at once. Never raised for a connection that was
            lost in a call that is not retryable.
        :raises StoreUnavailable: the server cannot handle the call now, or did not answer in time.
        :raises StoreFull: its disk is full.
        """
        self._deadline = time.monotonic() + self._longest_call
        try:
            yield
        except psycopg2.Error as error:
            self._deadline = None
            raise self._translate(error, is_retryable) from error
        finally:
            self._deadline = None

    def _translate(self, error: psycopg2.Error, is_retryable: Callable[[], bool]) -> Exception:
        if self._is_aborted:
            self.close()
            return StoreUnavailable(
                f"the database did not answer within {self._longest_call:.0f} s"
            )
        if self._connection.closed:
            kind = RetryableError if is_retryable() else StoreUnavailable
            return kind(f"the connection to the database was lost: {message_of(error)}")
        if isinstance(error, _RETRYABLE):
            if isinstance(error, errors.ReadOnlySqlTransaction):
                self.close()
            return RetryableError(f"the database asks to try again: {message_of(error)}")
        if isinstance(error, _PROGRAMMING_ERRORS):
            return error
        kind = _KINDS.get(type(error), StoreUnavailable)
        return kind(f"the database cannot answer now: {message_of(error)}")

    def abort_if_late(self, now: float) -> None:
        """Abort a call that takes too long by shutting down its socket."""
        with self._lock:
            if self._deadline is None or now < self._deadline or self._connection.closed:
                return
            self._is_aborted = True
            # The connection may be lost meanwhile, which must not end the supervising thread.
            with (
                suppress(OSError, psycopg2.Error),
                socket.socket(fileno=os.dup(self._connection.fileno())) as end,
            ):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection; the next call opens another one."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()


class CallTimeouts:
    """Enforces the timeouts of the connections of this process, in a separate thread."""

    def __init__(self) -> None:
        self._connections: WeakSet[Connection] = WeakSet()
        self._lock = threading.Lock()
        threading.Thread(target=self._run, name="database watch", daemon=True).start()

    def add(self, connection: Connection) -> None:
        """Watch another connection."""
        with self._lock:
            self._connections.add(connection)

    def _run(self) -> None:
        never = threading.Event()
        while not never.wait(1.0):
            with self._lock:
                connections = list(self._connections)
            for connection in connections:
                connection.abort_if_late(time.monotonic())


@cache
def call_timeouts() -> CallTimeouts:
    """Return the `CallTimeouts` of this process."""
    return CallTimeouts()


@cache
def _format_markers(sql: str) -> str:
    """Return a statement with psycopg2's parameter markers."""
    return sql.replace("%", "%%").replace("?", "%s")


def _replace_nuls(values: Iterable[Value]) -> list[Value]:
    return [replace_nul(value) if isinstance(value, str) else value for value in values]


class PostgresqlTransaction:
    """A transaction on one connection; statements are sent when a result is needed."""

    locks_rows: ClassVar[bool] = True
    char_code_function: ClassVar[str] = "ascii"

    def __init__(self, connection: Connection, begin: bytes) -> None:
        self._connection = connection
        self._cursor = connection.open().cursor()
        self._pending = [begin]
        self._copied: _CopiedRows | None = None

    def execute(self, sql: str, parameters: Sequence[Value] = ()) -> int:
        """Run a statement; return the number of changed rows."""
        self._send_for_result(self._bind(sql, parameters))
        count: int = self._cursor.rowcount
        return count

    def execute_many(self, sql: str, parameters: Iterable[Sequence[Value]]) -> None:
        """Run a statement once for each set of parameters."""
        self._pending += [self._bind(sql, some) for some in parameters]

    def execute_over(self, sql: str, rows: Sequence[Sequence[Value]]) -> None:
        """Run a statement over a table of rows; see `Transaction`."""
        if rows:
            self._pending.append(self._bind_rows(sql, rows))

    def rows_over(self, sql: str, rows: Sequence[Sequence[Value]]) -> list[Row]:
        """Run a statement over a table of rows, and return its result rows."""
        if not rows:
            return []
        self._send_for_result(self._bind_rows(sql, rows))
        return named_rows(self._cursor.description, self._cursor.fetchall())

    def insert(self, into: str, rows: Sequence[Sequence[Value]]) -> None:
        """Insert rows with few statements; ``into`` is ``table (column, ...)``."""
        if not rows:
            return
        if self._copied is not None:  # one COPY per round trip
            self.flush()
        self._pending.append(b"COPY %b FROM STDIN (FORMAT binary)" % into.encode())
        self._copied = _CopiedRows(b"".join(chain((_HEADER,), map(_binary, rows), (_TRAILER,))))

    def rows(self, sql: str, parameters: Sequence[Value] = ()) -> list[Row]:
        """Run a query and return all rows."""
        self._send_for_result(self._bind(sql, parameters))
        return named_rows(self._cursor.description, self._cursor.fetchall())

    def row(self, sql: str, parameters: Sequence[Value] = ()) -> Row | None:
        """Run a query and return the first row, or `None`."""
        rows = self.rows(sql, parameters)
        return rows[0] if rows else None

    def containing(self, column: str, part: str) -> Condition:
        """Return the condition that a text contains a part.

        strpos() takes two thirds of the time of LIKE.
        """
        return f"strpos({column}, ?) > 0", (part,)

    def try_lock(self, work: int) -> bool:
        """Acquire the lock of a job until the commit; return false if another daemon has it."""
        ((is_free,),) = self.rows("SELECT pg_try_advisory_xact_lock(?)", (work,))
        return bool(is_free)

    def locked_rows(self, sql: str, parameters: Sequence[Value], table: str) -> list[Row]:
        """Run a query and lock its rows of a table; see `Transaction`."""
        return self.rows(f"{sql} {_LOCKED}{table}", parameters)

    def locked_rows_over(self, sql: str, rows: Sequence[Sequence[Value]], table: str) -> list[Row]:
        """Run `locked_rows` over a table of rows; see `Transaction`."""
        return self.rows_over(f"{sql} {_LOCKED}{table}", rows)

    def lock(self, work: int) -> None:
        """Wait for the lock of a job, and hold it until the commit."""
        self._pending.append(b"SELECT pg_advisory_xact_lock(%d)" % work)

    def touch(self) -> None:
        """Write a message to the server's log (WAL) without changing any table."""
        self.rows("SELECT pg_logical_emit_message(true, 'mailcheck', '')")

    def clock_offset(self) -> int:
        """Return the milliseconds by which the server's clock is ahead; 0 if within the noise."""
        ((theirs,),) = self.rows(
            "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)"
        )
        offset: int = theirs - int(self._connection.clock() * 1000)
        return offset if abs(offset) > CLOCK_NOISE else 0

    def send(self, statement: bytes, *, is_retryable: bool = True) -> None:
        """Send a statement and all pending ones before it, in one round trip."""
        statements, self._pending = b";\n".join([*self._pending, statement]), []
        copied, self._copied = self._copied, None
        if copied is None:
            with self._connection.call(lambda: is_retryable):
                self._cursor.execute(statements)
        else:
            # Statements after COPY in the same string run after its data has arrived.
            with self._connection.call(lambda: is_retryable or not copied.are_sent):
                self._cursor.copy_expert(statements, copied, COPY_PIECE)

    def flush(self) -> None:
        """Send the pending statements."""
        if self._pending:
            self.send(self._pending.pop())

    def discard_pending(self) -> None:
        """Discard the pending statements."""
        self._pending, self._copied = [], None

    @property
    def is_committed(self) -> bool:
        """Whether COMMIT succeeded; it rolls back a transaction that has failed."""
        is_over = self._connection.status == TRANSACTION_STATUS_IDLE
        return is_over and self._cursor.statusmessage != "ROLLBACK"

    def _send_for_result(self, statement: bytes) -> None:
        """Send a statement that has a result; COPY data is sent before, without a result."""
        if self._copied is not None:
            self.flush()
        self.send(statement)

    def _bind(self, sql: str, parameters: Sequence[Value]) -> bytes:
        written: bytes = self._cursor.mogrify(_format_markers(sql), _replace_nuls(parameters))
        return written

    def _bind_rows(self, sql: str, rows: Sequence[Sequence[Value]]) -> bytes:
        statement, arguments = bind_arrays(sql, rows)
        name = self._connection.prepared(statement)
        return b"EXECUTE %b (%b)" % (name.encode(), b", ".join(arguments))


class _CopiedRows(BytesIO):
    """Rows for COPY; the server runs no later statement before ``are_sent`` is true."""

    are_sent = False

    def read(self, size: int | None = -1) -> bytes:
        """Return the next data to send."""
        piece = super().read(size)
        if not piece:
            self.are_sent = True
        return piece


def _binary(row: Sequence[Value]) -> bytes:
    """Encode a row for COPY; integers are BIGINT in all of our tables."""
    fields = [_COLUMNS.pack(len(row))]
    for value in row:
        if isinstance(value, str):
            octets = replace_nul(value).encode()
        elif isinstance(value, int):
            fields.append(_BIGINT.pack(8, value))
            continue
        elif value is None:
            fields.append(_NULL)
            continue
        else:
            octets = value
        fields.append(_LENGTH.pack(len(octets)))
        fields.append(octets)
    return b"".join(fields)


class PostgresqlWriter:
    """The one connection of a daemon that writes, with savepoints for group commit.

    It is pickled as its URL: another process opens a separate connection.
    """

    def __init__(self, url: str, clock: Callable[[], float] = time.time) -> None:
        self._url = url
        self._connection = Connection(url, clock, settings=_FOR_WRITER)
        self._transaction: PostgresqlTransaction | None = None
        self.locked_inboxes = LockedInboxes()

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return writer_at, (self._url,)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    @property
    def is_in_transaction(self) -> bool:
        """Whether the transaction is open; false after the connection was lost."""
        return self._connection.status == TRANSACTION_STATUS_INTRANS

    def begin(self) -> Transaction:
        """Begin a writing transaction. Each statement sees earlier commits of other daemons."""
        self._transaction = PostgresqlTransaction(
            self._connection, b"BEGIN ISOLATION LEVEL READ COMMITTED"
        )
        return self._transaction

    def commit(self) -> None:
        """Commit durably; if the answer is lost, the outcome is unknown."""
        transaction = self._current()
        transaction.send(b"COMMIT", is_retryable=False)
        if not transaction.is_committed:
            raise StoreUnavailable("the database rolled back instead of committing")

    def rollback(self) -> None:
        """Roll back; close the connection if that fails."""
        self._current().discard_pending()
        if self._connection.status == TRANSACTION_STATUS_IDLE:
            return
        try:
            self._current().send(b"ROLLBACK")
        except (StoreUnavailable, psycopg2.Error):
            self._connection.close()

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Wrap a part of the transaction; an exception rolls the part back and propagates."""
        transaction = self._current()
        transaction.send(b"SAVEPOINT part")
        try:
            yield
            transaction.send(b"RELEASE SAVEPOINT part")
        except BaseException:
            transaction.discard_pending()
            if self._connection.status != TRANSACTION_STATUS_IDLE:
                transaction.send(b"ROLLBACK TO SAVEPOINT part; RELEASE SAVEPOINT part")
            raise

    def _current(self) -> PostgresqlTransaction:
        if self._transaction is None:
            raise StoreUnavailable("no transaction has begun")
        return self._transaction


@cache
def writer_at(url: str) -> PostgresqlWriter:
    """Return the writer of this process for a database; the result of unpickling a writer."""
    return PostgresqlWriter(url)
