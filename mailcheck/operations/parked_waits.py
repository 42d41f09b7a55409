"""Parked waits and streams: their number for each caller, and their end with its access.

Every wait and stream holds a slot while it is parked. Holding it watches the access of the caller,
so no wait outlasts the key, session, token, member or project that it belongs to.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from msgspec import Struct
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime

from mailcheck.core.accounts import Caller
from mailcheck.core.errors import ExpectedFailure, TooManyWaits
from mailcheck.operations.accounts.authenticate import EndedAccess
from mailcheck.operations.semaphores import NoPermit
from mailcheck.ports.cluster import OwnerSemaphore

WAIT_RETRY = 1
"""Seconds until a client should retry. A wait may end any moment."""

PAGES_OF_PERSON = 30
"""Maximum number of live pages of a person. A browser has at most six open."""

T = TypeVar("T")


class ParkedWait:
    """One wait or stream, which fails as soon as the access of its caller ends."""

    __slots__ = ("_bell", "_clock", "_ended")

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self._ended: ExpectedFailure | None = None
        self._bell: Deferred[Any] | None = None

    async def until(self, bell: "Deferred[T]", seconds: float | None = None) -> T:
        """Return the result of a Deferred, for at most ``seconds``.

        :raises twisted.internet.defer.TimeoutError: the time is over; the Deferred is cancelled.
        :raises InvalidCredentials: the access has ended; the Deferred is cancelled.
        """
        self.require_access()
        self._bell = bell
        try:
            return await (bell if seconds is None else bell.addTimeout(seconds, self._clock))
        except CancelledError:
            self.require_access()
            raise  # the client has gone
        finally:
            self._bell = None

    def require_access(self) -> None:
        """Verify that the access of the caller has not ended. Call this before sending data.

        :raises InvalidCredentials: it has ended.
        """
        if self._ended is not None:
            raise self._ended

    def end(self, failure: ExpectedFailure) -> None:
        """Let the wait fail, at once if it is parked."""
        self._ended = failure
        if self._bell is not None:
            self._bell.cancel()


class WaitSlots(Struct, frozen=True, eq=False):
    """Limits the parked waits of each API key and the live pages of each person.

    Each of them ends with the access of its caller.

    :param waits: has as many permits for each key as it may have waits.
    :param pages: has `PAGES_OF_PERSON` permits for each person.
    """

    waits: OwnerSemaphore
    pages: OwnerSemaphore
    ended_access: EndedAccess
    clock: IReactorTime

    @asynccontextmanager
    async def held_by(self, caller: Caller) -> AsyncIterator[ParkedWait]:
        """Hold a slot while the block runs.

        :raises TooManyWaits: all slots of the key or the person are in use.
        :raises InvalidCredentials: the access of the caller has ended meanwhile.
        """
        parked, is_page = ParkedWait(self.clock), bool(caller.session)
        try:
            async with (self.pages if is_page else self.waits).held(caller.key_id):
                with self.ended_access.watched(caller, parked.end):
                    yield parked
                    parked.require_access()
        except NoPermit:
            if is_page:
                raise TooManyWaits(
                    f"you have {PAGES_OF_PERSON} live pages open, the maximum: close one",
                    WAIT_RETRY,
                ) from None
            raise TooManyWaits(
                f"this key has {self.waits.per_owner} waits parked, its limit; "
                f"end one, or raise [limits] waits_per_key",
                WAIT_RETRY,
            ) from None
