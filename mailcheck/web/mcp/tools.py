"""The types of tools and tool calls, and the list of tools."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct, field

from mailcheck.api.mcp.untrusted import Fence
from mailcheck.api.requests.parsing import Request, arguments_schema
from mailcheck.api.shapes import JsonObject, JsonValue, Shape, as_json, dump_json, outline_of
from mailcheck.api.urls import PublicUrls
from mailcheck.core.accounts import Caller
from mailcheck.core.instants import Instant
from mailcheck.core.rights import Scope

R = TypeVar("R", bound=Request)


class ToolCall(Struct, Generic[R], frozen=True):
    """One tool call within its limits, with its caller, time of arrival, arguments and client.

    ``announce(seconds, what)`` tells the client how long the answer may take, if the client
    requested progress. ``fence`` is unique to this call.
    """

    caller: Caller
    received_at: Instant
    urls: PublicUrls
    request: R
    fence: Fence
    announce: Callable[[float, str], None]


class ToolResult(Struct, frozen=True):
    """The result of a tool, as structured content and as blocks of text."""

    structured: Shape
    texts: Sequence[str]


def as_json_text(structured: Shape) -> ToolResult:
    """Return a result whose text is its JSON, for clients that show only text to the model."""
    return ToolResult(structured, [dump_json(structured).decode()])


class Annotations(Struct, frozen=True):
    """Hints for the client. ``is_destructive`` and ``is_idempotent`` apply to tools that write."""

    is_read_only: bool = True
    is_destructive: bool = False
    is_idempotent: bool = True
    is_open_world: bool = False


class Tool(Struct, Generic[R], frozen=True):
    """A tool, whose arguments are a request and whose structured content is a shape.

    A key needs all ``scopes``.
    """

    name: str
    scopes: Sequence[Scope]
    title: str
    description: str
    request: type[R]
    output: type[Shape]
    handle: Callable[[ToolCall[R]], Awaitable[ToolResult]]
    annotations: Annotations = field(default_factory=Annotations)


def index_tools(tools: Sequence[Tool[Any]]) -> Mapping[str, Tool[Any]]:
    """Return the tools by name, in the order of the list."""
    return {tool.name: tool for tool in tools}


def describe_tool(tool: Tool[Any]) -> JsonObject:
    """Render the entry of a tool in the list of tools."""
    hints = tool.annotations
    # The other two hints are meaningless for a tool that only reads (MCP, ToolAnnotations).
    of_writing: JsonObject = {}
    if not hints.is_read_only:
        of_writing = {
            "destructiveHint": hints.is_destructive,
            "idempotentHint": hints.is_idempotent,
        }
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": arguments_schema(tool.request),
        "outputSchema": outline_of(tool.output),
        "annotations": {
            "readOnlyHint": hints.is_read_only,
            **of_writing,
            "openWorldHint": hints.is_open_world,
        },
    }


def render_tool_result(result: ToolResult) -> dict[str, JsonValue]:
    """Render the result of a tool call."""
    return {
        "content": [{"type": "text", "text": text} for text in result.texts],
        "structuredContent": as_json(result.structured),
        "isError": False,
    }


def render_tool_failure(sentence: str) -> dict[str, JsonValue]:
    """Render the failure of a tool call that the model can react to."""
    return {"content": [{"type": "text", "text": sentence}], "isError": True}
