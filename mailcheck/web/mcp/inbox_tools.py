"""The seven tools of the developer inbox (SPEC.md section 4, DECISIONS.md section 5)."""

from mailcheck.core.identifiers import MessageId, RandomBytes, new_short_id
from mailcheck.core.instants import SECOND
from mailcheck.operations.fan_out import run_all
from mailcheck.operations.inbox.authenticate_message import DEADLINE
from mailcheck.operations.inbox.offered import InboxOperations
from mailcheck.operations.inbox.wait_for_message import TimedOut
from mailcheck.operations.ports import Now
from mailcheck.operations.ranges import (
    DEFAULT_WAIT,
    LARGEST_PAGE,
    LAST_PAGE,
    LONGEST_WAIT,
    SHORTEST_WAIT,
)
from mailcheck.web.mcp import inbox_inputs, tool_texts
from mailcheck.web.mcp.message_views import MessageViews
from mailcheck.web.mcp.tools import Annotations, Tool, ToolCall, ToolResult, as_json_text
from mailcheck.wire.inbox.overview import InboxAddress, Share, render_address, render_share
from mailcheck.wire.mcp import inbox as results
from mailcheck.wire.mcp.inbox import (
    render_arrival,
    render_extraction,
    render_message_list,
    render_wait_in_vain,
    render_whole_message,
)
from mailcheck.wire.mcp.texts import (
    describe_arrival,
    describe_extraction,
    describe_list,
    describe_message,
    describe_wait_in_vain,
)

ANSWERED_BY = 54.0
"""Seconds after which a wait answers: clients give up at 60, and 55 is promised."""

_FROM_OUTSIDE = Annotations(is_open_world=True)


class InboxTools:
    """Arguments in, operation, shape and text out; no rule of its own."""

    def __init__(
        self,
        operations: InboxOperations,
        views: MessageViews,
        domain: str,
        now: Now,
        random_bytes: RandomBytes,
    ) -> None:
        self._read = operations.read
        self._wait = operations.wait
        self._delete = operations.delete
        self._authenticate = operations.authenticate
        self._views = views
        self._domain = domain
        self._now = now
        self._random_bytes = random_bytes

    def tools(self) -> list[Tool]:
        """List the tools, in the order in which an agent needs them."""
        return [*self._tools_that_find(), *self._tools_for_one()]

    def _tools_that_find(self) -> list[Tool]:
        return [
            Tool(
                "new_address",
                "New mail address",
                tool_texts.NEW_ADDRESS,
                inbox_inputs.NEW_ADDRESS_INPUT,
                InboxAddress,
                self.new_address,
            ),
            Tool(
                "wait_for_message",
                "Wait for a mail",
                tool_texts.WAIT_FOR_MESSAGE,
                inbox_inputs.WAIT_INPUT,
                results.WaitResult,
                self.wait_for_message,
                _FROM_OUTSIDE,
            ),
            Tool(
                "list_messages",
                "List received mail",
                tool_texts.LIST_MESSAGES,
                inbox_inputs.LIST_INPUT,
                results.ListResult,
                self.list_messages,
                _FROM_OUTSIDE,
            ),
        ]

    def _tools_for_one(self) -> list[Tool]:
        return [
            Tool(
                "get_message",
                "Read a mail",
                tool_texts.GET_MESSAGE,
                inbox_inputs.MESSAGE_INPUT,
                results.MessageResult,
                self.get_message,
                _FROM_OUTSIDE,
            ),
            Tool(
                "extract",
                "Extract codes and links",
                tool_texts.EXTRACT,
                inbox_inputs.MESSAGE_INPUT,
                results.ExtractResult,
                self.extract,
                _FROM_OUTSIDE,
            ),
            Tool(
                "share_link",
                "Get a public link",
                tool_texts.SHARE_LINK,
                inbox_inputs.MESSAGE_INPUT,
                Share,
                self.share_link,
            ),
            Tool(
                "delete_message",
                "Delete a mail",
                tool_texts.DELETE_MESSAGE,
                inbox_inputs.MESSAGE_INPUT,
                results.DeleteResult,
                self.delete_message,
                Annotations(is_read_only=False, is_destructive=True),
            ),
        ]

    async def new_address(self, call: ToolCall) -> ToolResult:
        """Give an address of the inbox, and its cursor now."""
        tag = call.arguments.tag()
        if tag is None:
            tag = new_short_id(self._random_bytes)
        inbox = await self._read.state(call.caller.account_id)
        return as_json_text(render_address(inbox, tag, self._domain))

    async def wait_for_message(self, call: ToolCall) -> ToolResult:
        """Wait for a message that matches."""
        wanted = call.arguments.message_filter(call.asked_at)
        asked = call.arguments.seconds("timeout", SHORTEST_WAIT, LONGEST_WAIT, DEFAULT_WAIT)
        timeout = min(asked, ANSWERED_BY)
        call.expect(timeout, "waiting for a matching message")
        outcome = await self._wait.wait(call.caller, wanted, timeout)
        if isinstance(outcome, TimedOut):
            return ToolResult(
                render_wait_in_vain(outcome, call.fence),
                describe_wait_in_vain(outcome, call.fence),
            )
        view = await self._views.of(outcome)
        waited = max(0, self._now() - call.asked_at) / SECOND
        return ToolResult(
            render_arrival(outcome, view, waited, call.fence, call.urls),
            describe_arrival(outcome, view, waited, call.fence),
        )

    async def list_messages(self, call: ToolCall) -> ToolResult:
        """List messages."""
        wanted = call.arguments.message_filter(call.asked_at)
        limit = call.arguments.whole_number("limit", 1, LARGEST_PAGE, inbox_inputs.DEFAULT_PAGE)
        page = call.arguments.whole_number("page", 1, LAST_PAGE, 1)
        messages = await self._read.page(call.caller.account_id, wanted, limit, page)
        return ToolResult(
            render_message_list(messages, call.fence, call.urls),
            describe_list(messages, call.fence),
        )

    async def get_message(self, call: ToolCall) -> ToolResult:
        """Read a message."""
        message = await self._read.message(call.caller.account_id, _message_id(call))
        call.expect(DEADLINE, "asking whether SPF, DKIM and DMARC vouch for the sender")
        view, authentication = await run_all(
            self._views.of(message), self._authenticate.of(message)
        )
        return ToolResult(
            render_whole_message(message, view, authentication, call.fence, call.urls),
            describe_message(message, view, authentication, call.fence),
        )

    async def extract(self, call: ToolCall) -> ToolResult:
        """Give codes and links of a message, and why."""
        message = await self._read.message(call.caller.account_id, _message_id(call))
        view = await self._views.of(message)
        return ToolResult(
            render_extraction(message, view, call.fence),
            describe_extraction(message, view, call.fence),
        )

    async def share_link(self, call: ToolCall) -> ToolResult:
        """Give the share link that a message has; one handed out before stays good."""
        message = await self._read.message(call.caller.account_id, _message_id(call))
        return as_json_text(render_share(message, call.urls))

    async def delete_message(self, call: ToolCall) -> ToolResult:
        """Delete a message."""
        message_id = _message_id(call)
        await self._delete.one(call.caller.account_id, message_id)
        return as_json_text(results.DeleteResult(message_id, deleted=True))


def _message_id(call: ToolCall) -> MessageId:
    return MessageId(call.arguments.text("id") or "")
