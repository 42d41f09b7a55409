"""The tool that tells what receivers report, on the operations that REST uses."""

from mailcheck.api.mcp.arguments import arguments_schema
from mailcheck.api.mcp.reports import MOST_SENDERS, ReportsResult, render_reports
from mailcheck.api.schemas import text, whole_number
from mailcheck.core.domain_names import parse_domain
from mailcheck.operations.places import CheckTurns
from mailcheck.operations.ranges import DEFAULT_REPORT_DAYS, LAST_PAGE
from mailcheck.operations.reports.show_reports import ShowReports
from mailcheck.web.mcp import tool_texts
from mailcheck.web.mcp.tools import Annotations, Tool, ToolCall, ToolResult, as_json_text

_INPUT = arguments_schema(
    {
        "domain": text("none: list the domains"),
        "page": whole_number(minimum=1),
    }
)

LONGEST_LOOK = 10.0
"""Seconds for names and lists of those who send."""


class ReportTools:
    """Arguments in, operation, shape and text out; no rule of its own."""

    def __init__(self, reports: ShowReports, turns: CheckTurns) -> None:
        self._reports = reports
        self._turns = turns

    def tools(self) -> list[Tool]:
        """List the tool."""
        return [
            Tool(
                "get_reports",
                "Reports",
                tool_texts.GET_REPORTS,
                _INPUT,
                ReportsResult,
                self.get_reports,
                Annotations(is_open_world=True),
            )
        ]

    async def get_reports(self, call: ToolCall) -> ToolResult:
        """Say who sends as a domain, and what could not be encrypted on the way to it."""
        account_id, asked = call.caller.account_id, call.arguments.text("domain")
        page = call.arguments.whole_number("page", 1, LAST_PAGE, 1)
        own = await self._reports.addresses(account_id)
        domains = await self._reports.domains(account_id)
        shown = tls = None
        if asked is not None:
            domain = parse_domain(asked, allow_special_use=True)
            call.expect(LONGEST_LOOK, "asking for names of those who send")
            span = (account_id, domain, DEFAULT_REPORT_DAYS, MOST_SENDERS, page)
            async with self._turns.held(account_id):
                shown = await self._reports.dmarc(*span)
            tls = await self._reports.tls(*span)
        return as_json_text(render_reports(own, domains, shown, tls, page, call.fence))
