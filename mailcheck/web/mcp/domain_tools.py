"""The MCP tools for domains, blocklists, reports and watches."""

from typing import Any

from msgspec import Struct

from mailcheck.api.mcp.domains import (
    BlocklistsResult,
    CheckDomainArguments,
    DomainResult,
    MxResult,
    render_domain_check,
    render_listings,
    render_mx,
)
from mailcheck.api.mcp.heartbeats import (
    GetHeartbeatsArguments,
    HeartbeatsResult,
    render_all_heartbeats,
    render_one_heartbeat,
)
from mailcheck.api.mcp.reports import (
    MOST_SENDERS,
    GetReportsArguments,
    ReportsResult,
    render_policy_plan,
    render_reports,
)
from mailcheck.api.mcp.watches import (
    GetWatchArguments,
    WatchesResult,
    WatchResult,
    render_one,
    render_watches,
)
from mailcheck.api.requests.checks import DEFAULT_REPORT_DAYS, BlocklistRequest, MxRequest
from mailcheck.api.requests.fields import LARGEST_PAGE
from mailcheck.api.requests.parsing import NoParameters
from mailcheck.core.domains.domain_names import (
    parse_blocklist_query,
    parse_domain,
    parse_host_address,
)
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.rights import Scope
from mailcheck.operations.concurrency import run_all
from mailcheck.operations.dns_evaluation import DEADLINE
from mailcheck.operations.domains.compute_reputation import ReputationQuery
from mailcheck.operations.domains.watches.manage_heartbeats import ManageHeartbeats
from mailcheck.operations.domains.watches.manage_watches import ManageWatches
from mailcheck.operations.reports.all_operations import ReportOperations
from mailcheck.operations.semaphores import CheckSlots
from mailcheck.web.api.tool_routes import DomainTools
from mailcheck.web.mcp.tools import Annotations, Tool, ToolCall, ToolResult, as_fenced_json
from mailcheck.web.site import costs

_OPEN_WORLD = Annotations(is_open_world=True)


class AgentDomainTools(Struct, frozen=True, eq=False):
    """Tools that parse arguments, call an operation and render its result."""

    operations: DomainTools
    turns: CheckSlots
    allow_special_use: bool
    allow_private: bool

    def tools(self) -> list[Tool[Any]]:
        """List the tools."""
        return [
            Tool(
                "check_domain",
                (Scope.DOMAINS,),
                costs.DOMAIN,
                "Check a mail set-up",
                "Score a domain's mail set-up from 0 to 100 (SPF, DKIM, DMARC, MX, blocklists, "
                "STARTTLS, age, reverse DNS), with the exact DNS record that fixes each problem. "
                "Undetermined is not no.",
                request=CheckDomainArguments,
                output=DomainResult,
                handle=self.check_domain,
                annotations=_OPEN_WORLD,
            ),
            Tool(
                "check_mx",
                (Scope.DOMAINS,),
                costs.DOMAIN,
                "Check MX, SPF and DMARC",
                "Check whether a domain receives mail: its mail hosts with addresses, and its SPF "
                "and DMARC records as published. Fast; check_domain evaluates them.",
                request=MxRequest,
                output=MxResult,
                handle=self.check_mx,
                annotations=_OPEN_WORLD,
            ),
            Tool(
                "check_blocklists",
                (Scope.DOMAINS,),
                costs.LISTS,
                "Check blocklists",
                "Query 32 DNS blocklists for an IP address, or for a domain and its mail hosts. "
                "Listings have weight, reason and where to request removal. Undetermined is not "
                "no.",
                request=BlocklistRequest,
                output=BlocklistsResult,
                handle=self.check_blocklists,
                annotations=_OPEN_WORLD,
            ),
        ]

    async def check_domain(self, call: ToolCall[CheckDomainArguments]) -> ToolResult:
        """Score a domain, with the fix for each problem."""
        request = call.request
        query = ReputationQuery(
            parse_domain(request.domain, allow_special_use=self.allow_special_use),
            () if request.selector is None else (request.selector,),
            ()
            if request.ip is None
            else (parse_host_address(request.ip, allow_private=self.allow_private),),
        )
        call.announce(DEADLINE, "querying name servers, mail hosts and blocklists")
        async with self.turns.held(call.caller.account_id):
            offered = await self.operations.offer(call.caller.account_id)
            found, report = await run_all(
                self.operations.reputation.compute(query, offered),
                self.operations.domain.describe(query.domain, query.selectors, offered),
            )
        shape = render_domain_check(found, report)
        return as_fenced_json(shape, call.fence)

    async def check_mx(self, call: ToolCall[MxRequest]) -> ToolResult:
        """Check the mail hosts, SPF and DMARC of a domain."""
        domain = parse_domain(call.request.domain, allow_special_use=self.allow_special_use)
        offered = await self.operations.offer(call.caller.account_id)
        shape = render_mx(await self.operations.mx.check(domain, offered))
        return as_fenced_json(shape, call.fence)

    async def check_blocklists(self, call: ToolCall[BlocklistRequest]) -> ToolResult:
        """Query the blocklists."""
        query = parse_blocklist_query(
            call.request.query,
            allow_special_use=self.allow_special_use,
            allow_private=self.allow_private,
        )
        async with self.turns.held(call.caller.account_id):
            check = await self.operations.blocklists.check(query)
        shape = render_listings(check)
        return as_fenced_json(shape, call.fence)


REPORTS_DURATION = 10.0
"""Expected maximum number of seconds of a call: names and listings of senders are looked up."""


class ReportTools(Struct, frozen=True, eq=False):
    """The tool that parses arguments, calls an operation and renders its result."""

    reports: ReportOperations
    turns: CheckSlots

    def tools(self) -> list[Tool[Any]]:
        """List the tool."""
        return [
            Tool(
                "get_reports",
                (Scope.DOMAINS,),
                costs.OVERVIEW_OR_PLAN,
                "Reports",
                "Summarize DMARC and TLS reports and complaints: who sends as a domain, what "
                "fails, why, and what to do. With plan=true: whether p=reject is safe, or what is "
                "missing.",
                request=GetReportsArguments,
                output=ReportsResult,
                handle=self.get_reports,
                annotations=Annotations(is_open_world=True),
            )
        ]

    async def get_reports(self, call: ToolCall[GetReportsArguments]) -> ToolResult:
        """Summarize the DMARC and TLS reports about a domain, or plan its next DMARC policy."""
        account_id, page = call.caller.account_id, call.request.page
        if call.request.plan:
            return await self._planned(call)
        own = await self.reports.show.addresses(account_id)
        domains = await self.reports.show.domains(account_id)
        shown = tls = None
        if call.request.domain is not None:
            domain = parse_domain(call.request.domain, allow_special_use=True)
            call.announce(REPORTS_DURATION, "looking up the names of senders")
            span = (account_id, domain, DEFAULT_REPORT_DAYS, MOST_SENDERS, page)
            async with self.turns.held(account_id):
                shown = await self.reports.show.dmarc(*span)
            tls = await self.reports.show.tls(*span)
        shape = render_reports(own, domains, shown, tls, page)
        return as_fenced_json(shape, call.fence)

    async def _planned(self, call: ToolCall[GetReportsArguments]) -> ToolResult:
        account_id = call.caller.account_id
        if call.request.domain is None:
            raise InvalidParameter("domain", "plan needs the domain whose policy is planned")
        domain = parse_domain(call.request.domain, allow_special_use=True)
        call.announce(REPORTS_DURATION, "simulating the next policy on the reported mail")
        async with self.turns.held(account_id):
            plan = await self.reports.plan.plan(account_id, domain, DEFAULT_REPORT_DAYS)
        shape = render_policy_plan(plan, await self.reports.show.domains(account_id))
        return as_fenced_json(shape, call.fence)


class WatchTools(Struct, frozen=True, eq=False):
    """Tools that parse arguments, call an operation and render its result."""

    watches: ManageWatches
    heartbeats: ManageHeartbeats

    def tools(self) -> list[Tool[Any]]:
        """List the tools."""
        return [
            Tool(
                "list_watches",
                (Scope.WATCHES,),
                costs.FREE,
                "List watches",
                "List watched domains and addresses, how many problems each has, and open alerts.",
                request=NoParameters,
                output=WatchesResult,
                handle=self.list_watches,
            ),
            Tool(
                "get_watch",
                (Scope.WATCHES,),
                costs.FREE,
                "Get a watch",
                "Get the problems, open alerts and recent changes of a watched domain or address.",
                request=GetWatchArguments,
                output=WatchResult,
                handle=self.get_watch,
            ),
            Tool(
                "get_heartbeats",
                (Scope.WATCHES,),
                costs.FREE,
                "Get heartbeats",
                "List mail that is expected on a schedule, or show one: late, missing, and scores.",
                request=GetHeartbeatsArguments,
                output=HeartbeatsResult,
                handle=self.get_heartbeats,
            ),
        ]

    async def list_watches(self, call: ToolCall[NoParameters]) -> ToolResult:
        """List the first page of the account's watches."""
        account_id = call.caller.account_id
        page = await self.watches.of_account(account_id, LARGEST_PAGE)
        alerts = await self.watches.open_alerts(account_id)
        shape = render_watches(page, alerts)
        return as_fenced_json(shape, call.fence)

    async def get_watch(self, call: ToolCall[GetWatchArguments]) -> ToolResult:
        """Return a watch with its newest changes."""
        account_id, watch_id = call.caller.account_id, call.request.watch_id
        shown = await self.watches.show(account_id, watch_id)
        _, history = await self.watches.history(account_id, watch_id)
        shape = render_one(shown, history, call.received_at)
        return as_fenced_json(shape, call.fence)

    async def get_heartbeats(self, call: ToolCall[GetHeartbeatsArguments]) -> ToolResult:
        """List the account's heartbeats, or show one."""
        account_id, name = call.caller.account_id, call.request.name
        if name is not None:
            shown = await self.heartbeats.show(account_id, name)
            return as_fenced_json(render_one_heartbeat(shown), call.fence)
        found = await self.heartbeats.all(account_id)
        alerts = await self.heartbeats.open_alerts(account_id)
        return as_fenced_json(render_all_heartbeats(found, alerts), call.fence)
