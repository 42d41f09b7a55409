"""Group commit: all writes that wait while one commit runs share the next.

One fsync then serves many mails, so ``synchronous=FULL`` is both safe and
fast. There is no timer: an idle store commits a lone write at once.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from mailcheck.core.errors import ExpectedFailure, StoreUnavailable
from mailcheck.storage.engine import Item, Result, Transaction, Work
from mailcheck.storage.lanes import Lane

MAX_GROUP = 256
"""Writes in one commit; bounds how long the first of them waits for the last."""

Outcome = Any


@dataclass(slots=True)
class Job:
    """One write that waits for a commit."""

    work: Work[Any, Any]
    item: Any
    when_committed: "Deferred[Any]" = field(default_factory=Deferred)


class GroupConnection(Protocol):
    """The writer's connection: a transaction that can be bracketed and partly undone."""

    def begin(self) -> Transaction:
        """Begin a writing transaction."""

    def commit(self) -> None:
        """Make it durable."""

    def rollback(self) -> None:
        """Undo all of it; never raises."""

    def savepoint(self) -> AbstractContextManager[None]:
        """Bracket a part of the transaction: an exception undoes the part and goes on up."""


class GroupCommit:
    """Collects writes and commits them in groups, one group at a time."""

    def __init__(self, lane: Lane, connection: Callable[[], GroupConnection]) -> None:
        self._lane = lane
        self._connection = connection
        self._waiting: list[Job] = []
        self._is_committing = False

    def submit(self, work: Work[Item, Result], item: Item) -> Deferred[Result]:
        """Take a write; fires after the commit that holds it."""
        job = Job(work, item)
        self._waiting.append(job)
        if not self._is_committing:
            self._commit_next()
        return job.when_committed

    def _commit_next(self) -> None:
        group, self._waiting = self._waiting[:MAX_GROUP], self._waiting[MAX_GROUP:]
        self._is_committing = True
        committed = self._lane.run(lambda: commit_group(self._connection(), group))
        committed.addBoth(self._finish, group)

    def _finish(self, outcomes: list[Outcome] | Failure, group: list[Job]) -> None:
        # The next commit starts before anyone hears of this one: the disk
        # works while replies are written.
        if self._waiting:
            self._commit_next()
        else:
            self._is_committing = False
        for number, job in enumerate(group):
            outcome = outcomes if isinstance(outcomes, Failure) else outcomes[number]
            if isinstance(outcome, ExpectedFailure | Failure):
                job.when_committed.errback(outcome)
            else:
                job.when_committed.callback(outcome)


def commit_group(connection: GroupConnection, group: Sequence[Job]) -> list[Outcome]:
    """Run all jobs in one transaction and commit it; an outcome for each job.

    Jobs of the same work run together. Where one of them fails, nothing has
    happened yet, and they run again one by one: work that fails is undone and
    leaves its neighbours' writes alone.

    :raises StoreUnavailable: nothing of the group was written.
    """
    try:
        return _commit(connection, lambda transaction: _run_together(transaction, group))
    except StoreUnavailable:
        raise
    except Exception:
        return _commit(connection, lambda transaction: _run_each(connection, transaction, group))


def _commit(
    connection: GroupConnection, run: Callable[[Transaction], list[Outcome]]
) -> list[Outcome]:
    transaction = connection.begin()
    try:
        outcomes = run(transaction)
        connection.commit()
    except BaseException:
        connection.rollback()
        raise
    return outcomes


def _run_together(transaction: Transaction, group: Sequence[Job]) -> list[Outcome]:
    by_work: dict[Work[Any, Any], list[int]] = {}
    for number, job in enumerate(group):
        by_work.setdefault(job.work, []).append(number)
    outcomes: list[Outcome] = [None] * len(group)
    for work, numbers in by_work.items():
        results = work(transaction, [group[number].item for number in numbers])
        for number, result in zip(numbers, results, strict=True):
            outcomes[number] = result
    return outcomes


def _run_each(
    connection: GroupConnection, transaction: Transaction, group: Sequence[Job]
) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for job in group:
        try:
            with connection.savepoint():
                outcomes.extend(job.work(transaction, [job.item]))
        except Exception:
            outcomes.append(Failure())
    return outcomes
