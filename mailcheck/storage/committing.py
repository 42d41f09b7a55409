"""Committing a group of writes in one transaction; runs wherever the writer's connection is."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, NamedTuple, Protocol

from twisted.python.failure import Failure

from mailcheck.core.errors import StoreUnavailable
from mailcheck.core.identifiers import AccountId
from mailcheck.storage.engine import InboxWork, Repeatable, Transaction, Work
from mailcheck.storage.inbox_rows import lock_inboxes

MOST_TRIES = 10
"""Of a group that a deadlock or a lost connection undid: one of two that meet goes through."""

Outcome = Any
"""The result of a write, an expected failure, or the `Failure` of an unexpected one."""


class Write(NamedTuple):
    """One item that waits to be written."""

    work: Work[Any, Any]
    item: Any


Plain = tuple[Work[Any, Any], Any]
"""A `Write`, or the plain tuple as which it goes to the writer's process."""


class GroupConnection(Protocol):
    """The writer's connection: a transaction that can be bracketed and partly undone."""

    @property
    def is_in_transaction(self) -> bool:
        """Tell whether the transaction goes on: a database may give it up (disk full)."""

    def begin(self) -> Transaction:
        """Begin a writing transaction."""

    def commit(self) -> None:
        """Make it durable."""

    def rollback(self) -> None:
        """Undo all of it; never raises."""

    def savepoint(self) -> AbstractContextManager[None]:
        """Bracket a part of the transaction: an exception undoes the part and goes on up."""


def commit_group(connection: GroupConnection, group: Sequence[Plain]) -> list[Outcome]:
    """Run all writes in one transaction and commit it; an outcome for each.

    Writes of the same work run together. Where one of them fails, nothing has
    happened yet, and they run again one by one: work that fails is undone and
    leaves its neighbours' writes alone.

    What the database undid by itself (a deadlock, a lost connection) is repeated
    at once.

    :raises StoreUnavailable: nothing of the group was written; or nobody knows, where
        the answer to COMMIT was lost.
    """
    for _ in range(MOST_TRIES - 1):
        with suppress(Repeatable):
            return _commit_once(connection, group)
    return _commit_once(connection, group)


def _commit_once(connection: GroupConnection, group: Sequence[Plain]) -> list[Outcome]:
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


def _run_together(transaction: Transaction, group: Sequence[Plain]) -> list[Outcome]:
    by_work = _by_work(group)
    _lock_all(transaction, group, by_work)
    outcomes: list[Outcome] = [None] * len(group)
    for work, numbers in by_work.items():
        results = work(transaction, [group[number][1] for number in numbers])
        for number, result in zip(numbers, results, strict=True):
            outcomes[number] = result
    return outcomes


def _run_each(
    connection: GroupConnection, transaction: Transaction, group: Sequence[Plain]
) -> list[Outcome]:
    _lock_all(transaction, group, _by_work(group))
    outcomes: list[Outcome] = []
    for work, item in group:
        try:
            with connection.savepoint():
                results = work(transaction, [item])
        except Repeatable:
            raise
        except Exception:
            if not connection.is_in_transaction:
                raise
            outcomes.append(Failure())
        else:
            outcomes.extend(results)
    return outcomes


def _by_work(group: Sequence[Plain]) -> dict[Work[Any, Any], list[int]]:
    by_work: dict[Work[Any, Any], list[int]] = {}
    for number, (work, _) in enumerate(group):
        by_work.setdefault(work, []).append(number)
    return by_work


def _lock_all(
    transaction: Transaction, group: Sequence[Plain], by_work: dict[Work[Any, Any], list[int]]
) -> None:
    """Lock what the whole group will touch, before any of it does; a lone write does so itself."""
    if len(group) == 1 or not transaction.locks_rows:
        return
    accounts: set[AccountId] = set()
    for work, numbers in by_work.items():
        if isinstance(work, InboxWork):
            items = [group[number][1] for number in numbers]
            accounts.update(work.accounts(transaction, items))
    if accounts:
        lock_inboxes(transaction, accounts)
