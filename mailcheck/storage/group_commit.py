"""Group commit: all writes that wait while one commit runs share the next.

One fsync then serves many mails, so ``synchronous=FULL`` is both safe and
fast. There is no timer: an idle store commits a lone write at once.
"""

from collections.abc import Callable, Sequence
from typing import Any

from twisted.internet.defer import Deferred, fail, maybeDeferred
from twisted.python.failure import Failure

from mailcheck.core.errors import ExpectedFailure, StoreUnavailable
from mailcheck.storage.committing import Outcome, Write
from mailcheck.storage.engine import Item, Result, Work

MAX_GROUP = 256
"""Writes in one commit; bounds how long the first of them waits for the last."""


class GroupCommit:
    """Collects writes and has them committed in groups, one group at a time."""

    def __init__(self, commit: Callable[[Sequence[Write]], Deferred[list[Outcome]]]) -> None:
        self._commit = commit
        self._waiting: list[tuple[Write, Deferred[Any]]] = []
        self._is_committing = False
        self._is_closed = False
        self._when_finished: Deferred[None] = Deferred()

    def submit(self, work: Work[Item, Result], item: Item) -> Deferred[Result]:
        """Take a write; fires after the commit that holds it."""
        if self._is_closed:
            return fail(StoreUnavailable("the database is closed"))
        when_committed: Deferred[Result] = Deferred()
        self._waiting.append((Write(work, item), when_committed))
        if not self._is_committing:
            self._commit_next()
        return when_committed

    def close(self) -> Deferred[None]:
        """Take no more writes; fires when all that were given are committed."""
        self._is_closed = True
        self._tell_finished()
        return self._when_finished

    def _commit_next(self) -> None:
        group, self._waiting = self._waiting[:MAX_GROUP], self._waiting[MAX_GROUP:]
        self._is_committing = True
        committed = maybeDeferred(self._commit, [write for write, _ in group])
        committed.addBoth(self._finish, [when_committed for _, when_committed in group])

    def _finish(self, outcomes: list[Outcome] | Failure, group: list[Deferred[Any]]) -> None:
        # The next commit starts before anyone hears of this one: the disk
        # works while replies are written.
        if self._waiting:
            self._commit_next()
        else:
            self._is_committing = False
        for number, when_committed in enumerate(group):
            outcome = outcomes if isinstance(outcomes, Failure) else outcomes[number]
            if isinstance(outcome, ExpectedFailure | Failure):
                when_committed.errback(outcome)
            else:
                when_committed.callback(outcome)
        self._tell_finished()

    def _tell_finished(self) -> None:
        if self._is_closed and not self._is_committing and not self._when_finished.called:
            self._when_finished.callback(None)
