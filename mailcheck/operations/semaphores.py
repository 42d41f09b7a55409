"""A fair semaphore with limits per owner, and the limits for domain checks."""

from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as DeferredTimeout
from twisted.internet.interfaces import IReactorTime

from mailcheck.core.errors import Overloaded, TooManyChecks
from mailcheck.core.identifiers import AccountId

Owner = TypeVar("Owner")


class NoPermit(Exception):
    """No permit was free in time, or too many tasks are waiting already.

    :param is_owner_limit: whether the owner has reached its own limit.
    """

    def __init__(self, *, is_owner_limit: bool) -> None:
        super().__init__()
        self.is_owner_limit = is_owner_limit


class FairSemaphore(Generic[Owner]):
    """A semaphore with permits per owner. Waiting owners take turns.

    The waiting tasks of one owner are served in the order of their requests.

    :param limit: permits of all owners together; unlimited if not given.
    :param per_owner: permits of one owner; it may be changed. Further requests of the owner wait.
    :param max_waiting: maximum number of waiting requests. When it is reached, the owner with the
        most waiting requests loses one to an owner with fewer.
    """

    def __init__(
        self,
        clock: IReactorTime,
        *,
        per_owner: int,
        limit: int | None = None,
        max_waiting: int = 0,
    ) -> None:
        self._clock = clock
        self._limit = limit
        self.per_owner = per_owner
        self._max_waiting = max_waiting
        self._taken: Counter[Owner] = Counter()
        self._queues: dict[Owner, deque[Deferred[None]]] = {}  # the next owner comes first
        self._is_calling = False

    @asynccontextmanager
    async def held(self, owner: Owner, timeout: float = 0.0, busy: str = "") -> AsyncIterator[None]:
        """Hold a permit while the block runs; raises as `acquire`.

        :raises Overloaded: with the text ``busy``, if there is one, in place of `NoPermit`.
        """
        try:
            await self.acquire(owner, timeout)
        except NoPermit:
            if busy:
                raise Overloaded(busy) from None
            raise
        try:
            yield
        finally:
            self.release(owner)

    async def acquire(self, owner: Owner, timeout: float) -> None:
        """Acquire a permit within ``timeout`` seconds. The caller must `release` it.

        :raises NoPermit: no permit was free in time.
        """
        if self._may_take(owner):
            self._taken[owner] += 1
            return
        if timeout <= 0:
            raise self._no_permit(owner)
        if not self._has_room_to_wait(owner):
            raise NoPermit(is_owner_limit=owner in self._queues)
        turn: Deferred[None] = Deferred()
        self._queues.setdefault(owner, deque()).append(turn)
        try:
            await turn.addTimeout(timeout, self._clock)
        except DeferredTimeout:
            raise self._no_permit(owner) from None
        finally:
            if turn in self._queues.get(owner, ()):
                self._leave(owner, turn)

    def release(self, owner: Owner) -> None:
        """Release a permit, which the next waiting owner gets at once."""
        self._taken[owner] -= 1
        if not self._taken[owner]:
            del self._taken[owner]
        if self._is_calling:
            return  # called by a task that ended at once; the outer call serves the next one
        self._is_calling = True
        try:
            while (turn := self._next_turn()) is not None:
                turn.callback(None)
        finally:
            self._is_calling = False

    def _next_turn(self) -> Deferred[None] | None:
        """Acquire a permit for the next owner that may have one, and move the owner to the end."""
        for owner in self._queues:
            if self._may_take(owner):
                break
        else:
            return None
        queue = self._queues.pop(owner)
        turn = queue.popleft()
        if queue:
            self._queues[owner] = queue
        self._taken[owner] += 1
        return turn

    def _leave(self, owner: Owner, turn: Deferred[None]) -> None:
        self._queues[owner].remove(turn)
        if not self._queues[owner]:
            del self._queues[owner]

    def _has_room_to_wait(self, owner: Owner) -> bool:
        if sum(map(len, self._queues.values())) < self._max_waiting:
            return True
        if not self._queues:
            return False
        longest = max(self._queues, key=lambda one: len(self._queues[one]))
        if len(self._queues[longest]) <= len(self._queues.get(owner, ())) + 1:
            return False
        newest = self._queues[longest][-1]
        self._leave(longest, newest)
        newest.errback(NoPermit(is_owner_limit=True))
        return True

    def _may_take(self, owner: Owner) -> bool:
        if self._taken[owner] >= self.per_owner:
            return False
        return self._limit is None or self._taken.total() < self._limit

    def _no_permit(self, owner: Owner) -> NoPermit:
        return NoPermit(is_owner_limit=self._taken[owner] >= self.per_owner)


CHECKS_AT_ONCE = 12
"""Maximum number of concurrent checks. A domain with many records occupies the reactor for a
twentieth of a second."""

CHECKS_OF_ACCOUNT = 3
"""Maximum number of concurrent checks per account. Further checks of the account wait."""

WAITING_CHECKS = 400
"""Maximum number of waiting checks."""

CHECK_PATIENCE = 25.0
"""Seconds that a check waits. It then takes up to ten, and clients time out after thirty or
more."""

CHECK_RETRY = 10
"""Seconds until a client should retry. All running checks have ended by then."""


class CheckSlots:
    """Limits concurrent checks, fairly among accounts."""

    def __init__(self, clock: IReactorTime) -> None:
        self._semaphore: FairSemaphore[AccountId] = FairSemaphore(
            clock, limit=CHECKS_AT_ONCE, per_owner=CHECKS_OF_ACCOUNT, max_waiting=WAITING_CHECKS
        )

    @asynccontextmanager
    async def held(self, account_id: AccountId) -> AsyncIterator[None]:
        """Hold a slot while the block runs.

        :raises TooManyChecks: the account has reached its own limit.
        :raises Overloaded: all accounts together have reached the limit.
        """
        try:
            async with self._semaphore.held(account_id, CHECK_PATIENCE):
                yield
        except NoPermit as failure:
            if not failure.is_owner_limit:
                raise Overloaded("too many checks are running; try again in a moment") from None
            raise TooManyChecks(
                f"{CHECKS_OF_ACCOUNT} of your checks are running and more are waiting;"
                " send the next ones when those have ended",
                CHECK_RETRY,
            ) from None
