"""The seven tools of the developer inbox (SPEC.md section 4, DECISIONS.md section 5).

The limits of what they take are those of REST.
"""

from mailcheck.api.inbox.overview import InboxAddress, Share, render_address, render_share
from mailcheck.api.mcp import inbox as results
from mailcheck.api.mcp.arguments import arguments_schema
from mailcheck.api.mcp.checks import ChecksInShort, render_checks_in_short
from mailcheck.api.mcp.inbox import (
    render_arrival,
    render_arrivals,
    render_disturbance,
    render_extraction,
    render_message_list,
    render_silence,
    render_wait_in_vain,
    render_whole_message,
    shorten,
)
from mailcheck.api.mcp.texts import (
    describe_arrival,
    describe_arrivals,
    describe_disturbance,
    describe_extraction,
    describe_list,
    describe_message,
    describe_silence,
    describe_wait_in_vain,
)
from mailcheck.api.parameters import MAX_TEXT
from mailcheck.api.schemas import (
    Schema,
    array_of,
    boolean,
    number,
    text,
    whole_number,
    without_description,
)
from mailcheck.api.shapes import ABSENT, Absent
from mailcheck.core.addresses import MAX_TAG
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import MessageId, new_short_id
from mailcheck.core.instants import SECOND
from mailcheck.operations.concurrency import run_all
from mailcheck.operations.inbox.authenticate_message import DEADLINE
from mailcheck.operations.inbox.explain_wait import TimedOut
from mailcheck.operations.inbox.offered import InboxOperations
from mailcheck.operations.inbox.wait_for_message import Quiet
from mailcheck.operations.ranges import (
    DEFAULT_SILENCE,
    DEFAULT_WAIT,
    LARGEST_PAGE,
    LAST_PAGE,
    LONGEST_WAIT,
    MOST_WAITED_FOR,
    SHORTEST_WAIT,
)
from mailcheck.ports.clocks import TimeAndChance
from mailcheck.web.mcp import tool_texts
from mailcheck.web.mcp.message_views import MessageViews
from mailcheck.web.mcp.tools import Annotations, Tool, ToolCall, ToolResult, as_json_text

DEFAULT_PAGE = 20
"""Messages of a list: fewer than REST's, since a model reads every one."""


def _needle(description: str) -> Schema:
    return {**text(description), "maxLength": MAX_TEXT}


_TAG: Schema = {
    **text("only mail to this +tag, without case; an empty string means untagged mail"),
    "maxLength": MAX_TAG,
}
_FILTERS: dict[str, Schema] = {
    "tag": _TAG,
    "after": text("cursor from an earlier result: only mail that arrived after it"),
    "since": text("ISO 8601 date and time: only mail received then or later"),
    "from": _needle("only mail whose sender's name or address contains this, without case"),
    "subject": _needle("only mail whose subject contains this, without case"),
    "to": _needle("only mail to exactly this address, without case"),
    "tagPrefix": {**text("only mail to +tags that begin with this"), "maxLength": MAX_TAG},
    "text": _needle("only mail whose text contains this, without case"),
    "header": array_of(text(), "only mail with these header fields, each as Name:part of value"),
    "hasAttachment": boolean("only mail with an attachment, or without"),
}

NEW_ADDRESS_INPUT = arguments_schema(
    {
        "tag": {
            **text("use this +tag instead of a unique one (letters, digits, dots, dashes)"),
            "maxLength": MAX_TAG,
        }
    }
)

WAIT_INPUT = arguments_schema(
    {
        **_FILTERS,
        "timeout": number(
            f"seconds to wait; answered by 55 at the latest; {DEFAULT_SILENCE:g} with none",
            minimum=SHORTEST_WAIT,
            maximum=LONGEST_WAIT,
            default=DEFAULT_WAIT,
        ),
        "count": whole_number(
            "wait for so many mails and return messages", minimum=1, maximum=MOST_WAITED_FOR
        ),
        "none": boolean("true: expect that no such mail comes within timeout"),
    }
)

LIST_INPUT = arguments_schema(
    {
        # What they mean stands with the tool that waits.
        **{name: without_description(schema) for name, schema in _FILTERS.items()},
        "q": _needle(
            'a search: words and "phrases", which must all be there, and terms like from:shop '
            "subject:welcome text:code has:code has:attachment newer:2h older:2026-11-21 "
            "larger:100k is:unread"
        ),
        "limit": whole_number(
            "messages on a page", minimum=1, maximum=LARGEST_PAGE, default=DEFAULT_PAGE
        ),
        "page": whole_number("counts from 1", minimum=1, maximum=LAST_PAGE, default=1),
    }
)

GET_MESSAGE_INPUT = arguments_schema(
    {
        "id": _needle("id of a message"),
        "full": boolean("true: long text, HTML, links and headers too; a long mail is 60 KB"),
        "checks": boolean("true: also HTML that mail programs or screen readers can't read"),
    },
    required=("id",),
)

MESSAGE_INPUT = arguments_schema({"id": _needle("id of a message")}, required=("id",))


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
        time_and_chance: TimeAndChance,
    ) -> None:
        self._read = operations.read
        self._wait = operations.wait
        self._delete = operations.delete
        self._authenticate = operations.authenticate
        self._check = operations.check
        self._views = views
        self._domain = domain
        self._now = time_and_chance.now
        self._random_bytes = time_and_chance.random_bytes

    def tools(self) -> list[Tool]:
        """List the tools, in the order in which an agent needs them."""
        return [*self._tools_that_find(), *self._tools_for_one()]

    def _tools_that_find(self) -> list[Tool]:
        return [
            Tool(
                "new_address",
                "New mail address",
                tool_texts.NEW_ADDRESS,
                NEW_ADDRESS_INPUT,
                InboxAddress,
                self.new_address,
            ),
            Tool(
                "wait_for_message",
                "Wait for a mail",
                tool_texts.WAIT_FOR_MESSAGE,
                WAIT_INPUT,
                results.WaitResult,
                self.wait_for_message,
                _FROM_OUTSIDE,
            ),
            Tool(
                "list_messages",
                "List received mail",
                tool_texts.LIST_MESSAGES,
                LIST_INPUT,
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
                GET_MESSAGE_INPUT,
                results.MessageResult,
                self.get_message,
                _FROM_OUTSIDE,
            ),
            Tool(
                "extract",
                "Extract codes and links",
                tool_texts.EXTRACT,
                MESSAGE_INPUT,
                results.ExtractResult,
                self.extract,
                _FROM_OUTSIDE,
            ),
            Tool(
                "share_link",
                "Get a public link",
                tool_texts.SHARE_LINK,
                MESSAGE_INPUT,
                Share,
                self.share_link,
            ),
            Tool(
                "delete_message",
                "Delete a mail",
                tool_texts.DELETE_MESSAGE,
                MESSAGE_INPUT,
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
        """Wait for a message that matches, for several, or for none."""
        wanted = call.arguments.wait_filter()
        is_many = call.arguments.text("count") is not None
        is_none = call.arguments.flag("none")
        if is_many and is_none:
            raise InvalidParameter("none", "none and count exclude each other: send one of them")
        default = DEFAULT_SILENCE if is_none else DEFAULT_WAIT
        asked = call.arguments.seconds("timeout", SHORTEST_WAIT, LONGEST_WAIT, default)
        timeout = min(asked, ANSWERED_BY)
        if is_none:
            return await self._wait_for_none(call, wanted, timeout)
        call.expect(timeout, "waiting for a matching message")
        if is_many:
            return await self._wait_for_many(call, wanted, timeout)
        outcome = await self._wait.wait(call.caller, wanted, timeout)
        if isinstance(outcome, TimedOut):
            return _in_vain(outcome, call)
        view = await self._views.of(outcome)
        waited = max(0, self._now() - call.asked_at) / SECOND
        return ToolResult(
            render_arrival(outcome, view, waited, call.fence, call.urls),
            describe_arrival(outcome, view, waited, call.fence),
        )

    async def _wait_for_many(
        self, call: ToolCall, wanted: MessageFilter, timeout: float
    ) -> ToolResult:
        count = call.arguments.whole_number("count", 1, MOST_WAITED_FOR, 1)
        outcome = await self._wait.wait_for_many(call.caller, wanted, timeout, count)
        if isinstance(outcome, TimedOut):
            return _in_vain(outcome, call)
        waited = max(0, self._now() - call.asked_at) / SECOND
        return ToolResult(
            render_arrivals(outcome, waited, call.fence, call.urls),
            describe_arrivals(outcome, waited, call.fence),
        )

    async def _wait_for_none(
        self, call: ToolCall, wanted: MessageFilter, timeout: float
    ) -> ToolResult:
        call.expect(timeout, "seeing that no matching message comes")
        outcome = await self._wait.wait_for_none(call.caller, wanted, timeout)
        if isinstance(outcome, Quiet):
            return ToolResult(render_silence(outcome, call.fence), [describe_silence(outcome)])
        message = outcome.message
        view = None if message is None else await self._views.of(message)
        return ToolResult(
            render_disturbance(outcome, view, call.fence, call.urls),
            describe_disturbance(outcome, view, call.fence),
        )

    async def list_messages(self, call: ToolCall) -> ToolResult:
        """List messages."""
        wanted = call.arguments.message_filter(call.asked_at)
        limit = call.arguments.whole_number("limit", 1, LARGEST_PAGE, DEFAULT_PAGE)
        page = call.arguments.whole_number("page", 1, LAST_PAGE, 1)
        messages = await self._read.page(call.caller.account_id, wanted, limit, page)
        return ToolResult(
            render_message_list(messages, call.fence, call.urls),
            describe_list(messages, call.fence),
        )

    async def get_message(self, call: ToolCall) -> ToolResult:
        """Read a message; a long one in short, unless all of it is asked for."""
        is_full = call.arguments.flag("full")
        message = await self._read.message(call.caller.account_id, _message_id(call))
        call.expect(DEADLINE, "asking whether SPF, DKIM and DMARC vouch for the sender")
        view, authentication = await run_all(
            self._views.of(message), self._authenticate.of(message)
        )
        checks: ChecksInShort | Absent = ABSENT
        if call.arguments.flag("checks"):
            checks = render_checks_in_short(await self._check.of_message(message))
        whole = render_whole_message(message, view, authentication, call.fence, call.urls, checks)
        if not is_full:
            whole, view = shorten(whole, view, call.fence)
        texts = describe_message(message, view, authentication, call.fence, checks)
        return ToolResult(whole, texts)

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


def _in_vain(outcome: TimedOut, call: ToolCall) -> ToolResult:
    return ToolResult(
        render_wait_in_vain(outcome, call.fence), describe_wait_in_vain(outcome, call.fence)
    )


def _message_id(call: ToolCall) -> MessageId:
    return MessageId(call.arguments.text("id") or "")
