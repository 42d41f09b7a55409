"""The types of tools and tool calls, and the list of tools."""

from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from mailcheck.api.mcp.texts import describe
from mailcheck.api.mcp.untrusted import PUBLISHED_FIELDS, Fence, Summarized, fence_published
from mailcheck.api.requests.parsing import Request, arguments_schema
from mailcheck.api.shapes import JsonObject, JsonValue, Shape, as_json, dump_json, outline_of
from mailcheck.api.urls import PublicUrls
from mailcheck.core.accounts import Caller
from mailcheck.core.instants import Instant
from mailcheck.core.rights import Scope
from mailcheck.web.mcp.protocol_modes import Extension, Extensions
from mailcheck.web.site.costs import Cost

R = TypeVar("R", bound=Request)

ANSWERED_BY = 54.0
"""Seconds after which a wait answers. Clients time out at 60; the descriptions promise 55."""

CARD_URI = "ui://mailcheck/card"
"""URI of the document that the MCP App consists of."""


class ToolCall(Struct, Generic[R], frozen=True):
    """One tool call within its limits, with its caller, time of arrival, arguments and client.

    ``announce(seconds, what)`` tells the client how long the answer may take, if the client
    requested progress. ``fence`` is unique to this call. A poll of a task continues a call that has
    lasted ``elapsed`` seconds already. ``at_most`` is the maximum number of seconds of this wait.
    """

    caller: Caller
    received_at: Instant
    urls: PublicUrls
    request: R
    fence: Fence
    announce: Callable[[float, str], None]
    elapsed: float = 0.0
    at_most: float = ANSWERED_BY

    def left_of(self, seconds: float) -> float:
        """Return how many of the seconds of the whole wait this call may wait."""
        return max(0.0, min(seconds - self.elapsed, self.at_most))


class Image(Struct, frozen=True):
    """An image in the result of a tool."""

    data: bytes
    media_type: str


class ToolResult(Struct, frozen=True):
    """The result of a tool, as structured content and as blocks of text and images."""

    structured: Shape
    texts: Sequence[str]
    images: Sequence[Image] = ()


def as_json_text(structured: Shape) -> ToolResult:
    """Return a result whose text is its JSON, for clients that show only text to the model."""
    return ToolResult(structured, [dump_json(structured).decode()])


def as_fenced_json(structured: Summarized, fence: Fence) -> ToolResult:
    """Return a result in which third parties wrote texts: its JSON is in the fence."""
    notice = fence.explain(PUBLISHED_FIELDS)
    fenced = replace(fence_published(structured, fence), untrusted=notice)
    return ToolResult(
        fenced, [describe(f"{structured.summary}.", structured, fence, apart=("summary",))]
    )


class Annotations(Struct, frozen=True):
    """Hints for the client. ``is_destructive`` and ``is_idempotent`` apply to tools that write."""

    is_read_only: bool = True
    is_destructive: bool = False
    is_idempotent: bool = True
    is_open_world: bool = False


class LongWait(Struct, Generic[R], frozen=True):
    """How a tool waits as a task: with which arguments, for how long, and whether it goes on."""

    request: type[R]
    seconds_of: Callable[[R], float]
    goes_on: Callable[[Any], bool]


class Tool(Struct, Generic[R], frozen=True):
    """A tool, whose arguments are a request and whose structured content is a shape.

    A key needs all ``scopes``. ``cost`` is the maximum cost of one call. ``has_card``: whether the
    MCP App shows its results. ``is_of_app``: whether only the App may call it, never the model.
    ``long_wait`` is for tools that clients of tasks may ask to wait longer than a call may last.
    """

    name: str
    scopes: Sequence[Scope]
    cost: Cost
    title: str
    description: str
    request: type[R]
    output: type[Shape]
    handle: Callable[[ToolCall[R]], Awaitable[ToolResult]]
    annotations: Annotations = field(default_factory=Annotations)
    has_card: bool = False
    is_of_app: bool = False
    long_wait: LongWait[R] | None = None

    def request_for(self, extensions: Extensions) -> type[R]:
        """Return the arguments of a client with these extensions."""
        if self.long_wait is None or Extension.TASKS not in extensions:
            return self.request
        return self.long_wait.request

    def is_offered(self, extensions: Extensions) -> bool:
        """Return whether a client with these extensions may use the tool.

        Its host hides the tools of an App from the model. Other clients would show them to it.
        """
        return not self.is_of_app or Extension.UI in extensions


def index_tools(tools: Sequence[Tool[Any]]) -> Mapping[str, Tool[Any]]:
    """Return the tools by name, in the order of the list."""
    return {tool.name: tool for tool in tools}


def describe_tool(tool: Tool[Any], extensions: Extensions) -> JsonObject:
    """Render the entry of a tool in the list of tools for clients with these extensions."""
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
        "inputSchema": arguments_schema(tool.request_for(extensions)),
        "outputSchema": outline_of(tool.output),
        "annotations": {
            "readOnlyHint": hints.is_read_only,
            **of_writing,
            **({} if hints.is_open_world else {"openWorldHint": False}),  # true by default
        },
        **(_describe_app(tool) if Extension.UI in extensions else {}),
    }


def _describe_app(tool: Tool[Any]) -> JsonObject:
    if tool.is_of_app:
        return {"_meta": {"ui": {"visibility": ["app"]}}}
    return {"_meta": {"ui": {"resourceUri": CARD_URI}}} if tool.has_card else {}


def render_tool_result(result: ToolResult) -> dict[str, JsonValue]:
    """Render the result of a tool call."""
    texts: list[JsonObject] = [{"type": "text", "text": text} for text in result.texts]
    images: list[JsonObject] = [
        {"type": "image", "data": b64encode(image.data).decode(), "mimeType": image.media_type}
        for image in result.images
    ]
    return {
        "content": [*texts, *images],
        "structuredContent": as_json(result.structured),
        "isError": False,
    }


def render_tool_failure(sentence: str) -> dict[str, JsonValue]:
    """Render the failure of a tool call that the model can react to."""
    return {"content": [{"type": "text", "text": sentence}], "isError": True}
