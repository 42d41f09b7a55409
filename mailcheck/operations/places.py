"""Places for work that only so much of may be under way; who finds none waits for a turn."""

from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as DeferredTimeout
from twisted.internet.interfaces import IReactorTime

from mailcheck.core.accounts import Caller
from mailcheck.core.errors import TooManyWaits
from mailcheck.operations.ports import HeldPlaces

Owner = TypeVar("Owner")


class NoPlace(Exception):
    """No place was free in time, or too many wait for one already.

    :param is_own_share: the owner has as many places as one may have.
    """

    def __init__(self, *, is_own_share: bool) -> None:
        super().__init__()
        self.is_own_share = is_own_share


class Places(Generic[Owner]):
    """Gives ``at_once`` places in the order in which they were asked for.

    :param at_once: places of all owners together; as many as are asked for where it is not given.
    :param of_one: places that one owner may have; what more he asks for waits, and those
        behind it go first.
    :param waiting: how many may wait.
    """

    def __init__(
        self,
        clock: IReactorTime,
        *,
        of_one: int,
        at_once: int | None = None,
        waiting: int = 0,
    ) -> None:
        self._clock = clock
        self._at_once = at_once
        self._of_one = of_one
        self._waiting = waiting
        self._taken: Counter[Owner] = Counter()
        self._queue: deque[tuple[Owner, Deferred[None]]] = deque()
        self._is_calling = False

    @asynccontextmanager
    async def held(self, owner: Owner, patience: float = 0.0) -> AsyncIterator[None]:
        """Have a place while the block runs; raises as `take`."""
        await self.take(owner, patience)
        try:
            yield
        finally:
            self.give_back(owner)

    async def take(self, owner: Owner, patience: float) -> None:
        """Take a place, within ``patience`` seconds; the caller must `give_back`.

        :raises NoPlace: there is none.
        """
        if self._may_take(owner):
            self._taken[owner] += 1
            return
        if len(self._queue) >= self._waiting or patience <= 0:
            raise self._no_place(owner)
        turn: Deferred[None] = Deferred()
        self._queue.append((owner, turn))
        try:
            await turn.addTimeout(patience, self._clock)
        except DeferredTimeout:
            raise self._no_place(owner) from None
        finally:
            if (owner, turn) in self._queue:
                self._queue.remove((owner, turn))

    def give_back(self, owner: Owner) -> None:
        """Give a place back; it goes straight to the first one in the queue who may have it."""
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
        """Take the place of the first one in the queue who may have one."""
        for waiting in self._queue:
            owner, turn = waiting
            if self._may_take(owner):
                self._queue.remove(waiting)
                self._taken[owner] += 1
                return turn
        return None

    def _may_take(self, owner: Owner) -> bool:
        if self._taken[owner] >= self._of_one:
            return False
        return self._at_once is None or self._taken.total() < self._at_once

    def _no_place(self, owner: Owner) -> NoPlace:
        return NoPlace(is_own_share=self._taken[owner] >= self._of_one)


RETRY_AFTER = 1
"""Seconds: a wait ends any moment."""


class WaitSlots:
    """Counts the parked waits of each key; ``places`` has ``slots_per_key`` for each."""

    def __init__(self, slots_per_key: int, places: HeldPlaces) -> None:
        self._slots_per_key = slots_per_key
        self._places = places

    @asynccontextmanager
    async def taken_by(self, caller: Caller) -> AsyncIterator[None]:
        """Hold a slot while the block runs.

        :raises TooManyWaits: all slots of the key are taken.
        """
        try:
            async with self._places.held(caller.key_id):
                yield
        except NoPlace:
            raise TooManyWaits(
                f"this key has {self._slots_per_key} waits parked, its limit; "
                f"end one, or raise [limits] waits_per_key",
                RETRY_AFTER,
            ) from None
