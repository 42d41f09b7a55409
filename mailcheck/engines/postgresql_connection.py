"""Connections to PostgreSQL: how they are made and watched, and the one that writes.

Statements whose answer nobody asks for wait and are sent with the next one, or
with COMMIT: a group of mails costs two round trips. Statements over rows are
prepared once on each connection: to parse and plan them took a third of the
server's time for a small group.
"""

import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache
from io import BytesIO
from itertools import chain
from typing import Any, ClassVar
from weakref import WeakSet

import psycopg2
from psycopg2 import errors
from psycopg2.extensions import (
    TRANSACTION_STATUS_IDLE,
    TRANSACTION_STATUS_INTRANS,
    make_dsn,
    new_type,
    parse_dsn,
    register_type,
)

from mailcheck.core.errors import StoreAway, StoreDamaged, StoreFull, StoreUnavailable
from mailcheck.engines.committing import LockedInboxes
from mailcheck.engines.postgresql_rows import bind_arrays, replace_nul
from mailcheck.ports.engine import Condition, RetryableError, Row, RowLocked, Transaction, Value
from mailcheck.store.transactions import named_rows

CONNECT_TIMEOUT = 5
"""Seconds that a host may take until the next one of the connection string is tried."""

LOCK_TIMEOUT = 5.0
"""Seconds to wait for another daemon's write before 451 is the answer."""

WRITERS_LOCK_TIMEOUT = 2.0
"""Seconds for which the writer waits for a row, and all mail with it. Another daemon's group keeps
its rows locked for some milliseconds."""

STATEMENT_TIMEOUT = 8.0
"""Seconds for a statement: the server itself gives up first."""

LONGEST_CALL = 10.0
"""Seconds for an answer; a server that hangs is given up then, and so are our locks there."""

CLOCK_NOISE = 100
"""Milliseconds by which two clocks seem to differ that run alike: the question takes a while."""

COPY_PIECE = 262_144
"""Octets handed to libpq at a time."""

_HEADER = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)
_TRAILER = struct.pack(">h", -1)
_NULL = struct.pack(">i", -1)
_BIGINT = struct.Struct(">iq")
_LENGTH = struct.Struct(">i")
_COLUMNS = struct.Struct(">h")

_SETTINGS = f"""
    SET statement_timeout = {STATEMENT_TIMEOUT * 1000:.0f};
    SET lock_timeout = {LOCK_TIMEOUT * 1000:.0f};
    SET idle_in_transaction_session_timeout = {LONGEST_CALL * 1000:.0f};
    SET jit = off
"""
"""To compile a statement takes longer than any of ours runs."""

INDEX_PLANS = """
    SET enable_seqscan = off; SET enable_bitmapscan = off; SET plan_cache_mode = force_generic_plan
"""
"""What the planner is told: all that we ask has an index, lists in their order. With
statistics that are old, in a store that grows fast, it would read and sort the whole table
for one page; and it would keep such a plan for a statement prepared while the table was small.
"""

_LOCKED = "FOR NO KEY UPDATE OF "

BYTEA = 17
"""The type's object identifier (``pg_type``)."""

_PROGRAMMING_ERRORS = (
    psycopg2.IntegrityError,
    psycopg2.ProgrammingError,
    psycopg2.DataError,
    psycopg2.NotSupportedError,
)
"""What a database says to statements that are wrong: not a failure of its own."""

_RETRYABLE = (
    errors.DeadlockDetected,
    errors.SerializationFailure,
    # Another host has been made the primary since we connected.
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
    """A connection that is made when it is needed, and again after it was lost."""

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
        """Give the psycopg2 connection.

        :raises StoreUnavailable: there is no answer from any host.
        """
        if self._connection is None or self._connection.closed:
            self._is_aborted = False
            try:
                self._connection = connect(self._url, self._settings)
            except psycopg2.Error as error:
                raise StoreUnavailable(
                    f"the database can't be reached: {_message_of(error)}"
                ) from error
            self._prepared = {}
            call_timeouts().add(self)
        return self._connection

    def prepared(self, statement: str) -> str:
        """Give the name of a statement on this connection, whose parameters are $1, $2, ...

        It is prepared when it is asked for first, in a round trip of its own: a
        transaction that fails later does not undo that.
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
        """Give libpq's state of the transaction; idle where there is no connection."""
        if self._connection is None or self._connection.closed:
            return TRANSACTION_STATUS_IDLE
        status: int = self._connection.info.transaction_status
        return status

    @contextmanager
    def call(self, is_retryable: Callable[[], bool]) -> Iterator[None]:
        """Bracket a call to the server.

        :param is_retryable: is asked where the connection was lost in the call.
        :raises Repeatable: the same may go well at once; never for a connection that was lost
            in a call that is not repeatable.
        :raises StoreUnavailable: the server can't do it now, or did not answer in time.
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
            return kind(f"the connection to the database was lost: {_message_of(error)}")
        if isinstance(error, _RETRYABLE):
            if isinstance(error, errors.ReadOnlySqlTransaction):
                self.close()
            return RetryableError(f"the database asks to try again: {_message_of(error)}")
        if isinstance(error, _PROGRAMMING_ERRORS):
            return error
        kind = _KINDS.get(type(error), StoreUnavailable)
        return kind(f"the database can't answer now: {_message_of(error)}")

    def abort_if_late(self, now: float) -> None:
        """End a call that takes too long: the socket is shut down under it."""
        with self._lock:
            if self._deadline is None or now < self._deadline or self._connection.closed:
                return
            self._is_aborted = True
            # The connection may have been lost meanwhile; that must not end the supervising thread.
            with (
                suppress(OSError, psycopg2.Error),
                socket.socket(fileno=os.dup(self._connection.fileno())) as end,
            ):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection; the next call makes another one."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()


def _message_of(error: psycopg2.Error) -> str:
    return " ".join(str(error).split())


class CallTimeouts:
    """Looks after the connections of this process, in a thread of its own."""

    def __init__(self) -> None:
        self._connections: WeakSet[Connection] = WeakSet()
        self._lock = threading.Lock()
        threading.Thread(target=self._run, name="database watch", daemon=True).start()

    def add(self, connection: Connection) -> None:
        """Look after one more."""
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
    """Give the watch of this process."""
    return CallTimeouts()


def connect(url: str, settings: str = "") -> Any:
    """Open a connection; what is not in the URL comes from libpq's variables and files.

    ``settings`` are statements that are run on it beside those for every connection.

    :raises psycopg2.Error: there is no answer from any host, or nobody may come in so.
    :raises StoreUnavailable: the URL is none.
    """
    try:
        given = parse_dsn(url)
    except psycopg2.ProgrammingError:
        # Without libpq's words: they quote what may be the password.
        raise StoreUnavailable(
            "the database's URL can't be read: what is special in it is written as %xx"
        ) from None
    known = {"application_name": "mailcheck", "client_encoding": "UTF8"}
    if "PGCONNECT_TIMEOUT" not in os.environ:
        known["connect_timeout"] = str(CONNECT_TIMEOUT)
    connection = psycopg2.connect(make_dsn(**{**known, **given}))
    try:
        connection.autocommit = True
        register_type(_BYTES, connection)
        with connection.cursor() as cursor:
            cursor.execute(f"{_SETTINGS};{settings}")
    except BaseException:
        connection.close()
        raise
    return connection


FIRST_VERSION = 13
"""The oldest version of PostgreSQL that the daemon works with."""

_PERMANENT_FAILURES = (
    "authentication failed", "no password supplied", "does not exist", "pg_hba.conf", "certificate",
    "SSL is not enabled", "not support SSL", "not permitted", "permission denied", "invalid",
    "pooling mode",
)  # fmt: skip
"""Parts of messages of failures that waiting does not end; libpq has no codes for them."""


def connection_failure(error: psycopg2.Error) -> StoreUnavailable:
    """Return the failure of a connection attempt: `StoreAway` if a later attempt may succeed."""
    said = _message_of(error)
    kind = StoreUnavailable if any(part in said for part in _PERMANENT_FAILURES) else StoreAway
    return kind(f"the database can't be reached: {said}")


def require_version(number: int) -> None:
    """Refuse a server that is too old.

    :param number: as libpq gives it: 130004 is 13.4, 90624 is 9.6.24.
    :raises StoreUnavailable: says which version it is.
    """
    if number < FIRST_VERSION * 10_000:
        major, minor = divmod(number, 10_000)
        version = f"{major}.{minor}" if major > 9 else f"{major}.{minor // 100}.{minor % 100}"
        raise StoreUnavailable(
            f"the server is PostgreSQL {version}: mailcheck needs {FIRST_VERSION} or newer"
        )


def require_sessions(url: str) -> None:
    """Test that the server is new enough, and that each connection is a session of its own.

    A pooler in transaction mode gives a session to another connection as soon as a transaction has
    ended: settings, prepared statements and locks are lost or belong to another client.

    :raises StoreAway: no host answers.
    :raises StoreUnavailable: the server is too old, refuses, or is behind such a pooler.
    """
    with _opened(url) as one, _opened(url) as other:
        require_version(one.server_version)
        are_shared = _share_sessions(one, other)
    if are_shared:
        raise StoreUnavailable(
            "the pooler before the database gives a session away after each transaction "
            "(PgBouncer: pool_mode = transaction): set pool_mode = session, or connect to "
            "PostgreSQL itself"
        )


def _share_sessions(one: Any, other: Any) -> bool:
    """Return whether two connections share sessions of the server.

    A pooler hands out a free session, the last used one or the next. Sharing is seen at once, or
    when a transaction holds one of the sessions.
    """
    session = _session_of(one)
    if _session_of(other) == session or _session_of(one) != session:
        return True
    try:
        with other.cursor() as cursor:
            cursor.execute("BEGIN")
            return _session_of(other) == session or _session_of(one) != session
    except psycopg2.Error:
        return True  # statement mode has no transactions


@contextmanager
def _opened(url: str) -> Iterator[Any]:
    try:
        with closing(connect(url)) as connection:
            yield connection
    except psycopg2.Error as error:
        raise connection_failure(error) from error


def _session_of(connection: Any) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        ((pid,),) = cursor.fetchall()
    return int(pid)


def _as_bytes(value: Any, cursor: Any) -> bytes | None:
    return None if value is None else bytes(psycopg2.BINARY(value, cursor))


_BYTES = new_type((BYTEA,), "BYTES", _as_bytes)


@cache
def _format_markers(sql: str) -> str:
    """Write the seam's statement as psycopg2 wants it."""
    return sql.replace("%", "%%").replace("?", "%s")


def _replace_nuls(values: Iterable[Value]) -> list[Value]:
    return [replace_nul(value) if isinstance(value, str) else value for value in values]


class PostgresqlTransaction:
    """A transaction on one connection; nothing is sent before an answer is needed."""

    locks_rows: ClassVar[bool] = True
    char_code_function: ClassVar[str] = "ascii"

    def __init__(self, connection: Connection, begin: bytes) -> None:
        self._connection = connection
        self._cursor = connection.open().cursor()
        self._pending = [begin]
        self._copied: _CopiedRows | None = None

    def execute(self, sql: str, parameters: Sequence[Value] = ()) -> int:
        """Run a statement; gives the number of rows it changed."""
        self._send_for_result(self._bind(sql, parameters))
        count: int = self._cursor.rowcount
        return count

    def execute_many(self, sql: str, parameters: Iterable[Sequence[Value]]) -> None:
        """Run a statement once for each set of parameters."""
        self._pending += [self._bind(sql, some) for some in parameters]

    def execute_over(self, sql: str, rows: Sequence[Sequence[Value]]) -> None:
        """Run a statement over a table of rows; see the seam."""
        if rows:
            self._pending.append(self._bind_rows(sql, rows))

    def rows_over(self, sql: str, rows: Sequence[Sequence[Value]]) -> list[Row]:
        """As `execute_over`, and give the rows that the statement returns."""
        if not rows:
            return []
        self._send_for_result(self._bind_rows(sql, rows))
        return named_rows(self._cursor.description, self._cursor.fetchall())

    def insert(self, into: str, rows: Sequence[Sequence[Value]]) -> None:
        """Insert all rows with few statements; ``into`` is ``table (column, ...)``."""
        if not rows:
            return
        if self._copied is not None:  # one to a round trip
            self.flush()
        self._pending.append(b"COPY %b FROM STDIN (FORMAT binary)" % into.encode())
        self._copied = _CopiedRows(b"".join(chain((_HEADER,), map(_binary, rows), (_TRAILER,))))

    def rows(self, sql: str, parameters: Sequence[Value] = ()) -> list[Row]:
        """Run a query and give all its rows."""
        self._send_for_result(self._bind(sql, parameters))
        return named_rows(self._cursor.description, self._cursor.fetchall())

    def row(self, sql: str, parameters: Sequence[Value] = ()) -> Row | None:
        """Run a query and give its first row."""
        rows = self.rows(sql, parameters)
        return rows[0] if rows else None

    def containing(self, column: str, part: str) -> Condition:
        """Write that a text has a part: strpos() takes two thirds of the time of LIKE."""
        return f"strpos({column}, ?) > 0", (part,)

    def try_lock(self, work: int) -> bool:
        """Tell whether no other daemon does this work now; none begins it before the commit."""
        ((is_free,),) = self.rows("SELECT pg_try_advisory_xact_lock(?)", (work,))
        return bool(is_free)

    def locked_rows(self, sql: str, parameters: Sequence[Value], table: str) -> list[Row]:
        """Run a query and keep its rows of a table from other writers; see the seam."""
        return self.rows(f"{sql} {_LOCKED}{table}", parameters)

    def locked_rows_over(self, sql: str, rows: Sequence[Sequence[Value]], table: str) -> list[Row]:
        """As `locked_rows`, over a table of rows; see the seam."""
        return self.rows_over(f"{sql} {_LOCKED}{table}", rows)

    def lock(self, work: int) -> None:
        """Wait until no other daemon does this work; none begins it before the commit."""
        self._pending.append(b"SELECT pg_advisory_xact_lock(%d)" % work)

    def touch(self) -> None:
        """Write a message into the log of the server, of which no table knows."""
        self.rows("SELECT pg_logical_emit_message(true, 'mailcheck', '')")

    def clock_offset(self) -> int:
        """Compare the server's clock with ours; a difference too small to tell is none."""
        ((theirs,),) = self.rows(
            "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)"
        )
        offset: int = theirs - int(self._connection.clock() * 1000)
        return offset if abs(offset) > CLOCK_NOISE else 0

    def send(self, statement: bytes, *, is_retryable: bool = True) -> None:
        """Send a statement and all that waits before it, in one round trip."""
        statements, self._pending = b";\n".join([*self._pending, statement]), []
        copied, self._copied = self._copied, None
        if copied is None:
            with self._connection.call(lambda: is_retryable):
                self._cursor.execute(statements)
        else:
            # What stands behind COPY in the same string runs when its data have come.
            with self._connection.call(lambda: is_retryable or not copied.are_sent):
                self._cursor.copy_expert(statements, copied, COPY_PIECE)

    def flush(self) -> None:
        """Send what waits."""
        if self._pending:
            self.send(self._pending.pop())

    def discard_pending(self) -> None:
        """Drop what was not sent yet."""
        self._pending, self._copied = [], None

    @property
    def is_committed(self) -> bool:
        """Tell, after COMMIT, whether that was done: one that had failed is rolled back by it."""
        is_over = self._connection.status == TRANSACTION_STATUS_IDLE
        return is_over and self._cursor.statusmessage != "ROLLBACK"

    def _send_for_result(self, statement: bytes) -> None:
        """Send a statement whose answer is wanted: beside data that are copied there is none."""
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
    """Rows for COPY; until ``are_sent`` the server has not run what stands behind it."""

    are_sent = False

    def read(self, size: int | None = -1) -> bytes:
        """Give what is sent next."""
        piece = super().read(size)
        if not piece:
            self.are_sent = True
        return piece


def _binary(row: Sequence[Value]) -> bytes:
    """Write a row as COPY reads it: a whole number is a BIGINT, as in all of our tables."""
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
    """The one connection of a daemon that writes, bracketed for group commit.

    Pickled it is its URL: another process opens a connection of its own.
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
        """Tell whether the transaction goes on: one whose connection was lost does not."""
        return self._connection.status == TRANSACTION_STATUS_INTRANS

    def begin(self) -> Transaction:
        """Begin a writing transaction. Each statement sees what others have committed before it."""
        self._transaction = PostgresqlTransaction(
            self._connection, b"BEGIN ISOLATION LEVEL READ COMMITTED"
        )
        return self._transaction

    def commit(self) -> None:
        """Make it durable. When the answer is lost nobody knows whether it is."""
        transaction = self._current()
        transaction.send(b"COMMIT", is_retryable=False)
        if not transaction.is_committed:
            raise StoreUnavailable("the database answered COMMIT by ROLLBACK")

    def rollback(self) -> None:
        """Undo all of it; a connection that can't is closed."""
        self._current().discard_pending()
        if self._connection.status == TRANSACTION_STATUS_IDLE:
            return
        try:
            self._current().send(b"ROLLBACK")
        except (StoreUnavailable, psycopg2.Error):
            self._connection.close()

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Bracket a part of the transaction: an exception undoes the part and goes on up."""
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
            raise StoreUnavailable("no transaction was begun")
        return self._transaction


@cache
def writer_at(url: str) -> PostgresqlWriter:
    """Give the writer of this process for a database: what a pickled one becomes again."""
    return PostgresqlWriter(url)
