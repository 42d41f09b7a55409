"""Connections to a SQLite file: setup, readers, and the connection that writes."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cache
from itertools import chain
from pathlib import Path
from typing import ClassVar

from mailcheck.core.errors import StoreDamaged, StoreFull, StoreUnavailable
from mailcheck.engines.committing import Outcome, Write, commit_group
from mailcheck.engines.disk_reserve import FileReserve
from mailcheck.ports.engine import Condition, Result, Row, Transaction, Value
from mailcheck.store.transactions import escape_like, named_rows, values_of

VACUUM_PAGES = 2_000
"""Free pages returned to the disk at a time, so that no write waits long."""

BUSY_TIMEOUT = 5.0
"""Seconds to wait for a write of another process (a command) before replying with 451."""

CACHED_STATEMENTS = 256

ROWS_PER_INSERT = 500
"""Rows in one statement; SQLite accepts 32,766 parameters."""

WRITER_PRAGMAS = (
    # Lets the space of expired mail return to the disk; must be set before the first table.
    "PRAGMA auto_vacuum = INCREMENTAL",
    "PRAGMA journal_mode = WAL",
    # Every commit is on disk before it returns, not only after a checkpoint.
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    # The journal of a savepoint is in memory, not in a file.
    "PRAGMA temp_store = MEMORY",
    # Deleted mail is overwritten where this needs no additional page.
    "PRAGMA secure_delete = FAST",
    "PRAGMA journal_size_limit = 67108864",
)

READER_PRAGMAS = (
    "PRAGMA query_only = ON",
    # Little is sorted. It needs no disk, which may be full.
    "PRAGMA temp_store = MEMORY",
    # A search reads thousands of pages. Copying them from the system's cache takes a third of its
    # time. (A disk error in a mapped page ends the process.)
    "PRAGMA mmap_size = 268435456",
)

LOG_GROWS = 2
"""The log is checkpointed when it has grown to its reserved size times this."""

_DAMAGED = frozenset((sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB))

_FULL = frozenset((sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE))
"""No room for the file, its log, or the index of the log."""


@contextmanager
def as_unavailable() -> Iterator[None]:
    """Translate SQLite's errors for a full, locked or broken disk."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.IntegrityError | sqlite3.ProgrammingError):
            raise
        if getattr(error, "sqlite_errorcode", None) in _FULL:  # sqlite3's own errors have no code
            raise StoreFull("the server's disk is full; try again later") from error
        # The lowest octet of an extended code is the basic code.
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED:
            raise StoreDamaged(
                f"the database cannot answer now, since it is damaged: {error}"
            ) from error
        raise StoreUnavailable(f"the database cannot answer now: {error}") from error


def connect(path: str, *pragmas: str) -> sqlite3.Connection:
    """Open a connection that threads may use one at a time."""
    connection = sqlite3.connect(
        path,
        timeout=BUSY_TIMEOUT,
        isolation_level=None,
        check_same_thread=False,  # used by a worker's thread, closed by the reactor's
        cached_statements=CACHED_STATEMENTS,
    )
    try:
        for pragma in pragmas:
            connection.execute(pragma)
    except BaseException:
        connection.close()
        raise
    return connection


def connect_to_read(path: str | Path, *, is_at_rest: bool = False) -> sqlite3.Connection:
    """Open an existing file that is never changed.

    :param is_at_rest: nothing writes to it. It is read without locks, and without the files beside
        it that SQLite would create, so its folder may be read-only.
    """
    options = "mode=ro&immutable=1" if is_at_rest else "mode=ro"
    return sqlite3.connect(f"{Path(path).resolve().as_uri()}?{options}", uri=True)


class SqliteTransaction:
    """A transaction on one connection."""

    locks_rows: ClassVar[bool] = False
    char_code_function: ClassVar[str] = "unicode"

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, sql: str, parameters: Sequence[Value] = ()) -> int:
        """Run a statement; return the number of changed rows."""
        return self._connection.execute(sql, parameters).rowcount

    def execute_many(self, sql: str, parameters: Iterable[Sequence[Value]]) -> None:
        """Run a statement once for each set of parameters."""
        self._connection.executemany(sql, parameters)

    def execute_over(self, sql: str, rows: Sequence[Sequence[Value]]) -> None:
        """Run a statement over a table of rows; see `Transaction`."""
        self.rows_over(sql, rows)

    def rows_over(self, sql: str, rows: Sequence[Sequence[Value]]) -> list[Row]:
        """Run a statement over a table of rows, and return its result rows."""
        found: list[Row] = []
        for start in range(0, len(rows), ROWS_PER_INSERT):
            some = rows[start : start + ROWS_PER_INSERT]
            found += self.rows(sql.format(rows=values_of(some)), list(chain(*some)))
        return found

    def insert(self, into: str, rows: Sequence[Sequence[Value]]) -> None:
        """Insert rows with few statements; ``into`` is ``table (column, ...)``."""
        for start in range(0, len(rows), ROWS_PER_INSERT):
            some = rows[start : start + ROWS_PER_INSERT]
            self._connection.execute(f"INSERT INTO {into} {values_of(some)}", list(chain(*some)))

    def rows(self, sql: str, parameters: Sequence[Value] = ()) -> list[Row]:
        """Run a query and return all rows."""
        cursor = self._connection.execute(sql, parameters)
        return named_rows(cursor.description or (), cursor.fetchall())

    def row(self, sql: str, parameters: Sequence[Value] = ()) -> Row | None:
        """Run a query and return the first row, or `None`."""
        cursor = self._connection.execute(sql, parameters)
        row = cursor.fetchone()
        return None if row is None else named_rows(cursor.description, [row])[0]

    def containing(self, column: str, part: str) -> Condition:
        """Return the condition that a text contains a part.

        LIKE takes two thirds of the time of instr().
        """
        return f"{column} LIKE ? ESCAPE '!'", (f"%{escape_like(part)}%",)

    def try_lock(self, work: int) -> bool:
        """Return true, since only one process writes at a time."""
        return True

    def locked_rows(self, sql: str, parameters: Sequence[Value], table: str) -> list[Row]:
        """Run a query; the only writer has locked the whole file."""
        return self.rows(sql, parameters)

    def locked_rows_over(self, sql: str, rows: Sequence[Sequence[Value]], table: str) -> list[Row]:
        """Run `locked_rows` over a table of rows; see `Transaction`."""
        return self.rows_over(sql, rows)

    def lock(self, work: int) -> None:
        """Do nothing, since the only writer has locked the whole file."""

    def touch(self) -> None:
        """Write the header of the file without changing it."""
        ((version,),) = self.rows("PRAGMA user_version")
        self.execute(f"PRAGMA user_version = {version}")

    def clock_offset(self) -> int:
        """Return 0, since all processes that use a file have the same clock."""
        return 0


def run_query(connection: sqlite3.Connection, query: Callable[[Transaction], Result]) -> Result:
    """Run a query on one consistent snapshot."""
    transaction = SqliteTransaction(connection)
    if connection.in_transaction:
        return query(transaction)
    connection.execute("BEGIN")
    try:
        return query(transaction)
    finally:
        connection.execute("ROLLBACK")


def query_file(path: str, query: Callable[[Transaction], Result]) -> Result:
    """Open a file, run a query and close it, so that the daemon's stop finds no open connection."""
    with as_unavailable(), closing(connect(path, *READER_PRAGMAS)) as connection:
        return run_query(connection, query)


class SqliteWriter:
    """The one connection that writes, with savepoints for group commit.

    It is pickled as its path: another process opens a separate connection.
    """

    locked_inboxes = None

    def __init__(self, path: str) -> None:
        self._path = path
        self._connection = connect(path, *WRITER_PRAGMAS)
        self._transaction = SqliteTransaction(self._connection)
        self._room: FileReserve | None = None
        (database,) = self._transaction.rows("PRAGMA database_list")
        if database.file:
            ((self._page_size,),) = self._transaction.rows("PRAGMA page_size")
            self._room = FileReserve(path)
            self._kept = self._room.spare
            # Every 16 MiB, so that a burst of mail has fewer checkpoints. Less on a small disk.
            pages = LOG_GROWS * self._room.log // self._page_size
            self._connection.execute(f"PRAGMA wal_autocheckpoint = {pages}")

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return writer_at, (self._path,)

    @property
    def connection(self) -> sqlite3.Connection:
        """The bare connection, for the schema and for readers of a database in memory."""
        return self._connection

    def close(self) -> None:
        """Close the connection, after all others of this process."""
        self._connection.close()
        if self._room is not None:
            self._room.close()

    @property
    def is_in_transaction(self) -> bool:
        """Whether the transaction is open; SQLite aborts it when the disk is full."""
        return self._connection.in_transaction

    def restart_log(self) -> None:
        """Move the log into the file, so that the log is written from its beginning.

        Waits at most `BUSY_TIMEOUT` for readers of the log.
        """
        self._checkpoint("RESTART")

    def checkpoint(self) -> None:
        """Move the part of the log that no reader uses into the file."""
        self._checkpoint("PASSIVE")

    def _checkpoint(self, how: str) -> None:
        with as_unavailable():
            self._connection.execute(f"PRAGMA wal_checkpoint({how})").fetchall()
        if self._room is not None:
            self._room.reallocate()

    @contextmanager
    def using_reserve(self, *, frees_space: bool) -> Iterator[None]:
        """Commit with half of the spare blocks, or with all if the write frees space."""
        assert self._room is not None
        self._kept = 0 if frees_space else self._room.spare // 2
        try:
            yield
        finally:
            self._kept = self._room.spare

    def begin(self) -> Transaction:
        """Begin a writing transaction; wait at most `BUSY_TIMEOUT` for another process."""
        with as_unavailable():
            self._connection.execute("BEGIN IMMEDIATE")
        return self._transaction

    def commit(self) -> None:
        """Write the transaction to disk, after allocating blocks for it in the file."""
        with as_unavailable():
            if self._room is not None:
                ((pages,),) = self._transaction.rows("PRAGMA page_count")
                self._room.allocate(pages * self._page_size, self._kept)
            self._connection.execute("COMMIT")
        if self._room is not None:
            self._room.reallocate()

    def rollback(self) -> None:
        """Roll back; SQLite may have done so itself (full disk)."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Wrap a part of the transaction; an exception rolls the part back and propagates."""
        with as_unavailable():
            self._connection.execute("SAVEPOINT part")
            try:
                yield
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK TO part")
                    self._connection.execute("RELEASE part")
                raise
            self._connection.execute("RELEASE part")


@cache
def writer_at(path: str) -> SqliteWriter:
    """Return the writer of this process for a file; the result of unpickling a writer."""
    with as_unavailable():
        return SqliteWriter(path)


def commit_from_reserve(
    writer: SqliteWriter, group: Sequence[Write], *, frees_space: bool
) -> list[Outcome]:
    """Commit on a full disk, as far as the reserve has room."""
    with writer.using_reserve(frees_space=frees_space):
        try:
            return commit_group(writer, group)
        except StoreFull:
            writer.restart_log()
            return commit_group(writer, group)


def vacuum(transaction: Transaction, items: Sequence[int]) -> list[int]:
    """Return up to the given number of free pages to the disk; return their number."""
    ((free_pages,),) = transaction.rows("PRAGMA freelist_count")
    given = min(free_pages, max(items))
    # Each step of the statement returns one page, and `sqlite3` executes one step.
    for _ in range(given):
        transaction.execute("PRAGMA incremental_vacuum(1)")
    return [given] * len(items)
