"""The tools that check domains and blocklists, on the operations that REST uses."""

from typing import Any

from mailcheck.api.mcp.domains import (
    BlocklistsResult,
    DomainResult,
    MxResult,
    render_domain_check,
    render_listings,
    render_mx,
)
from mailcheck.api.requests.agents import CheckDomain
from mailcheck.api.requests.checks import BlocklistRequest, MxRequest
from mailcheck.core.domain_names import (
    parse_blocklist_query,
    parse_domain,
    parse_host_address,
)
from mailcheck.operations.ask import DEADLINE
from mailcheck.operations.domains.compute_reputation import ReputationQuery
from mailcheck.operations.places import CheckTurns
from mailcheck.web.api.tool_routes import DomainTools
from mailcheck.web.mcp import tool_texts
from mailcheck.web.mcp.tools import Annotations, Tool, ToolCall, ToolResult, as_json_text

_FROM_OUTSIDE = Annotations(is_open_world=True)


class AgentDomainTools:
    """Arguments in, operation, shape and text out; no rule of its own."""

    def __init__(
        self,
        operations: DomainTools,
        turns: CheckTurns,
        *,
        allow_special_use: bool,
        allow_private: bool,
    ) -> None:
        self._operations = operations
        self._turns = turns
        self._allow_special_use = allow_special_use
        self._allow_private = allow_private

    def tools(self) -> list[Tool[Any]]:
        """List the tools."""
        return [
            Tool(
                "check_domain",
                "Check a domain's mail set-up",
                tool_texts.CHECK_DOMAIN,
                CheckDomain,
                DomainResult,
                self.check_domain,
                _FROM_OUTSIDE,
            ),
            Tool(
                "check_mx",
                "Check a domain's MX, SPF and DMARC",
                tool_texts.CHECK_MX,
                MxRequest,
                MxResult,
                self.check_mx,
                _FROM_OUTSIDE,
            ),
            Tool(
                "check_blocklists",
                "Check blocklists",
                tool_texts.CHECK_BLOCKLISTS,
                BlocklistRequest,
                BlocklistsResult,
                self.check_blocklists,
                _FROM_OUTSIDE,
            ),
        ]

    async def check_domain(self, call: ToolCall[CheckDomain]) -> ToolResult:
        """Score a domain and say what to fix."""
        asked = call.asked
        query = ReputationQuery(
            parse_domain(asked.domain, allow_special_use=self._allow_special_use),
            () if asked.selector is None else (asked.selector,),
            ()
            if asked.ip is None
            else (parse_host_address(asked.ip, allow_private=self._allow_private),),
        )
        call.expect(DEADLINE, "asking name servers, mail hosts and blocklists")
        async with self._turns.held(call.caller.account_id):
            offered = await self._operations.offer(call.caller.account_id)
            found = await self._operations.reputation.compute(query, offered)
        return as_json_text(render_domain_check(found))

    async def check_mx(self, call: ToolCall[MxRequest]) -> ToolResult:
        """Look whether a domain takes mail, and at its SPF and DMARC records."""
        domain = parse_domain(call.asked.domain, allow_special_use=self._allow_special_use)
        return as_json_text(render_mx(await self._operations.mx.check(domain)))

    async def check_blocklists(self, call: ToolCall[BlocklistRequest]) -> ToolResult:
        """Ask 32 blocklists."""
        query = parse_blocklist_query(
            call.asked.query,
            allow_special_use=self._allow_special_use,
            allow_private=self._allow_private,
        )
        async with self._turns.held(call.caller.account_id):
            check = await self._operations.blocklists.check(query)
        return as_json_text(render_listings(check))
