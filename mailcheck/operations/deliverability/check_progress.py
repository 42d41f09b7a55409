"""Progress of the checks of a mail, for people who watch the page of a test.

Progress is only a hint. Results are in the report alone.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager

from mailcheck.core.identifiers import DeliveryId
from mailcheck.core.memory.recent import LruCache
from mailcheck.operations.watchers import Watchers
from mailcheck.ports.cluster import Notifications

PARTS = {
    "mail": "Reading the mail",
    "host": "Name of the sending host (reverse DNS, HELO)",
    "authentication": "SPF, DKIM, DMARC and ARC",
    "address-lists": "Blocklists: the sending address",
    "name-lists": "Blocklists: domains in the mail",
    "filter": "Content filter",
    "fixes": "Trying the fixes",
}
"""The steps of an analysis with their titles, in the order of the page."""

BEGUN = "begun"
"""Reported before the first step, so that the steps of an earlier run are cleared."""

REMEMBERED = 200
"""Number of mails whose progress is kept: far more than are analysed concurrently."""

ReportProgress = Callable[[DeliveryId | None, str], None]
"""Reports that a step of a mail's analysis has ended. Mails that are not stored have no id."""


class CheckProgress:
    """Collects the finished steps of analyses, whichever daemon runs them."""

    def __init__(self, hints: Notifications[str]) -> None:
        self._hints = hints
        self._ended: LruCache[str, frozenset[str]] = LruCache(REMEMBERED)
        self._watchers: Watchers[str, Callable[[], None]] = Watchers()
        hints.listen(self._hear)

    def tell(self, delivery_id: DeliveryId | None, part: str) -> None:
        """Notify all watchers that a step has ended, or that an analysis has `BEGUN`."""
        if delivery_id is not None:
            self._hints.publish(f"{delivery_id} {part}")

    def ended(self, delivery_id: DeliveryId | None) -> frozenset[str]:
        """Return the finished steps, as far as this daemon has been notified."""
        return self._ended.get(delivery_id or "") or frozenset()

    def watched(
        self, delivery_id: DeliveryId | None, moved: Callable[[], None]
    ) -> AbstractContextManager[None]:
        """Call ``moved`` for each step that ends while the block runs."""
        return self._watchers.joined(delivery_id or "", moved)

    def _hear(self, hint: str) -> None:
        delivery_id, _, part = hint.partition(" ")
        before = self._ended.get(delivery_id) or frozenset()
        self._ended.put(delivery_id, frozenset() if part == BEGUN else before | {part})
        for moved in self._watchers.of(delivery_id):
            moved()
