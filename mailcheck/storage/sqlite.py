"""The SQLite engine: WAL, ``synchronous=FULL``, one writer with group commit, many readers.

In WAL mode readers work on a snapshot and never wait for the writer.
"""

import os
import sqlite3
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from twisted.internet.defer import Deferred, fail, maybeDeferred

from mailcheck.core.errors import StoreUnavailable
from mailcheck.operations.ports import Worker
from mailcheck.storage.committing import Outcome, Write, commit_group
from mailcheck.storage.engine import Item, Result, Transaction, Work
from mailcheck.storage.group_commit import GroupCommit, Soon, at_once
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


class SqliteEngine:
    """A database file (or `IN_MEMORY`, for tests) behind the engine seam."""

    def __init__(
        self, path: str, writer_worker: Worker, reader_worker: Worker, soon: Soon = at_once
    ) -> None:
        """Prepare; nothing is opened yet. ``soon`` gathers writes, see `GroupCommit`."""
        self._path = path
        self._writer_worker = writer_worker
        self._reader_worker = reader_worker
        self._writer: SqliteWriter | None = None
        self._is_open = False
        self._readers = threading.local()
        self._open_readers: list[sqlite3.Connection] = []
        self._group_commit = GroupCommit(self._commit, soon)

    def open(self) -> None:
        """Open the file, bring its schema up to date, start the workers.

        :raises StoreUnavailable: the file can't be opened or is no database.
        :raises SchemaTooNew: a newer mailcheck wrote it.
        """
        with as_unavailable():
            writer = SqliteWriter(self._path)
            try:
                upgrade_schema(writer.connection, self._path, schema_steps())
            except BaseException:
                writer.close()
                raise
            self._writer = writer
        self._writer_worker.start()
        self._reader_worker.start()
        self._is_open = True

    def close(self) -> Deferred[None]:
        """Take nothing more, finish what was given to write, then close the file."""
        self._is_open = False
        return Deferred.fromCoroutine(self._close())

    async def _close(self) -> None:
        await self._group_commit.close()
        for worker in (self._writer_worker, self._reader_worker):
            await maybeDeferred(worker.stop)
        for connection in self._open_readers:
            connection.close()
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def write(self, work: Work[Item, Result], item: Item) -> Deferred[Result]:
        """Run ``work`` for the item in the next group commit."""
        return self._group_commit.submit(work, item)

    def read(self, query: Callable[[Transaction], Result]) -> Deferred[Result]:
        """Run a query on one consistent snapshot."""
        if not self._is_open:
            return fail(StoreUnavailable("the database is not open"))
        return self._reader_worker.run(lambda: self._query(query))

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

    def _commit(self, group: Sequence[Write]) -> Deferred[list[Outcome]]:
        return self._writer_worker.run(partial(commit_group, self._opened_writer(), group))

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
        if self._writer is None:
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


def _vacuum(transaction: Transaction, items: Sequence[None]) -> list[None]:
    ((free_pages,),) = transaction.rows("PRAGMA freelist_count")
    # Each step of the statement gives one page back, and `sqlite3` takes one step of it.
    for _ in range(min(free_pages, VACUUM_PAGES)):
        transaction.execute("PRAGMA incremental_vacuum(1)")
    return [None] * len(items)
