"""The common part of the engines: group commit in one writer, and reads in other workers."""

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from twisted.internet.defer import Deferred, fail, maybeDeferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailcheck.core.errors import ExpectedFailure, StoreDamaged, StoreUnavailable, WorkerDied
from mailcheck.core.memory.instruments import SIZES, Distribution
from mailcheck.engines.committing import (
    Outcome,
    Write,
    WriterConnection,
    commit_group,
    recover_outcomes,
    touch,
)
from mailcheck.operations.incidents import Incidents
from mailcheck.ports.clocks import CallSoon
from mailcheck.ports.engine import Item, MailWork, Result, Transaction, Work
from mailcheck.ports.workers import Worker

MAX_GROUP = 256
"""Maximum number of writes in one commit; bounds how long the first of them waits for the last."""

MAX_GROUP_OCTETS = 16 * 1024 * 1024
"""Maximum number of octets of mail in one commit of several mails. A slow disk must finish the
commit before the writer counts as dead."""

MAX_UNDER_WAY = 2
"""Maximum number of groups in the writer at a time. The writer begins the next group while the
result of the first is on its way. With more, the groups become smaller, so that each commit serves
fewer mails."""

FAILED = (ExpectedFailure, Failure)
"""Outcomes of a failed write."""


def call_immediately(call: Callable[[], object]) -> None:
    """Call a function; for callers that do one thing at a time."""
    call()


class GroupCommit:
    """Collects writes and commits them in groups.

    All writes that wait during a commit share the next one. One fsync thus serves many mails, so
    that ``synchronous=FULL`` is both safe and fast. There is no timer: an idle store commits a
    single write at once, or after the current iteration of the reactor.

    :param commit: commits the given groups one after the other, in order.
    :param soon: calls a function later. All writes that are submitted until then share a commit,
        for example the mails that one iteration of the reactor completes.
    """

    def __init__(
        self,
        commit: Callable[[Sequence[Write]], Deferred[list[Outcome]]],
        call_soon: CallSoon = call_immediately,
    ) -> None:
        self._commit = commit
        self._call_soon = call_soon
        self._waiting: list[tuple[Write, Deferred[Any]]] = []
        self._is_collecting = False
        self._under_way = 0
        self._last_size = 0
        self._is_closed = False
        self._when_finished: Deferred[None] = Deferred()
        self.sizes = Distribution(SIZES)

    def submit(self, work: Work[Item, Result], item: Item) -> Deferred[Result]:
        """Queue a write; fires after its commit."""
        if self._is_closed:
            return fail(StoreUnavailable("the database is closed"))
        when_committed: Deferred[Result] = Deferred()
        self._waiting.append((Write(work, item), when_committed))
        if not self._is_collecting:
            self._is_collecting = True
            self._call_soon(self._collected)
        return when_committed

    def give_up(self, failure: Failure) -> None:
        """Fail the writes that no worker has received; none of them was written."""
        waiting, self._waiting = self._waiting, []
        for _, when_committed in waiting:
            when_committed.errback(failure)

    def close(self) -> Deferred[None]:
        """Accept no more writes; fires when all submitted writes are committed."""
        self._is_closed = True
        self._collected()
        self._fire_if_finished()
        return self._when_finished

    def _collected(self) -> None:
        self._is_collecting = False
        self._begin()

    def _begin(self) -> None:
        """Commit the waiting writes, beside another group only if they are at least as many.

        A commit costs about the same for one mail and for ten. Under load, many small groups would
        take CPU time from the receiver.
        """
        if not self._waiting or self._is_collecting or self._under_way == MAX_UNDER_WAY:
            return
        if not self._under_way or len(self._waiting) >= self._last_size:
            self._commit_next()

    def _commit_next(self) -> None:
        end = _end_of_group(self._waiting)
        group, self._waiting = self._waiting[:end], self._waiting[end:]
        self._last_size = len(group)
        self.sizes.observe(len(group))
        self._under_way += 1
        committed = maybeDeferred(self._commit, [write for write, _ in group])
        committed.addBoth(self._finish, [when_committed for _, when_committed in group])

    def _finish(self, outcomes: list[Outcome] | Failure, group: list[Deferred[Any]]) -> None:
        # The next commit starts before the callbacks of this one: the disk works while replies
        # are written.
        self._under_way -= 1
        self._begin()
        for number, when_committed in enumerate(group):
            outcome = outcomes if isinstance(outcomes, Failure) else outcomes[number]
            if isinstance(outcome, FAILED):
                when_committed.errback(outcome)
            else:
                when_committed.callback(outcome)
        self._fire_if_finished()

    def _fire_if_finished(self) -> None:
        is_idle = not self._under_way and not self._waiting
        if self._is_closed and is_idle and not self._when_finished.called:
            self._when_finished.callback(None)


def _end_of_group(waiting: Sequence[tuple[Write, Deferred[Any]]]) -> int:
    """Return how many of the waiting writes are committed together; at least one."""
    octets = 0
    for number, (write, _) in enumerate(waiting[:MAX_GROUP]):
        if isinstance(write.work, MailWork):
            octets += write.work.octets(write.item)
            if number and octets > MAX_GROUP_OCTETS:
                return number
    return min(len(waiting), MAX_GROUP)


DAMAGED = "the database has a damaged page; restore a backup"


class DatabaseEngine:
    """An engine for one database; subclasses open it and read from it.

    With ``incidents``, messages of failures are public and the log has their causes. ``writer`` is
    the connection that writes, or `None` while the database is not open.
    """

    _log = Logger()
    incidents: Incidents | None = None

    def __init__(self, writer_worker: Worker, reader_worker: Worker, call_soon: CallSoon) -> None:
        """Prepare without opening the database; see `GroupCommit` for ``call_soon``."""
        self._writer_worker = writer_worker
        self._reader_worker = reader_worker
        self.writer: WriterConnection | None = None
        self._is_open = False
        self.damage = ""
        self._readers = threading.local()
        self._open_readers: list[Any] = []
        self._group_commit = GroupCommit(self._commit, call_soon)

    def open(self) -> None:
        """Open the database, upgrade its schema and start the workers.

        :raises StoreUnavailable: it cannot be opened.
        :raises SchemaTooNew: a newer mailcheck wrote it.
        """
        self.writer = self.open_writer()
        self._writer_worker.start()
        self._reader_worker.start()
        self._is_open = True

    def require_usable(self) -> None:
        """Check that the database can be opened, without changing it. Subclasses implement it.

        :raises StoreUnavailable: it cannot.
        :raises SchemaTooNew: a newer mailcheck wrote it.
        """
        raise NotImplementedError

    def close(self) -> Deferred[None]:
        """Accept no more work, finish the submitted writes, then close the database."""
        self._is_open = False
        return Deferred.fromCoroutine(self._close())

    @property
    def group_sizes(self) -> Distribution:
        """The number of writes in each commit."""
        return self._group_commit.sizes

    def write(self, work: Work[Item, Result], item: Item) -> Deferred[Result]:
        """Run ``work`` for the item in the next group commit."""
        return self._group_commit.submit(work, item).addErrback(self._hide_cause)

    def read(self, query: Callable[[Transaction], Result]) -> Deferred[Result]:
        """Run a query on one consistent snapshot."""
        if not self._is_open:
            closed: Deferred[Result] = fail(StoreUnavailable("the database is not open"))
            return closed.addErrback(self._hide_cause)
        return self._reader_worker.run(lambda: self._query(query)).addErrback(self._hide_cause)

    def remote_query(self, query: Callable[[Transaction], Result]) -> Callable[[], Result] | None:
        """Return `None`: each process would need a separate connection."""
        return None

    def beat(self) -> Deferred[None]:
        """Check that the store can write and read; fires when both have succeeded."""
        return self.write(touch, None).addCallback(lambda _: self.read(_read_sample))

    def free_bytes(self) -> int | None:
        """Return the free space of the disk, or `None` if the engine cannot determine it.

        :raises StoreUnavailable: the disk cannot be queried.
        """
        try:
            return self._free_bytes()
        except StoreUnavailable as failure:
            if self.incidents is None:
                raise
            raise self.incidents.public(failure) from failure

    def freeable(self) -> Deferred[dict[str, int]]:
        """Return the bytes that each action would free on the disk."""
        return self.read(self._freeable)

    def store_bytes(self) -> Deferred[int]:
        """Return the bytes of the database on its disk."""
        return self.read(self._store_bytes)

    def _store_bytes(self, transaction: Transaction) -> int:
        raise NotImplementedError

    def reclaim_space(self) -> Deferred[None]:
        """Return part of the space of expired mail to the disk."""
        raise NotImplementedError

    def _free_bytes(self) -> int | None:
        raise NotImplementedError

    def open_writer(self) -> WriterConnection:
        """Upgrade the schema, and return the connection that writes."""
        raise NotImplementedError

    def _query(self, query: Callable[[Transaction], Result]) -> Result:
        raise NotImplementedError

    def _freeable(self, transaction: Transaction) -> dict[str, int]:
        ((stored,),) = transaction.rows(
            "SELECT CAST(COALESCE(SUM(size), 0) AS BIGINT) FROM delivery"
        )
        return {"deleting all mail": stored}

    def _reader(self) -> Any:
        """Return the connection with which this thread reads. It is opened at its first use."""
        connection = getattr(self._readers, "connection", None)
        if connection is None:
            connection = self._readers.connection = self._open_reader()
            self._open_readers.append(connection)
        return connection

    def _open_reader(self) -> Any:
        raise NotImplementedError

    def _hide_cause(self, failure: Failure) -> Failure:
        if isinstance(failure.value, StoreDamaged):
            self.damage = DAMAGED
        if self.incidents is not None and isinstance(failure.value, StoreUnavailable):
            return Failure(self.incidents.public(failure.value))
        return failure

    async def _close(self) -> None:
        await self._group_commit.close()
        for worker in (self._writer_worker, self._reader_worker):
            await maybeDeferred(worker.stop)
        for connection in self._open_readers:
            connection.close()
        if self.writer is not None:
            self.writer.close()
            self.writer = None

    def _commit(self, group: Sequence[Write]) -> Deferred[list[Outcome]]:
        if self.writer is None:
            raise StoreUnavailable("the database is not open")
        committed = self._writer_worker.run(partial(commit_group, self.writer, group))
        return committed.addErrback(self._recover, group)

    def _recover(self, failure: Failure, group: Sequence[Write]) -> Deferred[list[Outcome]]:
        """After the death of the writer, find out which mails of its group are stored.

        Senders are told to retry the other mails, and only those, so that no mail is stored twice.
        """
        failure.trap(WorkerDied)
        self._group_commit.give_up(failure)
        return self.find_outcomes_of(group).addCallbacks(
            self._log_recovered, lambda _: failure, callbackArgs=(failure,)
        )

    def _log_recovered(self, outcomes: list[Outcome], failure: Failure) -> list[Outcome]:
        stored = sum(not isinstance(outcome, WorkerDied) for outcome in outcomes)
        self._log.warn(
            "{reason}; {stored} mails of its {count} writes are stored",
            reason=failure.getErrorMessage(),
            count=len(outcomes),
            stored=stored,
        )
        return outcomes

    def find_outcomes_of(self, group: Sequence[Write]) -> Deferred[list[Outcome]]:
        """Return the outcome of each write of a group whose writer has died."""
        if self.writer is None:
            raise StoreUnavailable("the database is not open")
        # Runs when the dead writer can no longer write.
        return self._writer_worker.run(partial(recover_outcomes, self.writer, group))


def _read_sample(transaction: Transaction) -> None:
    """Read all data that every API call reads, to find damaged pages."""
    transaction.row("SELECT MAX(LENGTH(digest)), MAX(revoked_at) FROM api_key")
    transaction.row("SELECT MAX(last_position) FROM inbox")
    transaction.row("SELECT MAX(created_at) FROM account")
