"""The statistics of the mail that a mail server has sent to the milter endpoint."""

from msgspec import Struct

from mailcheck.api.domains.traffic import render_sources, render_traffic
from mailcheck.api.requests.checks import DEFAULT_TRAFFIC_DAYS, MAX_TRAFFIC_DAYS
from mailcheck.api.requests.fields import INTEGER, LAST_PAGE
from mailcheck.api.shapes import as_json
from mailcheck.operations.traffic.show_traffic import ShowTraffic
from mailcheck.web.dashboard.rendering import Renderer
from mailcheck.web.dashboard.visits import Page, Visit
from mailcheck.web.site import costs
from mailcheck.web.site.replies import Reply

SHOWN = 50
"""Number of senders or sources on a page."""

SPANS = {1: "today", 7: "1 week", 30: "1 month", 90: "3 months"}


class TrafficPages(Struct, frozen=True):
    """The pages of all senders, and of the sources of one sender."""

    _traffic: ShowTraffic
    _renderer: Renderer

    def pages(self) -> list[Page]:
        """List the pages."""
        return [
            Page("GET", "/traffic", self.senders, costs.FREE),
            Page("GET", "/traffic/sources", self.sources, costs.FREE),
        ]

    async def senders(self, visit: Visit) -> Reply:
        """GET /traffic?days=&page=."""
        days, page = _period(visit)
        found = await self._traffic.senders(visit.account.id, days, SHOWN, page)
        traffic = as_json(render_traffic(found, page, is_on=self._traffic.is_on))
        return self._renderer.page(
            visit, "traffic.html", traffic=traffic, days=days, page=page, spans=SPANS
        )

    async def sources(self, visit: Visit) -> Reply:
        """GET /traffic/sources?domain=&days=&page=."""
        days, page = _period(visit)
        domain = (visit.query.text("domain") or "").strip().lower()
        found = await self._traffic.sources(visit.account.id, domain, days, SHOWN, page)
        traffic = as_json(render_sources(found, page))
        return self._renderer.page(
            visit, "traffic_sources.html", traffic=traffic, days=days, page=page, spans=SPANS
        )


def _period(visit: Visit) -> tuple[int, int]:
    query = visit.query
    days = query.value("days", INTEGER, DEFAULT_TRAFFIC_DAYS, 1, MAX_TRAFFIC_DAYS)
    return days, query.value("page", INTEGER, 1, 1, LAST_PAGE)
