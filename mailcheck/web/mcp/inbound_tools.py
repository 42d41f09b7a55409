"""The MCP tools for mail into applications."""

from typing import Any

from msgspec import Struct

from mailcheck.api.mcp.inbound import (
    SHOWN_ATTEMPTS,
    GetInboundArguments,
    InboundResult,
    SendInboundArguments,
    render_inbound,
)
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.identifiers import AccountId
from mailcheck.core.inbound import InboundMailId, InboundRouteId
from mailcheck.core.rights import Scope
from mailcheck.operations.inbound.all_operations import InboundOperations
from mailcheck.store.inbound_store import InboundFilter
from mailcheck.web.mcp.tools import Annotations, Tool, ToolCall, ToolResult, as_fenced_json
from mailcheck.web.site import costs


class InboundTools(Struct, frozen=True, eq=False):
    """Tools that parse arguments, call an operation and render its result."""

    operations: InboundOperations

    def tools(self) -> list[Tool[Any]]:
        """List the tools."""
        scopes = (Scope.WEBHOOKS, Scope.INBOX_READ)
        return [
            Tool(
                "send_inbound",
                scopes,
                costs.INBOUND_MAIL,
                "Send a mail to the application",
                "Send a mail to the application under test as its mail provider would, over an "
                "inbound route: written, ready-made, or a reply to a message. Returns what the "
                "application answered.",
                request=SendInboundArguments,
                output=InboundResult,
                handle=self.send,
                annotations=Annotations(
                    is_read_only=False, is_idempotent=False, is_open_world=True
                ),
            ),
            Tool(
                "get_inbound",
                scopes,
                costs.FREE,
                "Get the application's answers",
                "Get the newest answers of the application to mails of inbound routes, and "
                "retries.",
                request=GetInboundArguments,
                output=InboundResult,
                handle=self.show,
                annotations=Annotations(is_open_world=True),
            ),
        ]

    async def send(self, call: ToolCall[SendInboundArguments]) -> ToolResult:
        """Send a mail, and wait for the application."""
        request, account_id = call.request, call.caller.account_id
        route_id = request.route or await self._only_route(account_id)
        sent = await self.operations.send.send(account_id, route_id, request.letter)
        wanted = InboundFilter(mail_id=sent.mail_id)
        seconds = call.left_of(request.wait)
        call.announce(seconds, "waiting for the application")
        page = await self.operations.read.wait(call.caller, wanted, SHOWN_ATTEMPTS, seconds)
        return as_fenced_json(render_inbound(page, sent.mail_id), call.fence)

    async def show(self, call: ToolCall[GetInboundArguments]) -> ToolResult:
        """Return the newest attempts."""
        request = call.request
        mail_id = None if request.mail_id is None else InboundMailId(request.mail_id)
        route_id = None if request.route is None else InboundRouteId(request.route)
        page = await self.operations.read.attempts(
            call.caller.account_id, InboundFilter(route_id, mail_id), SHOWN_ATTEMPTS
        )
        return as_fenced_json(render_inbound(page, mail_id), call.fence)

    async def _only_route(self, account_id: AccountId) -> InboundRouteId:
        routes = await self.operations.routes.of_account(account_id)
        if len(routes) == 1:
            return routes[0].id
        if not routes:
            problem = "there is no inbound route: make one with POST /inbound/routes or on a page"
        else:
            named = "; ".join(f"{route.id} ({route.format}, {route.to})" for route in routes[:10])
            problem = f"send the route, one of {named}"
        raise InvalidParameter("route", problem)
