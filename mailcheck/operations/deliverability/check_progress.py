"""Which checks of a mail have ended while others run: for who looks at the page of a test.

A hint for people, and nothing more: the report alone says what came of them.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mailcheck.core.identifiers import DeliveryId
from mailcheck.core.recent import RecentlyUsed
from mailcheck.ports.cluster import WakeUps

PARTS = {
    "mail": "Reading the mail",
    "host": "Name of the sending host (reverse DNS, HELO)",
    "authentication": "SPF, DKIM, DMARC and ARC",
    "address-lists": "Blocklists: the sending address",
    "name-lists": "Blocklists: domains in the mail",
    "filter": "Content filter",
    "fixes": "Trying the fixes",
}
"""The parts of an analysis, in the order of the page, and what people call them."""

BEGUN = "begun"
"""What is told before any part: what ended in an earlier run is of the past."""

REMEMBERED = 200
"""Mails whose progress is kept: far more than are analysed at a time."""

ReportProgress = Callable[[DeliveryId | None, str], None]
"""Is told that a part of a mail's analysis has ended; of mails that are not stored too."""


class CheckProgress:
    """Hears of ended parts, in whichever daemon the analysis runs."""

    def __init__(self, hints: WakeUps[str]) -> None:
        self._hints = hints
        self._ended: RecentlyUsed[str, frozenset[str]] = RecentlyUsed(REMEMBERED)
        self._watchers: dict[str, list[Callable[[], None]]] = {}
        hints.listen(self._hear)

    def tell(self, delivery_id: DeliveryId | None, part: str) -> None:
        """Let all who look know that a part has ended, or that all of them have `BEGUN`."""
        if delivery_id is not None:
            self._hints.publish(f"{delivery_id} {part}")

    def ended(self, delivery_id: DeliveryId | None) -> frozenset[str]:
        """Give the parts that have ended, as far as was heard."""
        return self._ended.get(delivery_id or "") or frozenset()

    @contextmanager
    def watched(self, delivery_id: DeliveryId | None, moved: Callable[[], None]) -> Iterator[None]:
        """Call ``moved`` for each part that ends while the block runs."""
        watchers = self._watchers.setdefault(delivery_id or "", [])
        watchers.append(moved)
        try:
            yield
        finally:
            watchers.remove(moved)
            if not watchers:
                self._watchers.pop(delivery_id or "", None)

    def _hear(self, hint: str) -> None:
        delivery_id, _, part = hint.partition(" ")
        before = self._ended.get(delivery_id) or frozenset()
        self._ended.put(delivery_id, frozenset() if part == BEGUN else before | {part})
        for moved in tuple(self._watchers.get(delivery_id, ())):
            moved()
