"""What the engines have in common: writes go in groups to one worker, reads to others."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from twisted.internet.defer import Deferred, fail, maybeDeferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailcheck.core.errors import ExpectedFailure, StoreDamaged, StoreUnavailable, WorkerDied
from mailcheck.core.instruments import SIZES, Distribution
from mailcheck.engines.committing import (
    Outcome,
    Write,
    WriterConnection,
    commit_group,
    recover_outcomes,
    touch,
)
from mailcheck.operations.incidents import Incidents
from mailcheck.ports.clocks import Soon
from mailcheck.ports.engine import Item, MailWork, Result, Transaction, Work
from mailcheck.ports.workers import Worker

MAX_GROUP = 256
"""Writes in one commit; bounds how long the first of them waits for the last."""

MAX_GROUP_OCTETS = 16 * 1024 * 1024
"""Of mail in one commit, where it is more than one mail: a slow disk, too, is done with it before
the writer is taken for dead."""

MAX_UNDER_WAY = 2
"""Groups that the writer has at a time: it begins the next while the answer to one is on its way.
With more of them the groups, and what a commit is shared by, get smaller."""

FAILED = (ExpectedFailure, Failure)
"""Outcomes of a write that failed."""


def call_immediately(call: Callable[[], object]) -> None:
    """Call it: for who does one thing at a time."""
    call()


class GroupCommit:
    """Collects writes and has them committed in groups.

    All writes that wait while others are committed share the next commit. One fsync then serves
    many mails, so ``synchronous=FULL`` is both safe and fast. There is no timer: an idle store
    commits a lone write at once, or, where many things come at once, as soon as all of them
    were looked at.

    :param commit: commits the groups it is given one after the other, in their order.
    :param soon: what is submitted until it calls shares a commit: the mails, say, that a
        reactor finds complete when it looks at all connections once.
    """

    def __init__(
        self,
        commit: Callable[[Sequence[Write]], Deferred[list[Outcome]]],
        soon: Soon = call_immediately,
    ) -> None:
        self._commit = commit
        self._soon = soon
        self._waiting: list[tuple[Write, Deferred[Any]]] = []
        self._is_collecting = False
        self._under_way = 0
        self._last_size = 0
        self._is_closed = False
        self._when_finished: Deferred[None] = Deferred()
        self.sizes = Distribution(SIZES)

    def submit(self, work: Work[Item, Result], item: Item) -> Deferred[Result]:
        """Take a write; fires after the commit that holds it."""
        if self._is_closed:
            return fail(StoreUnavailable("the database is closed"))
        when_committed: Deferred[Result] = Deferred()
        self._waiting.append((Write(work, item), when_committed))
        if not self._is_collecting:
            self._is_collecting = True
            self._soon(self._collected)
        return when_committed

    def give_up(self, failure: Failure) -> None:
        """Fail what waits and was given to nobody: of that nothing was written."""
        waiting, self._waiting = self._waiting, []
        for _, when_committed in waiting:
            when_committed.errback(failure)

    def close(self) -> Deferred[None]:
        """Take no more writes; fires when all that were given are committed."""
        self._is_closed = True
        self._collected()
        self._fire_if_finished()
        return self._when_finished

    def _collected(self) -> None:
        self._is_collecting = False
        self._begin()

    def _begin(self) -> None:
        """Commit what waits, beside another group only if it is no smaller than that one.

        A commit costs much the same for one mail and for ten: where mails come
        in a stream, many small groups would take their time from the receiver.
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
        # The next commit starts before anyone hears of this one: the disk
        # works while replies are written.
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
    """Say how many of the writes that wait are committed together, one at least."""
    octets = 0
    for number, (write, _) in enumerate(waiting[:MAX_GROUP]):
        if isinstance(write.work, MailWork):
            octets += write.work.octets(write.item)
            if number and octets > MAX_GROUP_OCTETS:
                return number
    return min(len(waiting), MAX_GROUP)


DAMAGED = "a read or write has met a damaged page: restore a backup"


class DatabaseEngine:
    """An engine on one database; a subclass says how that is opened and read.

    With ``incidents`` the messages of failures are public, and the log has the cause.
    ``writer`` is the connection that writes, `None` while the database is not open.
    """

    _log = Logger()
    incidents: Incidents | None = None

    def __init__(self, writer_worker: Worker, reader_worker: Worker, soon: Soon) -> None:
        """Prepare; nothing is opened yet. ``soon`` gathers writes, see `GroupCommit`."""
        self._writer_worker = writer_worker
        self._reader_worker = reader_worker
        self.writer: WriterConnection | None = None
        self._is_open = False
        self.damage = ""
        self._group_commit = GroupCommit(self._commit, soon)

    def open(self) -> None:
        """Open the database, bring its schema up to date, start the workers.

        :raises StoreUnavailable: it can't be opened.
        :raises SchemaTooNew: a newer mailcheck wrote it.
        """
        self.writer = self.open_writer()
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
        return self._group_commit.submit(work, item).addErrback(self._hide_cause)

    def read(self, query: Callable[[Transaction], Result]) -> Deferred[Result]:
        """Run a query on one consistent snapshot."""
        if not self._is_open:
            closed: Deferred[Result] = fail(StoreUnavailable("the database is not open"))
            return closed.addErrback(self._hide_cause)
        return self._reader_worker.run(lambda: self._query(query)).addErrback(self._hide_cause)

    def remote_query(self, query: Callable[[Transaction], Result]) -> Callable[[], Result] | None:
        """Give nothing: each process would need a connection of its own."""
        return None

    def beat(self) -> Deferred[None]:
        """See that the store takes a write, and is read: fires when both went well."""
        return self.write(touch, None).addCallback(lambda _: self.read(_read_sample))

    def free_bytes(self) -> int | None:
        """Return the free space of the disk, or `None` if the engine cannot know it.

        :raises StoreUnavailable: the disk can't be asked.
        """
        try:
            return self._free_bytes()
        except StoreUnavailable as failure:
            if self.incidents is None:
                raise
            raise self.incidents.public(failure) from failure

    def freeable(self) -> Deferred[dict[str, int]]:
        """Say what would make how many bytes of room on the disk."""
        return self.read(self._freeable)

    def reclaim_space(self) -> Deferred[None]:
        """Give some of the space that expired mail left back to the disk."""
        raise NotImplementedError

    def _free_bytes(self) -> int | None:
        raise NotImplementedError

    def open_writer(self) -> WriterConnection:
        """Bring the schema up to date, and return the connection that writes."""
        raise NotImplementedError

    def _query(self, query: Callable[[Transaction], Result]) -> Result:
        raise NotImplementedError

    def _freeable(self, transaction: Transaction) -> dict[str, int]:
        ((stored,),) = transaction.rows(
            "SELECT CAST(COALESCE(SUM(size), 0) AS BIGINT) FROM delivery"
        )
        return {"deleting all mail": stored}

    def _close_readers(self) -> None:
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
        self._close_readers()
        if self.writer is not None:
            self.writer.close()
            self.writer = None

    def _commit(self, group: Sequence[Write]) -> Deferred[list[Outcome]]:
        if self.writer is None:
            raise StoreUnavailable("the database is not open")
        committed = self._writer_worker.run(partial(commit_group, self.writer, group))
        return committed.addErrback(self._recover, group)

    def _recover(self, failure: Failure, group: Sequence[Write]) -> Deferred[list[Outcome]]:
        """Where the writer has died tell of each mail of its group whether it is stored.

        A sender is told to try again with those that are not, and with no other: nothing
        is stored twice.
        """
        failure.trap(WorkerDied)
        self._group_commit.give_up(failure)
        return self.find_outcomes_of(group).addCallbacks(
            self._log_recovered, lambda _: failure, callbackArgs=(failure,)
        )

    def _log_recovered(self, outcomes: list[Outcome], failure: Failure) -> list[Outcome]:
        stored = sum(not isinstance(outcome, WorkerDied) for outcome in outcomes)
        self._log.warn(
            "{reason}; of {count} writes that it had, {stored} mails are stored",
            reason=failure.getErrorMessage(),
            count=len(outcomes),
            stored=stored,
        )
        return outcomes

    def find_outcomes_of(self, group: Sequence[Write]) -> Deferred[list[Outcome]]:
        """Return what became of each write of a group whose writer has died."""
        if self.writer is None:
            raise StoreUnavailable("the database is not open")
        # It looks once the dead writer can write no more.
        return self._writer_worker.run(partial(recover_outcomes, self.writer, group))


def _read_sample(transaction: Transaction) -> None:
    """Read all data that each call of a client reads, since a page of it may be damaged."""
    transaction.row("SELECT MAX(LENGTH(digest)), MAX(revoked_at) FROM api_key")
    transaction.row("SELECT MAX(last_position) FROM inbox")
    transaction.row("SELECT MAX(created_at) FROM account")
