"""The route of the metrics of an account for Prometheus."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from msgspec import Struct

from mailcheck.api.openapi.operations import Body, Operation, Response
from mailcheck.api.requests.fields import INTEGER
from mailcheck.api.requests.parsing import Description, Request
from mailcheck.core.memory.instruments import Metric
from mailcheck.core.rights import Scope
from mailcheck.operations.collect_metrics import (
    DEFAULT_TARGETS,
    MOST_TARGETS,
    CollectMetrics,
)
from mailcheck.web.api.calls import Route, make_route
from mailcheck.web.site import costs
from mailcheck.web.site.application import Call
from mailcheck.web.site.replies import Reply

TEXT = "text/plain; version=0.0.4; charset=utf-8"
"""Media type of Prometheus text."""

WriteMetrics = Callable[[Sequence[Metric]], bytes]
"""Writes metrics as Prometheus text."""


class GetMetrics(Request, frozen=True, kw_only=True):
    """How many targets have series of their own."""

    most: Annotated[
        int,
        INTEGER,
        Description(
            "maximum number of watches, of heartbeats and of domains with series of their own; "
            "the rest is the series `other`",
            low=1,
            high=MOST_TARGETS,
        ),
    ] = DEFAULT_TARGETS


METRICS = Operation(
    "getMetrics",
    (Scope.METRICS,),
    "Watches",
    "Get metrics for Prometheus",
    "The stored results of watches, heartbeats and DMARC reports as Prometheus text. Nothing is "
    "checked. The names are in the documentation of the metrics.",
    answer=Response("The metrics.", [Body(media_type="text/plain")]),
    request=GetMetrics,
)


class MetricRoutes(Struct, frozen=True, eq=False):
    """The handler of the metrics."""

    metrics: CollectMetrics
    write: WriteMetrics

    def routes(self) -> list[Route[Any]]:
        """List the routes."""
        return [make_route("GET", "/metrics", self.show, METRICS, costs.FREE)]

    async def show(self, call: Call[GetMetrics]) -> Reply:
        """GET /metrics."""
        found = await self.metrics.collect(call.caller.account_id, call.request.most)
        return Reply(200, self.write(found), TEXT)
