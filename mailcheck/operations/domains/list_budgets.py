"""How often a blocklist may still be asked today: operators allow so many free questions a day."""

from collections.abc import Mapping, Sequence

from mailcheck.checks.dnsbl.catalogue import Blocklist
from mailcheck.core.rate_limits import DAY_WINDOW
from mailcheck.operations.ports import Hit, Now, RateCounters

UNLIMITED = 1 << 53
"""More than a day has time for."""


class ListBudgets:
    """Counts the questions to each zone, of all daemons, from midnight to midnight UTC.

    :param overrides: budgets by zone in place of those of the catalogue; 0 is no limit.
    """

    def __init__(self, overrides: Mapping[str, int], counters: RateCounters, now: Now) -> None:
        self._overrides = overrides
        self._counters = counters
        self._now = now

    async def take(self, wanted: Sequence[tuple[Blocklist, int]]) -> list[bool]:
        """Count questions that are about to be asked; false for a list with too many for today."""
        counts = await self._hit(wanted)
        return [count <= self._limit(one) for count, (one, _) in zip(counts, wanted, strict=True)]

    def limit_of(self, blocklist: Blocklist) -> int | None:
        """Give the questions a day that a zone may get; nothing where there is no limit."""
        budget = self._overrides.get(blocklist.zone, blocklist.daily_budget)
        return budget or None

    async def asked_today(self, blocklists: Sequence[Blocklist]) -> dict[str, int]:
        """Give the questions that were counted since midnight, by zone."""
        counts = await self._hit([(one, 0) for one in blocklists])
        return {one.zone: count for count, one in zip(counts, blocklists, strict=True)}

    def _limit(self, blocklist: Blocklist) -> int:
        return self.limit_of(blocklist) or UNLIMITED

    async def _hit(self, wanted: Sequence[tuple[Blocklist, int]]) -> list[int]:
        today = DAY_WINDOW.index(self._now())
        hits = [
            Hit(f"list {one.zone}", ((DAY_WINDOW, today, self._limit(one)),), questions)
            for one, questions in wanted
        ]
        return [count for (count,) in await self._counters.hit(*hits)]
