"""The statistics of traffic for pages and the API."""

from msgspec import Struct

from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import DAY, Instant
from mailcheck.ports.clocks import Now
from mailcheck.store.domains.traffic_store import (
    DayTraffic,
    SenderTraffic,
    SourceTraffic,
    TrafficStore,
)


class TrafficPage(Struct, frozen=True):
    """The author domains of a period, and the days with mail."""

    senders: tuple[SenderTraffic, ...]
    days: tuple[DayTraffic, ...]
    has_more: bool

    @property
    def mails(self) -> int:
        """Number of all mails in the period."""
        return sum(day.mails for day in self.days)


class SourcesPage(Struct, frozen=True):
    """The sources of one author domain."""

    domain: str
    sources: tuple[SourceTraffic, ...]
    has_more: bool


class ShowTraffic(Struct, frozen=True, eq=False):
    """Reads the statistics of an account.

    :param is_on: whether this server has a milter endpoint.
    """

    store: TrafficStore
    now: Now
    is_on: bool

    async def senders(self, account_id: AccountId, days: int, limit: int, page: int) -> TrafficPage:
        """Return the author domains of the last days, those with most mails first."""
        since = self._since(days)
        found = await self.store.senders(account_id, since, limit + 1, limit * (page - 1))
        return TrafficPage(
            found[:limit], await self.store.days(account_id, since), len(found) > limit
        )

    async def sources(
        self, account_id: AccountId, domain: str, days: int, limit: int, page: int
    ) -> SourcesPage:
        """Return the sources of an author domain, those with most mails first."""
        found = await self.store.sources(
            account_id, domain, self._since(days), limit + 1, limit * (page - 1)
        )
        return SourcesPage(domain, found[:limit], len(found) > limit)

    def _since(self, days: int) -> Instant:
        now = self.now()
        return Instant(now - now % DAY - (days - 1) * DAY)
