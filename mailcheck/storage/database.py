"""What the engines have in common: writes go in groups to one worker, reads to others."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from twisted.internet.defer import Deferred, fail, maybeDeferred

from mailcheck.core.errors import StoreUnavailable
from mailcheck.core.instruments import Distribution
from mailcheck.operations.ports import Worker
from mailcheck.storage.committing import GroupConnection, Outcome, Write, commit_group
from mailcheck.storage.engine import Item, Result, Transaction, Work
from mailcheck.storage.group_commit import GroupCommit, Soon


class WriterConnection(GroupConnection, Protocol):
    """The writer's connection; pickled it becomes that of the process it comes to."""

    def close(self) -> None:
        """Close the connection."""


class DatabaseEngine:
    """An engine on one database; a subclass says how that is opened and read."""

    def __init__(self, writer_worker: Worker, reader_worker: Worker, soon: Soon) -> None:
        """Prepare; nothing is opened yet. ``soon`` gathers writes, see `GroupCommit`."""
        self._writer_worker = writer_worker
        self._reader_worker = reader_worker
        self._writer: WriterConnection | None = None
        self._is_open = False
        self._group_commit = GroupCommit(self._commit, soon)

    def open(self) -> None:
        """Open the database, bring its schema up to date, start the workers.

        :raises StoreUnavailable: it can't be opened.
        :raises SchemaTooNew: a newer mailcheck wrote it.
        """
        self._writer = self._open_writer()
        self._writer_worker.start()
        self._reader_worker.start()
        self._is_open = True

    def close(self) -> Deferred[None]:
        """Take nothing more, finish what was given to write, then close the database."""
        self._is_open = False
        return Deferred.fromCoroutine(self._close())

    @property
    def group_sizes(self) -> Distribution:
        """How many writes shared each commit."""
        return self._group_commit.sizes

    def write(self, work: Work[Item, Result], item: Item) -> Deferred[Result]:
        """Run ``work`` for the item in the next group commit."""
        return self._group_commit.submit(work, item)

    def read(self, query: Callable[[Transaction], Result]) -> Deferred[Result]:
        """Run a query on one consistent snapshot."""
        if not self._is_open:
            return fail(StoreUnavailable("the database is not open"))
        return self._reader_worker.run(lambda: self._query(query))

    def free_bytes(self) -> int | None:
        """Say how much more the disk holds; nothing where that is not ours to know."""
        raise NotImplementedError

    def give_back_space(self) -> Deferred[None]:
        """Give some of the space that expired mail left back to the disk."""
        raise NotImplementedError

    def _open_writer(self) -> WriterConnection:
        raise NotImplementedError

    def _query(self, query: Callable[[Transaction], Result]) -> Result:
        raise NotImplementedError

    def _close_readers(self) -> None:
        raise NotImplementedError

    async def _close(self) -> None:
        await self._group_commit.close()
        for worker in (self._writer_worker, self._reader_worker):
            await maybeDeferred(worker.stop)
        self._close_readers()
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _commit(self, group: Sequence[Write]) -> Deferred[list[Outcome]]:
        if self._writer is None:
            raise StoreUnavailable("the database is not open")
        # Plain tuples are pickled without the name of a class for each.
        plain = [(write.work, write.item) for write in group]
        return self._writer_worker.run(partial(commit_group, self._writer, plain))
