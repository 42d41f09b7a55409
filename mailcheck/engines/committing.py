"""Committing a group of writes in one transaction, in the process of the writer's connection."""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import Any, NamedTuple, Protocol

from mailcheck.core.errors import StoreUnavailable, WorkerDied
from mailcheck.core.identifiers import AccountId
from mailcheck.ports.engine import InboxWork, MailWork, RetryableError, RowLocked, Transaction, Work
from mailcheck.store.messages import find_locked_inboxes, lock_inboxes
from mailcheck.store.transactions import for_each

SKIP_SECONDS = 5.0
"""Seconds for which a writer does not wait again for an inbox that was locked."""

MAX_TRIES = 10
"""Maximum number of attempts to run a group that a deadlock or a lost connection undid. One of two
writers in a deadlock succeeds."""

Outcome = Any
"""The result of a write, an expected failure, or the `Failure` of an unexpected one."""


class Write(NamedTuple):
    """One item that waits to be written."""

    work: Work[Any, Any]
    item: Any


class LockedInboxes:
    """The inboxes that another writer keeps locked; writes for other inboxes do not wait."""

    def __init__(self, seconds: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._skipped_until: dict[AccountId, float] = {}
        self._are_all_suspect = False

    @property
    def has_suspects(self) -> bool:
        """Whether another writer may keep an inbox locked for long."""
        return self._are_all_suspect or bool(self._skipped_until)

    def mark_suspect(self) -> None:
        """Record that a lock timed out; the next transaction finds the locked inboxes."""
        self._are_all_suspect = True

    def find_locked(
        self, transaction: Transaction, accounts: Iterable[AccountId]
    ) -> frozenset[AccountId]:
        """Return the inboxes that another writer still keeps locked, without waiting."""
        now = self._seconds()
        self._skipped_until = {
            account_id: until for account_id, until in self._skipped_until.items() if now < until
        }
        suspect = set(accounts) if self._are_all_suspect else self._skipped_until.keys() & accounts
        if not suspect:
            return frozenset()
        locked = find_locked_inboxes(transaction, suspect)
        for account in suspect - locked:
            self._skipped_until.pop(account, None)
        for account in locked:
            self._skipped_until.setdefault(account, now + SKIP_SECONDS)
        self._are_all_suspect = False
        return locked


class WriterConnection(Protocol):
    """The writer's connection: a transaction with savepoints.

    A pickled one becomes the connection of the process that unpickles it. ``locked_inboxes`` is
    `None` if a transaction locks the whole database.
    """

    @property
    def locked_inboxes(self) -> LockedInboxes | None:
        """The inboxes that other writers keep locked."""

    @property
    def is_in_transaction(self) -> bool:
        """Whether the transaction is open; a database may abort it (full disk)."""

    def begin(self) -> Transaction:
        """Begin a writing transaction."""

    def commit(self) -> None:
        """Commit the transaction durably."""

    def rollback(self) -> None:
        """Roll back the transaction; never raises."""

    def savepoint(self) -> AbstractContextManager[None]:
        """Wrap a part of the transaction; an exception rolls the part back and propagates."""

    def close(self) -> None:
        """Close the connection."""


@for_each
def touch(transaction: Transaction, item: None) -> None:
    """Write without changing any data."""
    transaction.touch()


def commit_group(connection: WriterConnection, group: Sequence[Write]) -> list[Outcome]:
    """Run all writes in one transaction and commit it; return an outcome for each.

    Writes of the same work run together. If one of them fails, the transaction is rolled back and
    all writes run again one by one. A failing write is then undone alone.

    After a deadlock or a lost connection the group is retried at once. If another writer keeps an
    inbox locked, the writes for that inbox fail and the others are committed.

    :raises StoreUnavailable: the group was not written, or the answer to COMMIT was lost and the
        outcome is unknown.
    """
    for _ in range(MAX_TRIES - 1):
        with suppress(RetryableError):
            return _commit_around_locks(connection, group)
    return _commit_around_locks(connection, group)


def _commit_around_locks(connection: WriterConnection, group: Sequence[Write]) -> list[Outcome]:
    try:
        return _commit_once(connection, group)
    except RowLocked:
        return _commit_once(connection, group)  # this run does not wait for the locked row


def recover_outcomes(connection: WriterConnection, group: Sequence[Write]) -> list[Outcome]:
    """Find out which writes of a group a dead writer had committed.

    :raises StoreUnavailable: this cannot be determined.
    """

    def run(transaction: Transaction) -> list[Outcome]:
        # Waits for the locks of the dead writer's transaction, if the server still has it.
        _lock_all(transaction, _by_work(group))
        return find_outcomes(transaction, group)

    return _commit(connection, run)


def find_outcomes(transaction: Transaction, group: Sequence[Write]) -> list[Outcome]:
    """Return the outcome of each stored mail of a group, and `WorkerDied` for all other writes."""
    outcomes: list[Outcome] = [WorkerDied("the writer has died; nothing was stored")] * len(group)
    for work, items in _by_work(group).items():
        if not isinstance(work, MailWork):
            continue
        found = work.find_outcomes(transaction, [item for _, item in items])
        for (number, _), outcome in zip(items, found, strict=True):
            if outcome is not None:
                outcomes[number] = outcome
    return outcomes


def _commit_once(connection: WriterConnection, group: Sequence[Write]) -> list[Outcome]:
    def together(transaction: Transaction) -> list[Outcome]:
        return _run_unlocked(connection, transaction, group, partial(_run_together, transaction))

    def each(transaction: Transaction) -> list[Outcome]:
        run = partial(_run_each, connection, transaction)
        return _run_unlocked(connection, transaction, group, run)

    try:
        return _commit(connection, together)
    except StoreUnavailable:
        raise
    except Exception:
        return _commit(connection, each)


def _commit(
    connection: WriterConnection, run: Callable[[Transaction], list[Outcome]]
) -> list[Outcome]:
    transaction = connection.begin()
    try:
        outcomes = run(transaction)
        connection.commit()
    except BaseException as failure:
        connection.rollback()
        if isinstance(failure, RowLocked) and connection.locked_inboxes is not None:
            connection.locked_inboxes.mark_suspect()
        raise
    return outcomes


def _run_unlocked(
    connection: WriterConnection,
    transaction: Transaction,
    group: Sequence[Write],
    run: Callable[[Sequence[Write]], list[Outcome]],
) -> list[Outcome]:
    """Run the writes, but fail those for inboxes that another writer keeps locked."""
    busy = connection.locked_inboxes
    if busy is None or not busy.has_suspects:
        return run(group)
    about: list[frozenset[AccountId]] = [
        frozenset(work.accounts(transaction, [item]))
        if isinstance(work, InboxWork)
        else frozenset()
        for work, item in group
    ]
    locked = busy.find_locked(transaction, frozenset().union(*about))
    rest = [write for write, accounts in zip(group, about, strict=True) if not accounts & locked]
    outcomes = iter(run(rest) if rest else [])
    return [
        work.run_without_lock(transaction, item)
        if isinstance(work, InboxWork) and accounts & locked
        else next(outcomes)
        for (work, item), accounts in zip(group, about, strict=True)
    ]


def _run_together(transaction: Transaction, group: Sequence[Write]) -> list[Outcome]:
    by_work = _by_work(group)
    if not _locks_by_itself(by_work):
        _lock_all(transaction, by_work)
    outcomes: list[Outcome] = [None] * len(group)
    for work, items in by_work.items():
        results = work(transaction, [item for _, item in items])
        for (number, _), result in zip(items, results, strict=True):
            outcomes[number] = result
    return outcomes


def _run_each(
    connection: WriterConnection, transaction: Transaction, group: Sequence[Write]
) -> list[Outcome]:
    _lock_all(transaction, _by_work(group))
    outcomes: list[Outcome] = []
    for work, item in group:
        try:
            with connection.savepoint():
                results = work(transaction, [item])
        except RetryableError:
            raise
        except Exception:
            if not connection.is_in_transaction:
                raise
            # Imported here: a writer without failures does not need Twisted, which takes 15 MiB.
            from twisted.python.failure import Failure

            outcomes.append(Failure())
        else:
            outcomes.extend(results)
    return outcomes


_ByWork = dict[Work[Any, Any], list[tuple[int, Any]]]
"""The items of each work with their indexes in the group."""


def _by_work(group: Sequence[Write]) -> _ByWork:
    """Group the writes by their work; writes that lock inboxes come first."""
    by_work: _ByWork = {}
    for number, (work, item) in enumerate(group):
        by_work.setdefault(work, []).append((number, item))
    return dict(sorted(by_work.items(), key=lambda one: not isinstance(one[0], InboxWork)))


def _locks_by_itself(by_work: _ByWork) -> bool:
    """Return whether the first work locks all inboxes of the group before anything else."""
    (first, items), *others = by_work.items()
    if any(isinstance(work, InboxWork) for work, _ in others):
        return False
    return not isinstance(first, InboxWork) or first.locks_all_first or len(items) == 1


def _lock_all(transaction: Transaction, by_work: _ByWork) -> None:
    """Lock all inboxes of the group before any write."""
    if not transaction.locks_rows:
        return
    accounts: set[AccountId] = set()
    for work, items in by_work.items():
        if isinstance(work, InboxWork):
            accounts.update(work.accounts(transaction, [item for _, item in items]))
    if accounts:
        lock_inboxes(transaction, accounts)
