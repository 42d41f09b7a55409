"""The MCP tools for deliverability tests. They use the same operations as REST."""

from typing import Any

from msgspec import Struct

from mailcheck.api.mcp.deliverability import (
    GenerateResult,
    LongTestWaitArguments,
    ReportResult,
    WaitForTestArguments,
    render_generated,
    render_test_wait,
)
from mailcheck.api.requests.parsing import NoParameters
from mailcheck.core.rights import Scope
from mailcheck.operations.deliverability.all_operations import DeliverabilityOperations
from mailcheck.web.mcp.tools import (
    Annotations,
    LongWait,
    Tool,
    ToolCall,
    ToolResult,
    as_fenced_json,
    as_json_text,
)
from mailcheck.web.site import costs


class DeliverabilityTools(Struct, frozen=True, eq=False):
    """Tools that parse arguments, call an operation and render its result."""

    operations: DeliverabilityOperations
    domain: str

    def tools(self) -> list[Tool[Any]]:
        """List the tools."""
        return [
            Tool(
                "generate_test",
                (Scope.TESTS,),
                costs.SMALL,
                "New deliverability test",
                "Create a deliverability test: an address that accepts one mail within an hour. "
                "Have the server under test send a real mail to it, with its usual From, then "
                "call wait_for_test.",
                request=NoParameters,
                output=GenerateResult,
                handle=self.generate_test,
                annotations=Annotations(is_read_only=False, is_idempotent=False),
            ),
            Tool(
                "wait_for_test",
                (Scope.TESTS,),
                costs.SMALL,
                "Wait for a deliverability report",
                "Wait for the mail of a deliverability test and its score from 0 to 10, with the "
                "checks that do not pass and each deduction with its fix. timedOut is no error: "
                "hint names the next step; call again with the same testId. Answers within 55 s. "
                "Undetermined is not no.",
                request=WaitForTestArguments,
                output=ReportResult,
                handle=self.wait_for_test,
                annotations=Annotations(is_open_world=True),
                has_card=True,
                long_wait=LongWait(
                    LongTestWaitArguments,
                    lambda request: request.timeout,
                    lambda found: found.timed_out,
                ),
            ),
        ]

    async def generate_test(self, call: ToolCall[NoParameters]) -> ToolResult:
        """Create a test."""
        test = await self.operations.manage.create(call.caller.account_id)
        return as_json_text(render_generated(test, self.domain))

    async def wait_for_test(self, call: ToolCall[WaitForTestArguments]) -> ToolResult:
        """Wait for the end of a test."""
        test_id, timeout = call.request.test_id, call.left_of(call.request.timeout)
        call.announce(timeout, "waiting for the mail and its report")
        found = await self.operations.wait.wait(call.caller, test_id, timeout)
        return as_fenced_json(render_test_wait(found, self.domain, call.urls), call.fence)
