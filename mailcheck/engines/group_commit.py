"""Group commit: all writes that wait while others are committed share the next commit.

One fsync then serves many mails, so ``synchronous=FULL`` is both safe and
fast. There is no timer: an idle store commits a lone write at once, or, where
many things come at once, as soon as all of them were looked at.
"""

from collections.abc import Callable, Sequence
from typing import Any

from twisted.internet.defer import Deferred, fail, maybeDeferred
from twisted.python.failure import Failure

from mailcheck.core.errors import ExpectedFailure, StoreUnavailable
from mailcheck.core.instruments import SIZES, Distribution
from mailcheck.engines.committing import Outcome, Write
from mailcheck.ports.clocks import Soon
from mailcheck.store.engine import Item, Result, Work

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


def at_once(call: Callable[[], object]) -> None:
    """Call it: for who does one thing at a time."""
    call()


class GroupCommit:
    """Collects writes and has them committed in groups.

    :param commit: commits the groups it is given one after the other, in their order.
    :param soon: what is submitted until it calls shares a commit: the mails, say, that a
        reactor finds complete when it looks at all connections once.
    """

    def __init__(
        self,
        commit: Callable[[Sequence[Write]], Deferred[list[Outcome]]],
        soon: Soon = at_once,
    ) -> None:
        self._commit = commit
        self._soon = soon
        self._waiting: list[tuple[Write, Deferred[Any]]] = []
        self._is_gathering = False
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
        if not self._is_gathering:
            self._is_gathering = True
            self._soon(self._gathered)
        return when_committed

    def give_up(self, failure: Failure) -> None:
        """Fail what waits and was given to nobody: of that nothing was written."""
        waiting, self._waiting = self._waiting, []
        for _, when_committed in waiting:
            when_committed.errback(failure)

    def close(self) -> Deferred[None]:
        """Take no more writes; fires when all that were given are committed."""
        self._is_closed = True
        self._gathered()
        self._tell_finished()
        return self._when_finished

    def _gathered(self) -> None:
        self._is_gathering = False
        self._begin()

    def _begin(self) -> None:
        """Commit what waits, beside another group only if it is no smaller than that one.

        A commit costs much the same for one mail and for ten: where mails come
        in a stream, many small groups would take their time from the receiver.
        """
        if not self._waiting or self._is_gathering or self._under_way == MAX_UNDER_WAY:
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
        self._tell_finished()

    def _tell_finished(self) -> None:
        is_idle = not self._under_way and not self._waiting
        if self._is_closed and is_idle and not self._when_finished.called:
            self._when_finished.callback(None)


def _end_of_group(waiting: Sequence[tuple[Write, Deferred[Any]]]) -> int:
    """Say how many of the writes that wait are committed together, one at least."""
    octets = 0
    for number, (write, _) in enumerate(waiting[:MAX_GROUP]):
        octets_of = getattr(write.work, "octets", None)  # what a `MailWork` has; looked up fast
        if octets_of is not None:
            octets += octets_of(write.item)
            if number and octets > MAX_GROUP_OCTETS:
                return number
    return min(len(waiting), MAX_GROUP)
