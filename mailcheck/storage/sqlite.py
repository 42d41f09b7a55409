"""The SQLite engine: WAL, ``synchronous=FULL``, one writer with group commit, many readers.

In WAL mode readers work on a snapshot and never wait for the writer.
"""

import os
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from twisted.internet.defer import Deferred

from mailcheck.core.errors import StoreUnavailable
from mailcheck.operations.ports import Worker
from mailcheck.storage.database import DatabaseEngine
from mailcheck.storage.engine import Result, Transaction
from mailcheck.storage.group_commit import Soon, at_once
from mailcheck.storage.schema_upgrade import schema_steps, upgrade_schema
from mailcheck.storage.sqlite_writer import (
    SqliteTransaction,
    SqliteWriter,
    as_unavailable,
    connect,
)

IN_MEMORY = ":memory:"

VACUUM_PAGES = 2_000
"""Free pages given back to the disk at a time, so that no write waits long."""


class SqliteEngine(DatabaseEngine):
    """A database file (or `IN_MEMORY`, for tests) behind the engine seam."""

    def __init__(
        self, path: str, writer_worker: Worker, reader_worker: Worker, soon: Soon = at_once
    ) -> None:
        """Prepare; nothing is opened yet. ``soon`` gathers writes, see `GroupCommit`."""
        super().__init__(writer_worker, reader_worker, soon)
        self._path = path
        self._readers = threading.local()
        self._open_readers: list[sqlite3.Connection] = []

    def free_bytes(self) -> int | None:
        """Say how much more the disk holds; nothing for a database in memory."""
        if self._path == IN_MEMORY:
            return None
        try:
            disk = os.statvfs(Path(self._path).parent)
        except OSError as error:
            raise StoreUnavailable(f"the database's disk can't be read: {error}") from error
        return disk.f_bavail * disk.f_frsize

    def give_back_space(self) -> Deferred[None]:
        """Shrink the file by some of the space that expired mail left."""
        return self.write(_vacuum, None)

    def _open_writer(self) -> SqliteWriter:
        with as_unavailable():
            if self._path != IN_MEMORY:
                _make_private(Path(self._path))
            writer = SqliteWriter(self._path)
            try:
                upgrade_schema(writer.connection, self._path, schema_steps())
            except BaseException:
                writer.close()
                raise
        return writer

    def _close_readers(self) -> None:
        for connection in self._open_readers:
            connection.close()

    def _query(self, query: Callable[[Transaction], Result]) -> Result:
        with as_unavailable():
            connection = self._reader()
            if connection.in_transaction:
                return query(SqliteTransaction(connection))
            connection.execute("BEGIN")
            try:
                return query(SqliteTransaction(connection))
            finally:
                connection.execute("ROLLBACK")

    def _opened_writer(self) -> SqliteWriter:
        if not isinstance(self._writer, SqliteWriter):
            raise StoreUnavailable("the database is not open")
        return self._writer

    def _reader(self) -> sqlite3.Connection:
        if self._path == IN_MEMORY:
            return self._opened_writer().connection
        connection: sqlite3.Connection | None = getattr(self._readers, "connection", None)
        if connection is None:
            self._opened_writer()
            connection = self._readers.connection = connect(self._path, "PRAGMA query_only = ON")
            self._open_readers.append(connection)
        return connection


def _make_private(path: Path) -> None:
    """Make the file where it is not there: it is mail, and nobody else's, whoever makes it."""
    with suppress(OSError):  # it is there, or can't be: opening it will tell
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def _vacuum(transaction: Transaction, items: Sequence[None]) -> list[None]:
    ((free_pages,),) = transaction.rows("PRAGMA freelist_count")
    # Each step of the statement gives one page back, and `sqlite3` takes one step of it.
    for _ in range(min(free_pages, VACUUM_PAGES)):
        transaction.execute("PRAGMA incremental_vacuum(1)")
    return [None] * len(items)
