"""The routes of the domain tools (SPEC.md section 4, DECISIONS.md section 2)."""

from collections.abc import Awaitable, Callable

from msgspec import Struct

from mailcheck.checks.dnsbl.mail_addresses import MAX_ADDRESSES
from mailcheck.core.domain_names import (
    parse_blocklist_query,
    parse_domain,
    parse_host_address,
    parse_selector,
)
from mailcheck.core.receiver_reports import Offer
from mailcheck.operations.domains.check_blocklists import CheckBlocklists
from mailcheck.operations.domains.check_mx import CheckMx
from mailcheck.operations.domains.compute_reputation import ComputeReputation, ReputationQuery
from mailcheck.operations.domains.describe_domain import DescribeDomain
from mailcheck.operations.domains.zone_health import ListBudgets, ZoneHealthCheck
from mailcheck.operations.places import CheckTurns
from mailcheck.operations.ranges import MAX_SELECTORS
from mailcheck.web.api import described_tools as described
from mailcheck.web.api.calls import Call, Route
from mailcheck.web.site.errors import UNDETERMINED
from mailcheck.web.site.replies import Reply, json_reply
from mailcheck.wire.domains.blocklists import (
    render_blocklist_check,
    render_catalogue,
    render_no_answer,
)
from mailcheck.wire.domains.mx import render_mx_check, render_mx_undetermined
from mailcheck.wire.domains.report import render_domain_report
from mailcheck.wire.domains.reputation import render_reputation, render_ungradable


class DomainTools(Struct, frozen=True):
    """The operations that the routes offer."""

    mx: CheckMx
    blocklists: CheckBlocklists
    reputation: ComputeReputation
    domain: DescribeDomain
    health: ZoneHealthCheck
    budgets: ListBudgets
    offer: Offer


Handle = Callable[[Call], Awaitable[Reply]]


class ToolRoutes:
    """Parameters in, operation, shape out; no rule of its own."""

    def __init__(
        self,
        tools: DomainTools,
        turns: CheckTurns,
        *,
        allow_special_use: bool,
        allow_private: bool,
    ) -> None:
        self._tools = tools
        self._turns = turns
        self._allow_special_use = allow_special_use
        self._allow_private = allow_private

    def routes(self) -> list[Route]:
        """List the routes."""
        return [
            Route(
                "GET", "/tools/mx-check", self._in_turn(self.mx_check), described.MX_CHECK_OPERATION
            ),
            Route(
                "GET",
                "/tools/blacklist-check",
                self._in_turn(self.blacklist_check),
                described.BLACKLIST_CHECK_OPERATION,
            ),
            Route("GET", "/tools/blacklists", self.blacklists, described.BLACKLISTS_OPERATION),
            Route(
                "GET",
                "/tools/reputation",
                self._in_turn(self.reputation),
                described.REPUTATION_OPERATION,
            ),
            Route("GET", "/tools/domain", self._in_turn(self.domain), described.DOMAIN_OPERATION),
        ]

    def _in_turn(self, handle: Handle) -> Handle:
        async def handle_in_turn(call: Call) -> Reply:
            async with self._turns.held(call.caller.account_id):
                return await handle(call)

        return handle_in_turn

    async def mx_check(self, call: Call) -> Reply:
        """GET /tools/mx-check."""
        check = await self._tools.mx.check(self._domain(call))
        if check.undetermined:
            return json_reply(render_mx_undetermined(check), UNDETERMINED)
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
            return json_reply(render_no_answer(check), UNDETERMINED)
        return json_reply(render_blocklist_check(check))

    async def blacklists(self, _: Call) -> Reply:
        """GET /tools/blacklists."""
        tools = self._tools
        catalogue, budgets = tools.blocklists.catalogue, tools.budgets
        asked_today = await budgets.asked_today(catalogue.blocklists)
        return json_reply(render_catalogue(catalogue, tools.health, budgets, asked_today))

    async def reputation(self, call: Call) -> Reply:
        """GET /tools/reputation."""
        addresses = [
            parse_host_address(text, allow_private=self._allow_private)
            for text in call.query.texts("ip", MAX_ADDRESSES)
        ]
        query = ReputationQuery(
            self._domain(call), _selectors(call), tuple(dict.fromkeys(addresses))
        )
        is_refresh = call.query.flag("refresh")
        offered = await self._tools.offer(call.caller.account_id)
        found = await self._tools.reputation.compute(query, offered, is_refresh=is_refresh)
        if not found.score.is_gradable:
            return json_reply(render_ungradable(found), UNDETERMINED)
        return json_reply(render_reputation(found))

    async def domain(self, call: Call) -> Reply:
        """GET /tools/domain."""
        domain, selectors = self._domain(call), _selectors(call)
        offered = await self._tools.offer(call.caller.account_id)
        report = await self._tools.domain.describe(domain, selectors, offered)
        return json_reply(render_domain_report(report))

    def _domain(self, call: Call) -> str:
        return parse_domain(
            call.query.required("domain"), allow_special_use=self._allow_special_use
        )


def _selectors(call: Call) -> tuple[str, ...]:
    texts = call.query.texts("selector", MAX_SELECTORS)
    return tuple(dict.fromkeys(map(parse_selector, texts)))
