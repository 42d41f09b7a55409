"""Following an account: hints that the data on its open pages has changed."""

from collections.abc import AsyncGenerator, Awaitable, Callable

from msgspec import Struct, field
from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as DeferredTimeout
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from mailcheck.core.accounts import Caller
from mailcheck.core.errors import ExpectedFailure, ShuttingDown
from mailcheck.core.identifiers import AccountId, DeliverabilityTestId
from mailcheck.operations.parked_waits import ParkedWait, WaitSlots
from mailcheck.operations.watchers import Watchers

PACE = 1.0
"""Minimum number of seconds between two changes of one stream. Mails often arrive in groups."""

FindOwner = Callable[[DeliverabilityTestId], Awaitable[AccountId | None]]
"""Returns the account of a test, or `None` if the test does not exist any more."""


class _Watcher(Struct, eq=False):
    """An open page. ``_bell`` has fired if its account has changed since the last `wait`."""

    _parked: ParkedWait
    _bell: "Deferred[None]" = field(default_factory=Deferred)

    def ring(self) -> None:
        if not self._bell.called:
            self._bell.callback(None)

    async def wait(self, seconds: float) -> bool:
        """Return whether the account has changed. Wait at most ``seconds`` for a change."""
        try:
            await self._parked.until(self._bell, seconds)
        except DeferredTimeout:
            return False
        finally:
            self._bell = Deferred()
        return True


class FollowAccount:
    """The operation behind the live parts of pages.

    Mails, tests, checks of watched domains and attempts of routes are announced as changes. A
    change is a hint: the page is read again.
    """

    def __init__(self, find_owner: FindOwner, slots: WaitSlots, clock: IReactorTime) -> None:
        self._find_owner = find_owner
        self._slots = slots
        self._clock = clock
        self._watchers: Watchers[AccountId, _Watcher] = Watchers()
        self._is_closed = False

    async def follow(
        self, caller: Caller, seconds: float, heartbeat: float
    ) -> AsyncGenerator[bool, None]:
        """Yield `True` for a change, and `False` at the start and after each ``heartbeat``.

        The stream ends after ``seconds``. It uses one of the wait slots of the caller. The caller
        must close it.

        :raises TooManyWaits: all wait slots of the caller are in use.
        :raises InvalidCredentials: the access of the caller has ended meanwhile.
        :raises ShuttingDown: the daemon is stopping.
        """
        ends_at = self._clock.seconds() + seconds
        async with self._slots.held_by(caller) as parked:
            watcher = _Watcher(parked)
            with self._watchers.joined(caller.account_id, watcher):
                self._require_open()
                yield False
                while (left := ends_at - self._clock.seconds()) > 0:
                    has_changed = await watcher.wait(min(left, heartbeat))
                    self._require_open()
                    yield has_changed
                    if has_changed:
                        await parked.until(deferLater(self._clock, PACE))

    def on_change(self, account_id: AccountId) -> None:
        """Handle the hint that data of an account has changed."""
        for watcher in self._watchers.of(account_id):
            watcher.ring()

    def on_test(self, test_id: DeliverabilityTestId) -> None:
        """Handle the hint that a test has changed. Its account is looked up for open pages only."""
        if self._watchers:
            Deferred.fromCoroutine(self._announce(test_id))

    async def _announce(self, test_id: DeliverabilityTestId) -> None:
        try:
            owner = await self._find_owner(test_id)
        except ExpectedFailure:
            return  # a hint may be lost
        if owner is not None:
            self.on_change(owner)

    def check_all(self) -> None:
        """Announce a change to all open pages, since hints may have been lost."""
        for account_id in self._watchers.watched():
            self.on_change(account_id)

    def count(self) -> int:
        """Return the number of open pages."""
        return len(self._watchers)

    def close(self) -> None:
        """End all streams because the daemon stops."""
        self._is_closed = True
        self.check_all()

    def _require_open(self) -> None:
        if self._is_closed:
            raise ShuttingDown("the service is restarting")
