"""The routes of the domain tools (SPEC.md section 4, DECISIONS.md section 2)."""

from dataclasses import dataclass

from mailcheck.core.domain_names import parse_blocklist_query, parse_domain
from mailcheck.operations.check_blocklists import CheckBlocklists
from mailcheck.operations.check_mx import CheckMx
from mailcheck.operations.list_budgets import ListBudgets
from mailcheck.operations.zone_health import ZoneHealthCheck
from mailcheck.web.api.calls import Call, Route
from mailcheck.web.replies import Reply, json_reply
from mailcheck.wire.domain_blocklists import (
    render_blocklist_check,
    render_catalogue,
    render_no_answer,
)
from mailcheck.wire.domain_mx import render_mx_check, render_mx_undetermined


@dataclass(frozen=True, slots=True)
class DomainTools:
    """What the routes are skins of."""

    mx: CheckMx
    blocklists: CheckBlocklists
    health: ZoneHealthCheck
    budgets: ListBudgets


class ToolRoutes:
    """Parameters in, operation, shape out; no rule of its own."""

    def __init__(self, tools: DomainTools, *, allow_special_use: bool, allow_private: bool) -> None:
        self._tools = tools
        self._allow_special_use = allow_special_use
        self._allow_private = allow_private

    def routes(self) -> list[Route]:
        """List the routes."""
        return [
            Route("GET", "/tools/mx-check", self.mx_check),
            Route("GET", "/tools/blacklist-check", self.blacklist_check),
            Route("GET", "/tools/blacklists", self.blacklists),
        ]

    async def mx_check(self, call: Call) -> Reply:
        """GET /tools/mx-check."""
        check = await self._tools.mx.check(self._domain(call))
        if check.undetermined:
            return json_reply(render_mx_undetermined(check), 500)
        return json_reply(render_mx_check(check))

    async def blacklist_check(self, call: Call) -> Reply:
        """GET /tools/blacklist-check."""
        query = parse_blocklist_query(
            call.query.required("query"),
            allow_special_use=self._allow_special_use,
            allow_private=self._allow_private,
        )
        check = await self._tools.blocklists.check(query)
        if check.has_no_answer:
            return json_reply(render_no_answer(check), 500)
        return json_reply(render_blocklist_check(check))

    async def blacklists(self, _: Call) -> Reply:
        """GET /tools/blacklists."""
        tools = self._tools
        return json_reply(render_catalogue(tools.blocklists.catalogue, tools.health, tools.budgets))

    def _domain(self, call: Call) -> str:
        return parse_domain(
            call.query.required("domain"), allow_special_use=self._allow_special_use
        )
