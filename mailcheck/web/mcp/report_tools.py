"""The tool that tells what receivers report, on the operations that REST uses."""

from typing import Any

from mailcheck.api.mcp.reports import MOST_SENDERS, ReportsResult, render_reports
from mailcheck.api.requests import agents as requests
from mailcheck.api.requests.checks import DEFAULT_REPORT_DAYS
from mailcheck.core.domain_names import parse_domain
from mailcheck.operations.places import CheckTurns
from mailcheck.operations.reports.show_reports import ShowReports
from mailcheck.web.mcp import tool_texts
from mailcheck.web.mcp.tools import Annotations, Tool, ToolCall, ToolResult, as_json_text

LONGEST_LOOK = 10.0
"""Seconds for names and lists of those who send."""


class ReportTools:
    """Arguments in, operation, shape and text out; no rule of its own."""

    def __init__(self, reports: ShowReports, turns: CheckTurns) -> None:
        self._reports = reports
        self._turns = turns

    def tools(self) -> list[Tool[Any]]:
        """List the tool."""
        return [
            Tool(
                "get_reports",
                "Reports",
                tool_texts.GET_REPORTS,
                requests.ShowReports,
                ReportsResult,
                self.get_reports,
                Annotations(is_open_world=True),
            )
        ]

    async def get_reports(self, call: ToolCall[requests.ShowReports]) -> ToolResult:
        """Say who sends as a domain, and what could not be encrypted on the way to it."""
        account_id, page = call.caller.account_id, call.asked.page
        own = await self._reports.addresses(account_id)
        domains = await self._reports.domains(account_id)
        shown = tls = None
        if call.asked.domain is not None:
            domain = parse_domain(call.asked.domain, allow_special_use=True)
            call.expect(LONGEST_LOOK, "asking for names of those who send")
            span = (account_id, domain, DEFAULT_REPORT_DAYS, MOST_SENDERS, page)
            async with self._turns.held(account_id):
                shown = await self._reports.dmarc(*span)
            tls = await self._reports.tls(*span)
        return as_json_text(render_reports(own, domains, shown, tls, page, call.fence))
