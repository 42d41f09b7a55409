"""Group commit: all writes that wait while others are committed share the next commit.

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


MAX_UNDER_WAY = 2
"""Groups that the writer has at a time: it begins the next while the answer to one is on its way.
With more of them the groups, and what a commit is shared by, get smaller."""


class GroupCommit:
    """Collects writes and has them committed in groups.

    :param commit: commits the groups it is given one after the other, in their order.
    """

    def __init__(self, commit: Callable[[Sequence[Write]], Deferred[list[Outcome]]]) -> None:
        self._commit = commit
        self._waiting: list[tuple[Write, Deferred[Any]]] = []
        self._under_way = 0
        self._is_closed = False
        self._when_finished: Deferred[None] = Deferred()

    def submit(self, work: Work[Item, Result], item: Item) -> Deferred[Result]:
        """Take a write; fires after the commit that holds it."""
        if self._is_closed:
            return fail(StoreUnavailable("the database is closed"))
        when_committed: Deferred[Result] = Deferred()
        self._waiting.append((Write(work, item), when_committed))
        if self._under_way < MAX_UNDER_WAY:
            self._commit_next()
        return when_committed

    def close(self) -> Deferred[None]:
        """Take no more writes; fires when all that were given are committed."""
        self._is_closed = True
        self._tell_finished()
        return self._when_finished

    def _commit_next(self) -> None:
        group, self._waiting = self._waiting[:MAX_GROUP], self._waiting[MAX_GROUP:]
        self._under_way += 1
        committed = maybeDeferred(self._commit, [write for write, _ in group])
        committed.addBoth(self._finish, [when_committed for _, when_committed in group])

    def _finish(self, outcomes: list[Outcome] | Failure, group: list[Deferred[Any]]) -> None:
        # The next commit starts before anyone hears of this one: the disk
        # works while replies are written.
        self._under_way -= 1
        if self._waiting:
            self._commit_next()
        for number, when_committed in enumerate(group):
            outcome = outcomes if isinstance(outcomes, Failure) else outcomes[number]
            if isinstance(outcome, ExpectedFailure | Failure):
                when_committed.errback(outcome)
            else:
                when_committed.callback(outcome)
        self._tell_finished()

    def _tell_finished(self) -> None:
        if self._is_closed and not self._under_way and not self._when_finished.called:
            self._when_finished.callback(None)
