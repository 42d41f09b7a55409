"""The MCP App (SEP-1865): a static document that shows mails and reports, and its own tools.

The document has no data. It gets the ids from the result of the call that it belongs to, and calls
the tools here over its host. The results of the tools of the model are the same with it.
"""

from functools import cache
from importlib.resources import files
from typing import Any

from msgspec import Struct

from mailcheck.api.mcp.cards import (
    MessageCard,
    ReportCard,
    ReportCardArguments,
    render_message_card,
    render_report_card,
)
from mailcheck.api.mcp.messages import MessageArguments
from mailcheck.api.shapes import JsonObject, Shape
from mailcheck.core.identifiers import DeliverabilityTestId
from mailcheck.core.rights import Scope
from mailcheck.operations.deliverability.all_operations import DeliverabilityOperations
from mailcheck.operations.inbox.messages import ReadInbox
from mailcheck.operations.inbox.show_message import ShowMessage
from mailcheck.web.mcp.protocol_modes import APP_TYPE
from mailcheck.web.mcp.tools import CARD_URI, Annotations, Tool, ToolCall, ToolResult
from mailcheck.web.site import costs
from mailcheck.web.site.mail_frame import standalone_document

_SHOWN = "The card shows it."
"""The text of the results, for hosts that display texts of the tools of an App."""


@cache
def read_card() -> JsonObject:
    """Return the result of ``resources/read``. Its document needs no other origin."""
    text = files("mailcheck.web.mcp").joinpath("card.html").read_text("utf-8")
    content = {"uri": CARD_URI, "mimeType": APP_TYPE, "text": text}
    return {"contents": [{**content, "_meta": {"ui": {"prefersBorder": True}}}]}


class AppTools(Struct, frozen=True, eq=False):
    """The tools that only the App calls."""

    read: ReadInbox
    show: ShowMessage
    tests: DeliverabilityOperations
    domain: str

    def tools(self) -> list[Tool[Any]]:
        """List the tools."""
        return [
            Tool(
                "view_message",
                (Scope.INBOX_READ,),
                costs.PARTS,
                "Show a mail",
                "Get a mail for the card.",
                request=MessageArguments,
                output=MessageCard,
                handle=self.view_message,
                annotations=Annotations(is_open_world=True),
                is_of_app=True,
            ),
            Tool(
                "view_report",
                (Scope.TESTS,),
                costs.FREE,
                "Show a report",
                "Get the report of a test for the card.",
                request=ReportCardArguments,
                output=ReportCard,
                handle=self.view_report,
                annotations=Annotations(is_open_world=True),
                is_of_app=True,
            ),
        ]

    async def view_message(self, call: ToolCall[MessageArguments]) -> ToolResult:
        """Return a message with its sanitised HTML."""
        message_id = await self.read.id_of(call.caller, call.request.id)
        message = await self.read.message(call.caller.account_id, message_id)
        document = ""
        if message.content.html:
            safe = await self.show.html(message, allows_remote=False)
            document = standalone_document(safe, message.summary.header.subject)
        return _for_app(render_message_card(message, document, call.urls))

    async def view_report(self, call: ToolCall[ReportCardArguments]) -> ToolResult:
        """Return the report of a test, or its status."""
        test_id = DeliverabilityTestId(call.request.test_id)
        found = await self.tests.manage.one(call.caller.account_id, test_id)
        return _for_app(render_report_card(found, self.domain, call.urls))


def _for_app(structured: Shape) -> ToolResult:
    return ToolResult(structured, [_SHOWN])
