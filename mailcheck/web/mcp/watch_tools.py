"""The tools that show watches, on the operations that REST uses."""

from typing import Any

from mailcheck.api.mcp.watches import WatchesResult, WatchResult, render_one, render_watches
from mailcheck.api.requests.agents import GetWatch
from mailcheck.api.requests.fields import LARGEST_PAGE
from mailcheck.api.requests.reading import NoParameters
from mailcheck.operations.domains.watches.manage_watches import KeepWatches
from mailcheck.web.mcp import tool_texts
from mailcheck.web.mcp.tools import Tool, ToolCall, ToolResult, as_json_text


class WatchTools:
    """Arguments in, operation, shape and text out; no rule of its own."""

    def __init__(self, watches: KeepWatches) -> None:
        self._watches = watches

    def tools(self) -> list[Tool[Any]]:
        """List the tools."""
        return [
            Tool(
                "list_watches",
                "List watches",
                tool_texts.LIST_WATCHES,
                NoParameters,
                WatchesResult,
                self.list_watches,
            ),
            Tool(
                "get_watch",
                "Look at a watch",
                tool_texts.GET_WATCH,
                GetWatch,
                WatchResult,
                self.get_watch,
            ),
        ]

    async def list_watches(self, call: ToolCall[NoParameters]) -> ToolResult:
        """List the first watches of the account."""
        account_id = call.caller.account_id
        page = await self._watches.of_account(account_id, LARGEST_PAGE)
        return as_json_text(render_watches(page, await self._watches.open_alerts(account_id)))

    async def get_watch(self, call: ToolCall[GetWatch]) -> ToolResult:
        """Show a watch with its newest changes."""
        account_id, watch_id = call.caller.account_id, call.asked.watch_id
        shown = await self._watches.show(account_id, watch_id)
        _, history = await self._watches.history(account_id, watch_id)
        return as_json_text(render_one(shown, history, call.asked_at))
