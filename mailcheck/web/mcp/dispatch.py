"""From a request to its result: the methods of both eras, and the calling of tools."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from msgspec import Struct

from mailcheck.api.mcp.untrusted import new_fence
from mailcheck.api.requests.reading import read_arguments
from mailcheck.api.shapes import JsonObject, dump_json
from mailcheck.api.urls import PublicUrls
from mailcheck.core.accounts import Caller
from mailcheck.core.errors import ExpectedFailure
from mailcheck.core.identifiers import RandomBytes
from mailcheck.core.instants import Instant
from mailcheck.core.version import installed_version
from mailcheck.web.mcp.eras import REVISIONS, Era, complete_result, negotiate
from mailcheck.web.mcp.failures import explain_failure
from mailcheck.web.mcp.json_rpc import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    Request,
    RpcError,
    shorten,
)
from mailcheck.web.mcp.streams import Channel
from mailcheck.web.mcp.tool_texts import INSTRUCTIONS
from mailcheck.web.mcp.tools import (
    Tool,
    ToolCall,
    describe_tool,
    index_tools,
    render_tool_failure,
    render_tool_result,
)

TOOL_CALL = "tools/call"

_CAPABILITIES: JsonObject = {"tools": {"listChanged": False}}


class Asked(Struct, frozen=True):
    """An admitted request: of whom, when, and how its client reaches us and is kept informed."""

    request: Request
    era: Era
    caller: Caller
    asked_at: Instant
    urls: PublicUrls
    channel: Channel


class Dispatcher:
    """Answers requests; a result that is the same for all is written once."""

    def __init__(
        self, tools: Sequence[Tool[Any]], random_bytes: RandomBytes, public_url: str
    ) -> None:
        self._tools = index_tools(tools)
        self._random_bytes = random_bytes
        self._server: JsonObject = {
            "name": "mailcheck",
            "title": "mailcheck inbox",
            "version": installed_version(),
            "websiteUrl": public_url,
        }

    @cached_property
    def _constant(self) -> Mapping[tuple[Era, str], bytes]:
        """Write what is the same for all as soon as one asks: many daemons have no agents."""
        listed: JsonObject = {"tools": [describe_tool(tool) for tool in self._tools.values()]}
        discovered: JsonObject = {
            "supportedVersions": list(REVISIONS),
            "capabilities": _CAPABILITIES,
            "instructions": INSTRUCTIONS,
        }
        return {
            (era, method): self._complete(result, era, method)
            for era, method, result in (
                (Era.HANDSHAKE, "ping", {}),
                (Era.HANDSHAKE, "tools/list", listed),
                (Era.STATELESS, "tools/list", listed),
                (Era.STATELESS, "server/discover", discovered),
            )
        }

    async def respond(self, asked: Asked) -> bytes:
        """Give the result of a request, as JSON.

        :raises RpcError: the protocol's own error.
        """
        request, era = asked.request, asked.era
        if request.method == TOOL_CALL:
            return self._complete(await self._call_tool(asked), era, TOOL_CALL)
        if request.method == "initialize" and era is Era.HANDSHAKE:
            return self._complete(self._initialize(request.params), era, request.method)
        constant = self._constant.get((era, request.method))
        if constant is None:
            raise RpcError(
                METHOD_NOT_FOUND,
                f"this server has tools only; it has no method {shorten(request.method)!r}",
            )
        if request.params.get("cursor") is not None:
            raise RpcError(INVALID_PARAMS, "cursor: the list of tools has one page")
        return constant

    def _initialize(self, params: Mapping[str, Any]) -> JsonObject:
        wanted = params.get("protocolVersion")
        if not isinstance(wanted, str):
            raise RpcError(INVALID_PARAMS, "protocolVersion is not a string")
        return {
            "protocolVersion": negotiate(wanted),
            "capabilities": _CAPABILITIES,
            "serverInfo": self._server,
            "instructions": INSTRUCTIONS,
        }

    async def _call_tool(self, asked: Asked) -> JsonObject:
        params = asked.request.params
        name, arguments = params.get("name"), params.get("arguments")
        if not isinstance(name, str):
            raise RpcError(INVALID_PARAMS, "name is not a string: which tool?")
        if arguments is not None and not isinstance(arguments, dict):
            raise RpcError(INVALID_PARAMS, "arguments is not an object")
        tool = self._tools.get(name)
        if tool is None:
            known = ", ".join(self._tools)
            raise RpcError(INVALID_PARAMS, f"Unknown tool: {shorten(name)}; there are: {known}")
        try:
            call = ToolCall(
                asked.caller,
                asked.asked_at,
                asked.urls,
                read_arguments(tool.request, arguments or {}),
                new_fence(self._random_bytes),
                asked.channel.expect,
            )
            return render_tool_result(await tool.handle(call))
        except ExpectedFailure as failure:
            return render_tool_failure(explain_failure(failure))

    def _complete(self, result: JsonObject, era: Era, method: str) -> bytes:
        return dump_json(complete_result(result, era, method, self._server))
