"""The SQLite engine: WAL, ``synchronous=FULL``, one writer with group commit, many readers.

In WAL mode readers work on a snapshot and never wait for the writer.
"""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

from twisted.internet.defer import Deferred

from mailcheck.core.errors import StoreUnavailable
from mailcheck.storage.engine import Item, Result, Row, Transaction, Value, Work
from mailcheck.storage.group_commit import GroupCommit
from mailcheck.storage.lanes import Lane
from mailcheck.storage.schema_upgrade import upgrade_schema

IN_MEMORY = ":memory:"

BUSY_TIMEOUT = 5.0
"""Seconds to wait for another process's write (the command line's) before 451 is the answer."""

CACHED_STATEMENTS = 256

_WRITER_PRAGMAS = (
    # Space of expired mail can be given back to the disk; only before the first table.
    "PRAGMA auto_vacuum = INCREMENTAL",
    "PRAGMA journal_mode = WAL",
    # Every commit is on disk before it returns, not only at checkpoints.
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    # What a savepoint may have to undo is kept in memory, not in a file of its own.
    "PRAGMA temp_store = MEMORY",
    # Deleted mail is overwritten where that costs no further page.
    "PRAGMA secure_delete = FAST",
    # A checkpoint every 16 MiB: fewer of them in a burst of mail.
    "PRAGMA wal_autocheckpoint = 4096",
    "PRAGMA journal_size_limit = 67108864",
)

VACUUM_PAGES = 2_000
"""Free pages given back to the disk at a time, so that no write waits long."""


@contextmanager
def _as_unavailable() -> Iterator[None]:
    """Turn what a full, locked or broken disk makes SQLite say into our own word for it."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.IntegrityError | sqlite3.ProgrammingError):
            raise
        raise StoreUnavailable(f"the database can't answer now: {error}") from error


class SqliteTransaction:
    """A transaction on one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, sql: str, parameters: Sequence[Value] = ()) -> int:
        """Run a statement; gives the number of rows it changed."""
        return self._connection.execute(sql, parameters).rowcount

    def execute_many(self, sql: str, parameters: Iterable[Sequence[Value]]) -> None:
        """Run a statement once for each set of parameters."""
        self._connection.executemany(sql, parameters)

    def insert(self, into: str, rows: Sequence[Sequence[Value]]) -> None:
        """Insert all rows with one statement; ``into`` is ``table (column, ...)``."""
        if rows:
            marks = f"({', '.join('?' * len(rows[0]))})"
            values = ", ".join([marks] * len(rows))
            self._connection.execute(f"INSERT INTO {into} VALUES {values}", list(chain(*rows)))

    def rows(self, sql: str, parameters: Sequence[Value] = ()) -> list[Row]:
        """Run a query and give all its rows."""
        return self._connection.execute(sql, parameters).fetchall()

    def row(self, sql: str, parameters: Sequence[Value] = ()) -> Row | None:
        """Run a query and give its first row."""
        row: Row | None = self._connection.execute(sql, parameters).fetchone()
        return row


class SqliteWriter:
    """The one connection that writes, bracketed for group commit."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._transaction = SqliteTransaction(connection)

    def begin(self) -> Transaction:
        """Begin a writing transaction, waiting for another process's at most `BUSY_TIMEOUT`."""
        with _as_unavailable():
            self._connection.execute("BEGIN IMMEDIATE")
        return self._transaction

    def commit(self) -> None:
        """Write the transaction to disk."""
        with _as_unavailable():
            self._connection.execute("COMMIT")

    def rollback(self) -> None:
        """Undo the transaction; SQLite may have done so itself (disk full)."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Bracket a part of the transaction: an exception undoes the part and goes on up.

        :raises StoreUnavailable: SQLite gave the whole transaction up (disk full).
        """
        with _as_unavailable():
            if not self._connection.in_transaction:
                # A savepoint would begin a transaction of its own and commit it.
                raise StoreUnavailable("the transaction was given up by the database")
            self._connection.execute("SAVEPOINT part")
            try:
                yield
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK TO part")
                    self._connection.execute("RELEASE part")
                raise
            self._connection.execute("RELEASE part")


class SqliteEngine:
    """A database file (or `IN_MEMORY`, for tests) behind the engine seam."""

    def __init__(self, path: str, writer_lane: Lane, reader_lane: Lane) -> None:
        self._path = path
        self._writer_lane = writer_lane
        self._reader_lane = reader_lane
        self._writer_connection: sqlite3.Connection | None = None
        self._readers = threading.local()
        self._open_readers: list[sqlite3.Connection] = []
        self._group_commit = GroupCommit(writer_lane, self._writer)

    def open(self) -> None:
        """Open the file, bring its schema up to date, start the lanes.

        :raises StoreUnavailable: the file can't be opened or is no database.
        :raises SchemaTooNew: a newer mailcheck wrote it.
        """
        with _as_unavailable():
            self._writer_connection = self._connect(*_WRITER_PRAGMAS)
            upgrade_schema(self._writer_connection, self._path)
        self._writer_lane.start()
        self._reader_lane.start()

    def close(self) -> None:
        """Finish what was given to write, then close the file."""
        self._writer_lane.stop()
        self._reader_lane.stop()
        for connection in [*self._open_readers, self._writer_connection]:
            if connection is not None:
                connection.close()

    def write(self, work: Work[Item, Result], item: Item) -> Deferred[Result]:
        """Run ``work`` for the item in the next group commit."""
        return self._group_commit.submit(work, item)

    def read(self, query: Callable[[Transaction], Result]) -> Deferred[Result]:
        """Run a query on one consistent snapshot."""
        return self._reader_lane.run(lambda: self._query(query))

    def free_bytes(self) -> int | None:
        """Say how much more the disk holds; nothing for a database in memory."""
        if self._path == IN_MEMORY:
            return None
        with _as_os_failure():
            disk = os.statvfs(Path(self._path).parent)
        return disk.f_bavail * disk.f_frsize

    def give_back_space(self) -> Deferred[None]:
        """Shrink the file by some of the space that expired mail left."""

        def vacuum() -> None:
            with _as_unavailable():
                self._connection_of_writer().execute(f"PRAGMA incremental_vacuum({VACUUM_PAGES})")

        return self._writer_lane.run(vacuum)

    def _query(self, query: Callable[[Transaction], Result]) -> Result:
        with _as_unavailable():
            connection = self._reader()
            if connection.in_transaction:
                return query(SqliteTransaction(connection))
            connection.execute("BEGIN")
            try:
                return query(SqliteTransaction(connection))
            finally:
                connection.execute("ROLLBACK")

    def _writer(self) -> SqliteWriter:
        return SqliteWriter(self._connection_of_writer())

    def _connection_of_writer(self) -> sqlite3.Connection:
        if self._writer_connection is None:
            raise StoreUnavailable("the database is not open")
        return self._writer_connection

    def _reader(self) -> sqlite3.Connection:
        if self._path == IN_MEMORY:
            return self._connection_of_writer()
        connection: sqlite3.Connection | None = getattr(self._readers, "connection", None)
        if connection is None:
            connection = self._readers.connection = self._connect("PRAGMA query_only = ON")
            self._open_readers.append(connection)
        return connection

    def _connect(self, *pragmas: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path,
            timeout=BUSY_TIMEOUT,
            isolation_level=None,
            check_same_thread=False,  # a lane's thread uses it, the reactor's closes it
            cached_statements=CACHED_STATEMENTS,
        )
        for pragma in pragmas:
            connection.execute(pragma)
        return connection


@contextmanager
def _as_os_failure() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreUnavailable(f"the disk of the database can't be read: {error}") from error
