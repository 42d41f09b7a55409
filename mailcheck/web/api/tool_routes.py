"""The routes of the domain tools (docs/reference/contract.md)."""

from typing import Any

from msgspec import Struct

from mailcheck.api.domains.blocklists import (
    BlacklistCheck,
    Blacklists,
    BlacklistsUnanswered,
    render_blocklist_check,
    render_catalogue,
    render_no_answer,
)
from mailcheck.api.domains.mx import (
    MxCheck,
    MxUndetermined,
    render_mx_check,
    render_mx_undetermined,
)
from mailcheck.api.domains.report import DomainReport, render_domain_report
from mailcheck.api.domains.reputation import (
    Reputation,
    ReputationUndetermined,
    render_reputation,
    render_ungradable,
)
from mailcheck.api.errors import Crash
from mailcheck.api.openapi.operations import Operation, Response, json_response
from mailcheck.api.requests.checks import (
    BlocklistRequest,
    DomainReportRequest,
    MxRequest,
    ReputationRequest,
)
from mailcheck.api.requests.parsing import NoParameters
from mailcheck.api.shapes import Shape
from mailcheck.core.domains.domain_names import (
    parse_blocklist_query,
    parse_domain,
    parse_host_address,
)
from mailcheck.core.domains.receiver_reports import Offer
from mailcheck.core.rights import Scope
from mailcheck.operations.domains.check_blocklists import CheckBlocklists
from mailcheck.operations.domains.check_mx import CheckMx
from mailcheck.operations.domains.compute_reputation import ComputeReputation, ReputationQuery
from mailcheck.operations.domains.describe_domain import DescribeDomain
from mailcheck.operations.domains.zone_health import ListBudgets, ZoneHealthCheck
from mailcheck.operations.semaphores import CheckSlots
from mailcheck.web.api.calls import Route, make_route
from mailcheck.web.site import costs
from mailcheck.web.site.application import Call
from mailcheck.web.site.failures import UNDETERMINED
from mailcheck.web.site.replies import Reply, json_reply

_TAG = "Domain tools"


def _undetermined(shape: type[Shape], example: str, description: str) -> Response:
    """Return the 500 of an undetermined result, which is distinct from an internal error."""
    return json_response(
        f"{description} An internal error has `reference` instead.", example, shape, Crash
    )


MX_CHECK = Operation(
    "checkMx",
    (Scope.DOMAINS,),
    _TAG,
    "Check MX, SPF and DMARC",
    "Returns the mail hosts of a domain, and its SPF and DMARC records.",
    answer=json_response("All three are determined.", "mx check", MxCheck),
    errors={
        500: _undetermined(
            MxUndetermined,
            "mx undetermined",
            "MX, SPF or DMARC could not be determined; `partial` contains the other results.",
        )
    },
    request=MxRequest,
)

BLACKLIST_CHECK = Operation(
    "checkBlacklists",
    (Scope.DOMAINS,),
    _TAG,
    "Check 32 blocklists",
    "Queries all lists at once. For a domain, 12 lists are queried for its name and 20 for the IP "
    "addresses of its mail hosts.",
    answer=json_response("One row per list.", "blacklist check", BlacklistCheck),
    errors={500: _undetermined(BlacklistsUnanswered, "blacklists unanswered", "No list answered.")},
    request=BlocklistRequest,
)

BLACKLISTS = Operation(
    "listBlacklists",
    (Scope.DOMAINS,),
    _TAG,
    "List the blocklists",
    "The catalogue with the health of each list. Lists are tested at startup and every 30 minutes.",
    answer=json_response("The lists.", "blacklists", Blacklists),
)

REPUTATION = Operation(
    "getReputation",
    (Scope.DOMAINS,),
    _TAG,
    "Score a domain",
    "A score from 0 to 100 with a grade, from eight factors. Each factor contains its points, the "
    "points to gain, and the record to publish. The result is cached for an hour.",
    answer=json_response("The score.", "reputation", Reputation),
    errors={
        500: _undetermined(
            ReputationUndetermined,
            "reputation undetermined",
            "Too much could not be determined to give a grade.",
        )
    },
    request=ReputationRequest,
)

DOMAIN = Operation(
    "describeDomain",
    (Scope.DOMAINS,),
    _TAG,
    "Get the report of a domain",
    "The complete report about its mail set-up: the SPF tree with lookup counts, DKIM keys, DMARC, "
    "MTA-STS, TLS-RPT, DANE, DNSSEC, CAA and BIMI, each with its problems and the records to "
    "publish.",
    answer=json_response("The report.", "domain", DomainReport),
    request=DomainReportRequest,
)


class DomainTools(Struct, frozen=True):
    """The operations of the domain tools."""

    mx: CheckMx
    blocklists: CheckBlocklists
    reputation: ComputeReputation
    domain: DescribeDomain
    health: ZoneHealthCheck
    budgets: ListBudgets
    offer: Offer


class ToolRoutes(Struct, frozen=True, eq=False):
    """Handlers that parse parameters, call an operation and render its result."""

    tools: DomainTools
    turns: CheckSlots
    allow_special_use: bool
    allow_private: bool

    def routes(self) -> list[Route[Any]]:
        """List the routes."""
        domain, lists = costs.DOMAIN, costs.LISTS
        return [
            make_route("GET", "/tools/mx-check", self.mx_check, MX_CHECK, domain),
            make_route(
                "GET", "/tools/blacklist-check", self.blacklist_check, BLACKLIST_CHECK, lists
            ),
            make_route("GET", "/tools/blacklists", self.blacklists, BLACKLISTS, costs.FREE),
            make_route("GET", "/tools/reputation", self.reputation, REPUTATION, domain),
            make_route("GET", "/tools/domain", self.domain, DOMAIN, domain),
        ]

    async def mx_check(self, call: Call[MxRequest]) -> Reply:
        """GET /tools/mx-check."""
        domain = self._parse_domain(call.request.domain)
        async with self.turns.held(call.caller.account_id):
            offered = await self.tools.offer(call.caller.account_id)
            check = await self.tools.mx.check(domain, offered)
        if check.undetermined:
            return json_reply(render_mx_undetermined(check), UNDETERMINED)
        return json_reply(render_mx_check(check))

    async def blacklist_check(self, call: Call[BlocklistRequest]) -> Reply:
        """GET /tools/blacklist-check."""
        query = parse_blocklist_query(
            call.request.query,
            allow_special_use=self.allow_special_use,
            allow_private=self.allow_private,
        )
        async with self.turns.held(call.caller.account_id):
            check = await self.tools.blocklists.check(query)
        if check.has_no_answer:
            return json_reply(render_no_answer(check), UNDETERMINED)
        return json_reply(render_blocklist_check(check))

    async def blacklists(self, _: Call[NoParameters]) -> Reply:
        """GET /tools/blacklists, which waits for the first self-test, as checks do."""
        tools = self.tools
        await tools.health.wait_for_first_test()
        catalogue, budgets = tools.blocklists.catalogue, tools.budgets
        asked_today = await budgets.asked_today(catalogue.blocklists)
        return json_reply(render_catalogue(catalogue, tools.health, budgets, asked_today))

    async def reputation(self, call: Call[ReputationRequest]) -> Reply:
        """GET /tools/reputation."""
        request = call.request
        addresses = [
            parse_host_address(text, allow_private=self.allow_private) for text in request.addresses
        ]
        query = ReputationQuery(
            self._parse_domain(request.domain),
            tuple(dict.fromkeys(request.selectors)),
            tuple(dict.fromkeys(addresses)),
        )
        async with self.turns.held(call.caller.account_id):
            offered = await self.tools.offer(call.caller.account_id)
            found = await self.tools.reputation.compute(query, offered, is_refresh=request.refresh)
        if not found.score.is_gradable:
            return json_reply(render_ungradable(found), UNDETERMINED)
        return json_reply(render_reputation(found))

    async def domain(self, call: Call[DomainReportRequest]) -> Reply:
        """GET /tools/domain."""
        domain = self._parse_domain(call.request.domain)
        selectors = tuple(dict.fromkeys(call.request.selectors))
        async with self.turns.held(call.caller.account_id):
            offered = await self.tools.offer(call.caller.account_id)
            report = await self.tools.domain.describe(
                domain, selectors, offered, call.request.logo_selector
            )
        return json_reply(render_domain_report(report))

    def _parse_domain(self, text: str) -> str:
        return parse_domain(text, allow_special_use=self.allow_special_use)
