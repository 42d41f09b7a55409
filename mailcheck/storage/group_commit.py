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

from mailcheck.core.errors import ExpectedFailure
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

    Jobs of the same work run together. Work that fails is undone and leaves
    its neighbours' writes alone.

    :raises StoreUnavailable: nothing of the group was written.
    """
    transaction = connection.begin()
    try:
        outcomes: dict[int, Outcome] = {}
        for work, numbers in _by_work(group).items():
            items = [group[number].item for number in numbers]
            results = _run_together(connection, transaction, work, items)
            outcomes.update(zip(numbers, results, strict=True))
        connection.commit()
    except BaseException:
        connection.rollback()
        raise
    return [outcomes[number] for number in range(len(group))]


def _by_work(group: Sequence[Job]) -> dict[Work[Any, Any], list[int]]:
    numbers: dict[Work[Any, Any], list[int]] = {}
    for number, job in enumerate(group):
        numbers.setdefault(job.work, []).append(number)
    return numbers


def _run_together(
    connection: GroupConnection,
    transaction: Transaction,
    work: Work[Any, Any],
    items: Sequence[Any],
) -> Sequence[Outcome]:
    try:
        with connection.savepoint():
            return work(transaction, items)
    except Exception:
        if len(items) == 1:
            return [Failure()]
        return [_run_together(connection, transaction, work, [item])[0] for item in items]
