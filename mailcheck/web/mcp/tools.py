"""What a tool is, what one call of it is, and the list of all of them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct, field

from mailcheck.api.mcp.untrusted import Fence
from mailcheck.api.requests.parsing import Request, arguments_schema
from mailcheck.api.shapes import JsonObject, JsonValue, Shape, as_json, dump_json, outline_of
from mailcheck.api.urls import PublicUrls
from mailcheck.core.accounts import Caller
from mailcheck.core.instants import Instant

R = TypeVar("R", bound=Request)


class ToolCall(Struct, Generic[R], frozen=True):
    """One admitted call: who calls, when, what is asked, and how its client reaches us.

    ``expect(seconds, what)`` says that the answer may take so long, for the
    client that wants to hear of progress; ``fence`` is this call's own.
    """

    caller: Caller
    received_at: Instant
    urls: PublicUrls
    request: R
    fence: Fence
    announce: Callable[[float, str], None]


class ToolResult(Struct, frozen=True):
    """What a tool gives back: the structured content, and the same as blocks of text."""

    structured: Shape
    texts: Sequence[str]


def as_json_text(structured: Shape) -> ToolResult:
    """Give a result whose text is its JSON: for clients that show a model nothing else."""
    return ToolResult(structured, [dump_json(structured).decode()])


class Annotations(Struct, frozen=True):
    """Hints for the client's user; a tool that only reads is neither of the other two."""

    is_read_only: bool = True
    is_destructive: bool = False
    is_idempotent: bool = True
    is_open_world: bool = False


class Tool(Struct, Generic[R], frozen=True):
    """A tool: what it takes is a request, its structured content a shape."""

    name: str
    title: str
    description: str
    request: type[R]
    output: type[Shape]
    handle: Callable[[ToolCall[R]], Awaitable[ToolResult]]
    annotations: Annotations = field(default_factory=Annotations)


def index_tools(tools: Sequence[Tool[Any]]) -> Mapping[str, Tool[Any]]:
    """Find tools by name, in the order in which they are listed."""
    return {tool.name: tool for tool in tools}


def describe_tool(tool: Tool[Any]) -> JsonObject:
    """Render a tool for the list of tools."""
    hints = tool.annotations
    # Of a tool that only reads the other two say nothing (MCP, ToolAnnotations).
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
    """Render the result of a call."""
    return {
        "content": [{"type": "text", "text": text} for text in result.texts],
        "structuredContent": as_json(result.structured),
        "isError": False,
    }


def render_tool_failure(sentence: str) -> dict[str, JsonValue]:
    """Render a call that failed in a way that the model can do something about."""
    return {"content": [{"type": "text", "text": sentence}], "isError": True}
