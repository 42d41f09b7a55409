"""The routes of the statistics of traffic."""

from typing import Any

from msgspec import Struct

from mailcheck.api.domains.traffic import (
    TrafficOverview,
    TrafficSources,
    render_sources,
    render_traffic,
)
from mailcheck.api.openapi.operations import Operation, json_response
from mailcheck.api.requests.checks import GetTraffic, GetTrafficSources
from mailcheck.core.rights import Scope
from mailcheck.operations.traffic.show_traffic import ShowTraffic
from mailcheck.web.api.calls import Route, make_route
from mailcheck.web.site import costs
from mailcheck.web.site.application import Call
from mailcheck.web.site.replies import Reply, json_reply

_TAG = "Traffic of a mail server"

TRAFFIC = Operation(
    "getTraffic",
    (Scope.DOMAINS,),
    _TAG,
    "Get the senders of your mail server's mail",
    "Counts the mails that a mail server has sent to the milter endpoint, by the domain of the "
    "author: how many pass SPF, DKIM and DMARC, and how many are spam.",
    answer=json_response("A page of senders.", "traffic", TrafficOverview),
    request=GetTraffic,
)

SOURCES = Operation(
    "getTrafficSources",
    (Scope.DOMAINS,),
    _TAG,
    "Get the sources of a sender's mail",
    "Counts the mails of one author domain by client, domains and results.",
    answer=json_response("A page of sources.", "traffic sources", TrafficSources),
    request=GetTrafficSources,
)


class TrafficRoutes(Struct, frozen=True, eq=False):
    """Handlers that parse parameters, call an operation and render its result."""

    traffic: ShowTraffic

    def routes(self) -> list[Route[Any]]:
        """List the routes."""
        return [
            make_route("GET", "/traffic", self.senders, TRAFFIC, costs.FREE),
            make_route("GET", "/traffic/sources", self.sources, SOURCES, costs.FREE),
        ]

    async def senders(self, call: Call[GetTraffic]) -> Reply:
        """GET /traffic."""
        days, limit, page = call.request.days, call.request.limit, call.request.page
        found = await self.traffic.senders(call.caller.account_id, days, limit, page)
        return json_reply(render_traffic(found, page, is_on=self.traffic.is_on))

    async def sources(self, call: Call[GetTrafficSources]) -> Reply:
        """GET /traffic/sources."""
        asked = call.request
        found = await self.traffic.sources(
            call.caller.account_id, asked.domain.lower(), asked.days, asked.limit, asked.page
        )
        return json_reply(render_sources(found, asked.page))
