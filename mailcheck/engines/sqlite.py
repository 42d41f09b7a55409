"""The SQLite engine: WAL, ``synchronous=FULL``, one writer with group commit, many readers.

In WAL mode readers use a snapshot and never wait for the writer. One daemon at a time uses a file;
commands may use it at the same time.
"""

import fcntl
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from mailcheck.core.errors import StoreDamaged, StoreFull, StoreUnavailable
from mailcheck.engines.committing import Outcome, Write, find_outcomes
from mailcheck.engines.database import DatabaseEngine, call_immediately
from mailcheck.engines.disk_reserve import DiskReserve
from mailcheck.engines.schema_upgrade import (
    read_version,
    require_known,
    schema_steps,
    upgrade_schema,
)
from mailcheck.engines.sqlite_writer import (
    READER_PRAGMAS,
    VACUUM_PAGES,
    SqliteWriter,
    as_unavailable,
    commit_from_reserve,
    connect,
    connect_to_read,
    query_file,
    run_query,
    vacuum,
)
from mailcheck.operations.concurrency import smaller_batch
from mailcheck.ports.clocks import CallSoon
from mailcheck.ports.engine import MailWork, Result, Transaction
from mailcheck.ports.workers import Worker
from mailcheck.store.transactions import write

IN_MEMORY = ":memory:"

LOCK_TIMEOUT = 2.0
"""Seconds to wait for the lock, so that a restarted daemon waits for its predecessor to stop."""

POLL = 0.1


class SqlitePresence:
    """The lock of the daemon that uses a file. A second one could not wake its waiting clients.

    It is a POSIX lock like those of SQLite, but on a separate file: closing another descriptor of
    the database would release SQLite's locks. It ends with the process; the file remains.
    """

    def __init__(self, path: str) -> None:
        self._database = path
        self._path = f"{path}.lock"
        self._file: int | None = None

    def begin(self) -> None:
        """Acquire the lock.

        :raises StoreUnavailable: another daemon holds it, or the file cannot be locked.
        """
        deadline = time.monotonic() + LOCK_TIMEOUT
        try:
            Path(self._path).parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            while not self._take():
                if time.monotonic() > deadline:
                    raise StoreUnavailable(self._refusal())
                time.sleep(POLL)
        except OSError as error:
            raise StoreUnavailable(f"{self._path} cannot be locked: {error.strerror}") from error
        with suppress(OSError):  # on a full disk the message names no process
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, b"%d" % os.getpid(), 0)

    def require_free(self) -> None:
        """Acquire the lock and release it. Without a file, no daemon has used the database."""
        if Path(self._path).exists():
            self.begin()
            self.end()

    def keep(self) -> None:
        """Do nothing, since the lock cannot be lost."""

    def end(self) -> None:
        """Release the lock."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _take(self) -> bool:
        assert self._file is not None
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):  # POSIX allows EAGAIN and EACCES
            return False
        return True

    def _refusal(self) -> str:
        assert self._file is not None
        pid = os.pread(self._file, 20, 0).decode("ascii", "replace")
        which = f"another daemon (process {pid})" if pid.isdigit() else "another daemon"
        return f"{which} uses {self._database}: stop it, or set another [storage] url for this one"


class SqliteEngine(DatabaseEngine):
    """An engine for a database file, or for `IN_MEMORY` in tests."""

    def __init__(
        self,
        path: str,
        writer_worker: Worker,
        reader_worker: Worker,
        call_soon: CallSoon = call_immediately,
        state_files: Sequence[Path] = (),
    ) -> None:
        """Prepare without opening a file; see `GroupCommit` for ``call_soon``.

        :param state_files: files that a daemon creates after it has opened its database.
        """
        super().__init__(writer_worker, reader_worker, call_soon)
        self._path = path
        self._state_files = (Path(f"{path}.reserve"), Path(f"{path}-wal"), *state_files)
        self._reserve = DiskReserve(path)

    def remote_query(self, query: Callable[[Transaction], Result]) -> Callable[[], Result] | None:
        """Return a callable that opens the file and runs a query."""
        return None if self._path == IN_MEMORY else partial(query_file, self._path, query)

    def _free_bytes(self) -> int | None:
        """Return the free bytes of the disk, or `None` for a database in memory."""
        if self._path == IN_MEMORY:
            return None
        return self._reserve.free_for_mail()

    def reclaim_space(self) -> Deferred[None]:
        """Shrink the file by part of the space of expired mail."""
        return Deferred.fromCoroutine(self._reclaim(VACUUM_PAGES))

    async def _reclaim(self, most: int) -> None:
        try:
            given = await self.write(vacuum, most)
        except StoreFull:
            if most == 1:
                raise
            await self._reclaim(smaller_batch(most))
            return
        if given:
            # The file becomes shorter only when its log is checkpointed.
            await self._writer_worker.run(self._opened_writer().checkpoint)

    def open_writer(self) -> SqliteWriter:
        """Require a complete file, upgrade its schema, and return its writer."""
        if self._path != IN_MEMORY:
            self._require_whole()
            self._reserve.free_for_start()
            _make_private(Path(self._path))
        with as_unavailable():
            writer = SqliteWriter(self._path)
            try:
                upgrade_schema(writer.connection, self._path, schema_steps())
            except BaseException:
                writer.close()
                raise
        return writer

    def require_usable(self) -> None:
        """Check that the file can be opened, without changing it. It need not exist yet."""
        if self._path == IN_MEMORY or not Path(self._path).exists():
            return
        self._require_whole()
        with as_unavailable(), closing(connect_to_read(self._path)) as connection:
            require_known(read_version(connection), schema_steps(), self._path)

    def _require_whole(self) -> None:
        """Reject a database file that has become empty: SQLite would create a new database in it.

        A missing file, or an empty file without other files beside it, is a first start.

        :raises StoreDamaged: the database has been lost.
        """
        path = Path(self._path)
        if not path.is_file() or path.stat().st_size:
            return
        left = [str(file) for file in self._state_files if file.is_file() and file.stat().st_size]
        if left:
            raise StoreDamaged(
                f"{path} has 0 bytes, but it contained a database, since {left[0]} exists. Restore "
                f"{path} from a backup, or delete it to start without its accounts and mail"
            )

    def _commit(self, group: Sequence[Write]) -> Deferred[list[Outcome]]:
        return (
            super()
            ._commit(group)
            .addErrback(
                lambda failure: Deferred.fromCoroutine(self._commit_with_full_disk(failure, group))
            )
        )

    async def _commit_with_full_disk(
        self, failure: Failure, group: Sequence[Write]
    ) -> list[Outcome]:
        """On a full disk, fail the mails of a group and commit other writes from the reserve."""
        failure.trap(StoreFull)
        if self._reserve.note_full():
            self._log.error(
                "the disk is full: mail is rejected until there is room; the reserve is used for "
                "deleting and expiry"
            )
        writer = self._opened_writer()
        with suppress(StoreUnavailable):  # for the next mail, if the file has room for the log
            await self._writer_worker.run(writer.restart_log)
        others = [queued for queued in group if not isinstance(queued.work, MailWork)]
        done = iter(await self._commit_others(writer, others))
        return [
            failure.value if isinstance(write.work, MailWork) else next(done) for write in group
        ]

    async def _commit_others(self, writer: SqliteWriter, group: Sequence[Write]) -> list[Outcome]:
        """Commit writes together if they fit into the log, otherwise one by one.

        The refusals of many mails fit. The log always has room for one transaction.
        """
        if len(group) > 1:
            with suppress(StoreUnavailable):
                return await self._writer_worker.run(_from_reserve(writer, group))
        outcomes: list[Outcome] = []
        for queued in group:
            try:
                outcomes += await self._writer_worker.run(_from_reserve(writer, [queued]))
            except StoreUnavailable as refused:
                outcomes.append(refused)
        return outcomes

    def find_outcomes_of(self, group: Sequence[Write]) -> Deferred[list[Outcome]]:
        """Return the outcome of each write of a group whose writer has died."""
        # The dead writer's locks are released, so a reader sees all that it committed.
        return self._reader_worker.run(
            lambda: self._query(lambda transaction: find_outcomes(transaction, group))
        )

    def _freeable(self, transaction: Transaction) -> dict[str, int]:
        ((pages,),) = transaction.rows("PRAGMA freelist_count")
        ((page_size,),) = transaction.rows("PRAGMA page_size")
        return {
            **super()._freeable(transaction),
            "mail that is deleted already, within minutes": pages * page_size,
        }

    def _store_bytes(self, transaction: Transaction) -> int:
        ((pages,),) = transaction.rows("PRAGMA page_count")
        ((page_size,),) = transaction.rows("PRAGMA page_size")
        return int(pages * page_size)

    async def _close(self) -> None:
        await super()._close()
        if self._path != IN_MEMORY:
            self._reserve.keep_for_start()

    def _query(self, query: Callable[[Transaction], Result]) -> Result:
        with as_unavailable():
            return run_query(self._reader(), query)

    def _opened_writer(self) -> SqliteWriter:
        if not isinstance(self.writer, SqliteWriter):
            raise StoreUnavailable("the database is not open")
        return self.writer

    def _reader(self) -> Any:
        return self._opened_writer().connection if self._path == IN_MEMORY else super()._reader()

    def _open_reader(self) -> sqlite3.Connection:
        self._opened_writer()
        return connect(self._path, *READER_PRAGMAS)


def _make_private(path: Path) -> None:
    """Create the database file, unless it exists, so that only its owner can read it."""
    with suppress(OSError):  # it exists or cannot be created; opening it reports that
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def _from_reserve(writer: SqliteWriter, group: Sequence[Write]) -> Callable[[], list[Outcome]]:
    frees_space = all(isinstance(work, write) and work.frees_space for work, _ in group)
    return partial(commit_from_reserve, writer, group, frees_space=frees_space)
