"""Places for work that only so much of may be under way; who finds none waits for a turn.

And what has such places: parked waits, a number for each key, and checks of domains.
"""

from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as DeferredTimeout
from twisted.internet.interfaces import IReactorTime

from mailcheck.core.accounts import Caller
from mailcheck.core.errors import Overloaded, TooManyChecks, TooManyWaits
from mailcheck.core.identifiers import AccountId
from mailcheck.ports.cluster import HeldPlaces

Owner = TypeVar("Owner")


class NoPermit(Exception):
    """No place was free in time, or too many wait for one already.

    :param is_owner_limit: the owner has as many places as one may have.
    """

    def __init__(self, *, is_owner_limit: bool) -> None:
        super().__init__()
        self.is_owner_limit = is_owner_limit


class FairSemaphore(Generic[Owner]):
    """Gives ``limit`` places; those who wait take turns, owner by owner.

    Each owner's own are served in the order in which they were asked for.

    :param limit: places of all owners together; as many as are asked for where it is not given.
    :param per_owner: places that one owner may have; what more he asks for waits.
    :param waiting: how many may wait. Where they do, the owner of most of them makes room for one
        who has fewer.
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
        self._per_owner = per_owner
        self._max_waiting = max_waiting
        self._taken: Counter[Owner] = Counter()
        self._queues: dict[Owner, deque[Deferred[None]]] = {}  # whose turn is next comes first
        self._is_calling = False

    @asynccontextmanager
    async def held(self, owner: Owner, timeout: float = 0.0) -> AsyncIterator[None]:
        """Have a place while the block runs; raises as `take`."""
        await self.acquire(owner, timeout)
        try:
            yield
        finally:
            self.release(owner)

    async def acquire(self, owner: Owner, timeout: float) -> None:
        """Take a place, within ``timeout`` seconds; the caller must `give_back`.

        :raises NoPermit: there is none.
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
        """Give a place back; it goes straight to the next one who may have it."""
        self._taken[owner] -= 1
        if not self._taken[owner]:
            del self._taken[owner]
        if self._is_calling:
            return  # by one who was done at once: whoever called him calls the next, too
        self._is_calling = True
        try:
            while (turn := self._next_turn()) is not None:
                turn.callback(None)
        finally:
            self._is_calling = False

    def _next_turn(self) -> Deferred[None] | None:
        """Take the place of the next owner who may have one; he is the last then."""
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
        if self._taken[owner] >= self._per_owner:
            return False
        return self._limit is None or self._taken.total() < self._limit

    def _no_permit(self, owner: Owner) -> NoPermit:
        return NoPermit(is_owner_limit=self._taken[owner] >= self._per_owner)


WAIT_RETRY = 1
"""Seconds: a wait ends any moment."""


class WaitSlots:
    """Counts the parked waits of each key; ``places`` has ``slots_per_key`` for each."""

    def __init__(self, slots_per_key: int, places: HeldPlaces) -> None:
        self._slots_per_key = slots_per_key
        self._semaphore = places

    @asynccontextmanager
    async def held_by(self, caller: Caller) -> AsyncIterator[None]:
        """Hold a slot while the block runs.

        :raises TooManyWaits: none is free.
        """
        try:
            async with self._semaphore.held(caller.key_id):
                yield
        except NoPermit:
            raise TooManyWaits(
                f"this key has {self._slots_per_key} waits parked, its limit; "
                f"end one, or raise [limits] waits_per_key",
                WAIT_RETRY,
            ) from None


CHECKS_AT_ONCE = 12
"""Checks under way at a time: a domain that answers all it can keeps the reactor busy for a
twentieth of a second."""

CHECKS_OF_ACCOUNT = 3
"""Of those one account may have so many; what it asks for beyond waits."""

WAITING_CHECKS = 400
"""Checks that may wait for a turn."""

CHECK_PATIENCE = 25.0
"""Seconds that they wait: a check takes ten at most, and programs give up after thirty or more."""

CHECK_RETRY = 10
"""Seconds: by then any check under way has ended."""


class CheckSlots:
    """Lets accounts check in turn."""

    def __init__(self, clock: IReactorTime) -> None:
        self._semaphore: FairSemaphore[AccountId] = FairSemaphore(
            clock, limit=CHECKS_AT_ONCE, per_owner=CHECKS_OF_ACCOUNT, max_waiting=WAITING_CHECKS
        )

    @asynccontextmanager
    async def held(self, account_id: AccountId) -> AsyncIterator[None]:
        """Have a turn while the block runs.

        :raises TooManyChecks: too many of the account's own are before it.
        :raises Overloaded: too many of others are.
        """
        try:
            async with self._semaphore.held(account_id, CHECK_PATIENCE):
                yield
        except NoPermit as failure:
            if not failure.is_owner_limit:
                raise Overloaded("too many checks are under way: try again in a moment") from None
            raise TooManyChecks(
                f"{CHECKS_OF_ACCOUNT} checks of this account are under way and more wait for their"
                " turn; send the next ones when those have been answered",
                CHECK_RETRY,
            ) from None
