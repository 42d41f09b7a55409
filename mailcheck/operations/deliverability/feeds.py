"""Parked waits for deliverability tests. A wake-up is a hint: who is woken looks for himself."""

from dataclasses import dataclass, field

from twisted.internet.defer import Deferred

from mailcheck.core.errors import ShuttingDown
from mailcheck.core.identifiers import DeliverabilityTestId


@dataclass(slots=True, eq=False)
class Watcher:
    """One parked wait; ``when_moved`` fires at the first hint after it was armed."""

    test_id: DeliverabilityTestId
    when_moved: "Deferred[None]" = field(default_factory=Deferred)

    def arm(self) -> None:
        """Listen for the next hint; to be done before the look that it follows."""
        if self.when_moved.called:
            self.when_moved = Deferred()

    def wake(self) -> None:
        """Take a hint."""
        if not self.when_moved.called:
            self.when_moved.callback(None)


class DeliverabilityFeeds:
    """All parked waits for tests in this daemon."""

    def __init__(self) -> None:
        self._watchers: dict[DeliverabilityTestId, dict[Watcher, None]] = {}
        self._is_closed = False

    def join(self, test_id: DeliverabilityTestId) -> Watcher:
        """Register a wait; the caller must `leave` whatever happens.

        :raises ShuttingDown: no more waits are taken.
        """
        self.require_open()
        watcher = Watcher(test_id)
        self._watchers.setdefault(test_id, {})[watcher] = None
        return watcher

    def require_open(self) -> None:
        """Let a wait go on only while the daemon does.

        :raises ShuttingDown: it stops.
        """
        if self._is_closed:
            raise ShuttingDown("the service is restarting")

    def leave(self, watcher: Watcher) -> None:
        """Forget a wait."""
        group = self._watchers.get(watcher.test_id, {})
        group.pop(watcher, None)
        if not group:
            self._watchers.pop(watcher.test_id, None)

    def hear(self, test_id: DeliverabilityTestId) -> None:
        """Take the hint that a test has moved."""
        for watcher in tuple(self._watchers.get(test_id, ())):
            watcher.wake()

    def look_everywhere(self) -> None:
        """Wake every wait: hints may have been lost."""
        for test_id in tuple(self._watchers):
            self.hear(test_id)

    def count(self) -> int:
        """Say how many waits are parked."""
        return sum(map(len, self._watchers.values()))

    def close(self) -> None:
        """End all waits: the daemon stops."""
        self._is_closed = True
        self.look_everywhere()
