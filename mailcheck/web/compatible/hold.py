"""Holds a request without results, so that a client that polls gets its mail at once."""

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.core.accounts import Caller
from mailcheck.core.errors import LimitExceeded, WaitInterrupted
from mailcheck.core.filters import ANY
from mailcheck.operations.inbox.follow_inbox import FollowInbox, MessageArrived
from mailcheck.operations.inbox.messages import ReadInbox

T = TypeVar("T")


class Hold(Struct, frozen=True):
    """Repeats a look at an inbox whenever mail arrives, for a limited time.

    :param seconds: the time for requests without a timeout of their own; 0 holds none.
    """

    _follow: FollowInbox
    _read: ReadInbox
    seconds: float

    async def until(
        self,
        caller: Caller,
        look: Callable[[], Awaitable[T]],
        is_enough: Callable[[T], bool],
        seconds: float | None = None,
    ) -> T:
        """Return the first result that is enough, or the last one when the time is over.

        A held request uses one of the wait slots of the key. If all are in use, or the daemon is
        stopping, a request without a timeout gets the current result.

        :param seconds: the time to wait, if the request has a timeout; `None` is the usual hold.
        :raises TooManyWaits: the request has a timeout, and all slots are in use.
        :raises WaitInterrupted: the request has a timeout, and the daemon is stopping.
        """
        patience = self.seconds if seconds is None else seconds
        after = caller.position
        if after is None:
            after = (await self._read.state(caller.account_id)).last_position
        found = await look()
        if patience <= 0 or is_enough(found):
            return found
        arrivals = self._follow.follow(caller, replace(ANY, after=after), patience)
        try:
            async with aclosing(arrivals):
                async for event in arrivals:
                    if isinstance(event, MessageArrived):
                        found = await look()
                        if is_enough(found):
                            break
        except (LimitExceeded, WaitInterrupted):
            if seconds is not None:
                raise
        return found
