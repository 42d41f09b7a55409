"""Waiting for the end of a deliverability test.

A wait is registered before the test is read. Notifications are hints: a notified wait reads the
test again.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct, field
from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as DeferredTimeout

from mailcheck.core.accounts import Caller
from mailcheck.core.deliverability_tests import DeliverabilityResult, State
from mailcheck.core.errors import ShuttingDown, StoreUnavailable, WaitInterrupted
from mailcheck.core.identifiers import DeliverabilityTestId
from mailcheck.core.instants import SECOND
from mailcheck.operations.deliverability.manage_tests import ManageTests
from mailcheck.operations.incidents import public_failure
from mailcheck.operations.parked_waits import ParkedWait, WaitSlots
from mailcheck.operations.watchers import Watchers
from mailcheck.ports.clocks import ClockAndRandomness


class ResultWaiter(Struct, eq=False):
    """One parked wait. ``when_moved`` fires at the first hint after `arm`."""

    test_id: DeliverabilityTestId
    when_moved: "Deferred[None]" = field(default_factory=Deferred)

    def arm(self) -> None:
        """Listen for the next hint. Call this before reading the test."""
        if self.when_moved.called:
            self.when_moved = Deferred()

    def wake(self) -> None:
        """Handle a hint."""
        if not self.when_moved.called:
            self.when_moved.callback(None)


class DeliverabilityFeeds:
    """All parked waits for tests in this daemon."""

    def __init__(self) -> None:
        self._waiters: Watchers[DeliverabilityTestId, ResultWaiter] = Watchers()
        self._is_closed = False

    @contextmanager
    def joined(self, test_id: DeliverabilityTestId) -> Iterator[ResultWaiter]:
        """Register a wait while the block runs.

        :raises ShuttingDown: the daemon is stopping.
        """
        self.require_open()
        waiter = ResultWaiter(test_id)
        with self._waiters.joined(test_id, waiter):
            yield waiter

    def require_open(self) -> None:
        """Verify that the daemon is not stopping.

        :raises ShuttingDown: the daemon is stopping.
        """
        if self._is_closed:
            raise ShuttingDown("the service is restarting")

    def on_hint(self, test_id: DeliverabilityTestId) -> None:
        """Handle the hint that the state of a test has changed."""
        for waiter in self._waiters.of(test_id):
            waiter.wake()

    def check_all(self) -> None:
        """Wake all waits, since hints may have been lost."""
        for test_id in self._waiters.watched():
            self.on_hint(test_id)

    def count(self) -> int:
        """Return the number of parked waits."""
        return len(self._waiters)

    def close(self) -> None:
        """End all waits because the daemon stops."""
        self._is_closed = True
        self.check_all()


class WaitForTest(Struct, frozen=True, eq=False):
    """The operation behind the long poll of the REST API and the wait tool of MCP."""

    tests: ManageTests
    feeds: DeliverabilityFeeds
    slots: WaitSlots
    clocks: ClockAndRandomness

    async def wait(
        self, caller: Caller, test_id: str, timeout: float, seen: State | None = None
    ) -> DeliverabilityResult:
        """Return the test when it is final, or its current state after ``timeout`` seconds.

        :param seen: the state that the caller knows. Any other state ends the wait as well.
        :raises DeliverabilityTestNotFound: the account has no such test.
        :raises TooManyWaits: all wait slots of the key are in use.
        :raises InvalidCredentials: the access of the caller has ended meanwhile.
        :raises WaitInterrupted: the daemon is stopping, or the store cannot be read.
        """
        deadline = self.clocks.clock.seconds() + timeout
        async with self.slots.held_by(caller) as parked:
            try:
                with self.feeds.joined(DeliverabilityTestId(test_id)) as waiter:
                    return await self._look_and_wait(caller, parked, waiter, deadline, seen)
            except (ShuttingDown, StoreUnavailable) as failure:
                why = public_failure(failure)
                problem = f"the wait was interrupted: {why}"
                raise WaitInterrupted(problem, None, why.reference) from failure

    async def _look_and_wait(
        self,
        caller: Caller,
        parked: ParkedWait,
        waiter: ResultWaiter,
        deadline: float,
        seen: State | None,
    ) -> DeliverabilityResult:
        while True:
            waiter.arm()
            found = await self.tests.one(caller.account_id, waiter.test_id)
            left = deadline - self.clocks.clock.seconds()
            state = found.test.state
            if state.is_final or left <= 0 or state is not (seen or state):
                return found
            self.feeds.require_open()
            if state is State.PENDING:
                # No hint announces the expiry of the address, so wake up for it.
                expiry = (found.test.expires_at - self.clocks.expiry_now()) / SECOND
                left = min(left, max(1 / SECOND, expiry))
            try:
                await parked.until(waiter.when_moved, left)
            except DeferredTimeout:
                continue
