"""How often a blocklist may still be asked today: operators allow so many free questions a day."""

from collections import Counter
from collections.abc import Mapping

from mailcheck.checks.dnsbl.catalogue import Blocklist
from mailcheck.core.instants import DAY
from mailcheck.operations.ports import Now


class ListBudgets:
    """Counts the questions of this process to each zone, from midnight to midnight UTC.

    :param overrides: budgets by zone in place of those of the catalogue; 0 is no limit.
    """

    def __init__(self, overrides: Mapping[str, int], now: Now) -> None:
        self._overrides = overrides
        self._now = now
        self._day = 0
        self._asked: Counter[str] = Counter()

    def take(self, blocklist: Blocklist, questions: int) -> bool:
        """Count questions that are about to be asked; false when they are too many for today."""
        self._turn_day()
        budget = self.limit_of(blocklist)
        if budget is not None and self._asked[blocklist.zone] + questions > budget:
            return False
        self._asked[blocklist.zone] += questions
        return True

    def limit_of(self, blocklist: Blocklist) -> int | None:
        """Give the questions a day that a zone may get; nothing where there is no limit."""
        budget = self._overrides.get(blocklist.zone, blocklist.daily_budget)
        return budget or None

    def asked_today(self, blocklist: Blocklist) -> int:
        """Give the questions that were counted since midnight."""
        self._turn_day()
        return self._asked[blocklist.zone]

    def _turn_day(self) -> None:
        today = self._now() // DAY
        if today != self._day:
            self._day = today
            self._asked.clear()
