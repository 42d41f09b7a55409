"""The tools for deliverability tests, on the operations that REST uses."""

from mailcheck.api.mcp.arguments import arguments_schema
from mailcheck.api.mcp.deliverability import (
    GenerateResult,
    ReportResult,
    describe_test_wait,
    render_generated,
    render_test_wait,
)
from mailcheck.api.schemas import number, text
from mailcheck.core.instants import SECOND
from mailcheck.operations.deliverability.offered import DeliverabilityOperations
from mailcheck.operations.ranges import DEFAULT_WAIT, LONGEST_WAIT, SHORTEST_WAIT
from mailcheck.ports.clocks import Now
from mailcheck.web.mcp import tool_texts
from mailcheck.web.mcp.inbox_tools import ANSWERED_BY
from mailcheck.web.mcp.tools import Annotations, Tool, ToolCall, ToolResult, as_json_text

_GENERATE_INPUT = arguments_schema({})

_WAIT_INPUT = arguments_schema(
    {
        "testId": text("as generate_test gave it"),
        "timeout": number(
            "seconds to wait; answered by 55 at the latest",
            minimum=SHORTEST_WAIT,
            maximum=LONGEST_WAIT,
            default=DEFAULT_WAIT,
        ),
    },
    required=("testId",),
)


class DeliverabilityTools:
    """Arguments in, operation, shape and text out; no rule of its own."""

    def __init__(self, operations: DeliverabilityOperations, domain: str, now: Now) -> None:
        self._operations = operations
        self._domain = domain
        self._now = now

    def tools(self) -> list[Tool]:
        """List the tools."""
        return [
            Tool(
                "generate_test",
                "New deliverability test",
                tool_texts.GENERATE_TEST,
                _GENERATE_INPUT,
                GenerateResult,
                self.generate_test,
                Annotations(is_read_only=False, is_idempotent=False),
            ),
            Tool(
                "wait_for_test",
                "Wait for a deliverability report",
                tool_texts.WAIT_FOR_TEST,
                _WAIT_INPUT,
                ReportResult,
                self.wait_for_test,
                Annotations(is_open_world=True),
            ),
        ]

    async def generate_test(self, call: ToolCall) -> ToolResult:
        """Make a test."""
        test = await self._operations.generate.generate(call.caller.account_id)
        return as_json_text(render_generated(test, self._domain))

    async def wait_for_test(self, call: ToolCall) -> ToolResult:
        """Wait for the end of a test."""
        test_id = call.arguments.required("testId")
        asked = call.arguments.seconds("timeout", SHORTEST_WAIT, LONGEST_WAIT, DEFAULT_WAIT)
        timeout = min(asked, ANSWERED_BY)
        call.expect(timeout, "waiting for the mail and its report")
        found = await self._operations.wait.wait(call.caller, test_id, timeout)
        waited = max(0, self._now() - call.asked_at) / SECOND
        structured = render_test_wait(found, waited, self._domain, call.fence, call.urls)
        return ToolResult(structured, describe_test_wait(structured, call.fence))
