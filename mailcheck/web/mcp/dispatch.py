"""Dispatch of JSON-RPC requests: the methods of MCP, tool calls, and their failures."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.api.mcp.untrusted import new_fence
from mailcheck.api.requests.fields import LONGEST_WAIT
from mailcheck.api.requests.parsing import read_arguments
from mailcheck.api.shapes import JsonObject, dump_json
from mailcheck.api.urls import PublicUrls
from mailcheck.core.accounts import Caller
from mailcheck.core.errors import ExpectedFailure, InvalidParameter, WaitInterrupted
from mailcheck.core.identifiers import RandomBytes
from mailcheck.core.instants import SECOND, Instant
from mailcheck.core.memory.recent import LruCache
from mailcheck.core.version import installed_version
from mailcheck.web.mcp.app import read_card
from mailcheck.web.mcp.json_rpc import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    Request,
    RpcError,
    shorten,
)
from mailcheck.web.mcp.presets import choose_tools, write_instructions
from mailcheck.web.mcp.protocol_modes import (
    REVISIONS,
    Extension,
    Extensions,
    ProtocolMode,
    complete_result,
    negotiate,
)
from mailcheck.web.mcp.tasks import (
    MAX_ARGUMENTS,
    POLL_SECONDS,
    Task,
    Tasks,
    TaskStatus,
    render_task,
)
from mailcheck.web.mcp.tools import (
    CARD_URI,
    R,
    Tool,
    ToolCall,
    describe_tool,
    index_tools,
    render_tool_failure,
    render_tool_result,
)
from mailcheck.web.mcp.transport import ProgressChannel
from mailcheck.web.site.failures import (
    INSUFFICIENT_SCOPE,
    SERVICE_UNAVAILABLE,
    TOO_MANY_REQUESTS,
    UNAUTHORIZED,
    problem_of,
)

FOR_PROGRAMS = frozenset({UNAUTHORIZED, TOO_MANY_REQUESTS})
"""Statuses that the client's program handles, even if a tool caused them: it signs in or pauses."""


def explain_failure(failure: ExpectedFailure) -> str:
    """Return the message for the model, which can correct or repeat its call.

    :raises RpcError: the program must handle the failure, not the model.
    """
    problem = problem_of(failure)
    if problem.status in FOR_PROGRAMS:
        raise to_rpc_error(failure) from failure
    text = problem.sentence
    if problem.retry_after is not None:
        text += f"; repeat the call in {problem.retry_after} seconds"
    if isinstance(failure, WaitInterrupted) and failure.cursor is not None:
        text += f" and pass after={failure.cursor}"
    return text


def to_rpc_error(failure: ExpectedFailure) -> RpcError:
    """Return the error with the HTTP status of a failure."""
    problem = problem_of(failure)
    return RpcError(
        problem.status,
        problem.sentence,
        retry_after=problem.retry_after,
        reference=problem.reference,
    )


TOOL_CALL, RESOURCE_READ = "tools/call", "resources/read"
TASK_GET, TASK_CANCEL = "tasks/get", "tasks/cancel"
TASK_METHODS = frozenset({TASK_GET, TASK_CANCEL, "tasks/update"})
"""Methods of tasks. Tasks of this server ask nothing, so updates have no effect."""

KINDS = 64
"""Maximum number of kinds of clients whose lists of tools are cached. They differ in extensions,
chosen tools and scopes."""


def _capabilities(extensions: Extensions) -> JsonObject:
    """Return the capabilities for clients with these extensions."""
    tools: JsonObject = {"tools": {"listChanged": False}}
    resources: JsonObject = {"resources": {}} if Extension.UI in extensions else {}
    return {**tools, **resources, **_named(extensions)}


def _named(extensions: Extensions) -> JsonObject:
    return {"extensions": {str(one): {} for one in sorted(extensions)}} if extensions else {}


class ReceivedRequest(Struct, frozen=True):
    """A request within its limits, with its caller, time of arrival and client.

    ``extensions`` are those that the client has declared, ``wanted`` the values of the parameter
    ``tools`` of the URL.
    """

    request: Request
    mode: ProtocolMode
    extensions: Extensions
    wanted: Sequence[str]
    caller: Caller
    received_at: Instant
    urls: PublicUrls
    channel: ProgressChannel


class Dispatcher:
    """Responds to requests. Results that depend only on the kind of client are cached."""

    def __init__(
        self,
        tools: Sequence[Tool[Any]],
        tasks: Tasks,
        random_bytes: RandomBytes,
        public_url: str,
    ) -> None:
        self._tools = index_tools(tools)
        self._tasks = tasks
        self._constants: LruCache[Any, Mapping[tuple[ProtocolMode, str], bytes]] = LruCache(KINDS)
        self._random_bytes = random_bytes
        self._server: JsonObject = {
            "name": "mailcheck",
            "title": "mailcheck inbox",
            "version": installed_version(),
            "websiteUrl": public_url,
        }

    def _constant(self, received: ReceivedRequest, method: str) -> bytes | None:
        """Return a result that depends only on the kind of client, if it is one."""
        offered = self._listed(received)
        key = received.extensions, tuple(offered)
        known = self._constants.get(key)
        if known is None:
            known = self._make_constants(received.extensions, offered)
            self._constants.put(key, known)
        return known.get((received.mode, method))

    def _chosen(self, received: ReceivedRequest) -> Mapping[str, Tool[Any]]:
        """Return the tools that the client has chosen and may know.

        :raises RpcError: it has chosen a tool that does not exist.
        """
        return {
            name: tool
            for name, tool in choose_tools(self._tools, received.wanted).items()
            if tool.is_offered(received.extensions)
        }

    def _listed(self, received: ReceivedRequest) -> Mapping[str, Tool[Any]]:
        """Return the chosen tools that the scopes of the key allow.

        An OAuth client sees all of them, because it asks for more scopes when it calls one.
        """
        caller = received.caller
        return {
            name: tool
            for name, tool in self._chosen(received).items()
            if caller.is_grant or not caller.rights.missing(tool.scopes)
        }

    def _make_constants(
        self, extensions: Extensions, offered: Mapping[str, Tool[Any]]
    ) -> Mapping[tuple[ProtocolMode, str], bytes]:
        listed: JsonObject = {
            "tools": [describe_tool(tool, extensions) for tool in offered.values()]
        }
        discovered: JsonObject = {
            "supportedVersions": list(REVISIONS),
            "capabilities": _capabilities(extensions),
            "instructions": write_instructions(offered),
        }
        handshake, stateless = ProtocolMode.HANDSHAKE, ProtocolMode.STATELESS
        results: dict[tuple[ProtocolMode, str], JsonObject] = {
            (handshake, "ping"): {},
            (handshake, "tools/list"): listed,
            (stateless, "tools/list"): listed,
            (stateless, "server/discover"): discovered,
        }
        if Extension.UI in extensions:
            # Hosts read the card by its URI. People and models need not see it in a list.
            for mode in ProtocolMode:
                results[mode, "resources/list"] = {"resources": []}
                results[mode, "resources/templates/list"] = {"resourceTemplates": []}
        return {
            (mode, method): self._complete(result, mode, method)
            for (mode, method), result in results.items()
        }

    async def respond(self, received: ReceivedRequest) -> bytes:
        """Return the result of a request as JSON.

        :raises RpcError: the request is invalid, or the client must handle a failure.
        """
        request, mode = received.request, received.mode
        if request.method == TOOL_CALL:
            return self._complete(await self._call_tool(received), mode, TOOL_CALL)
        if request.method == "initialize" and mode is ProtocolMode.HANDSHAKE:
            result = self._initialize(received)
            return self._complete(result, mode, request.method)
        if request.method in TASK_METHODS and mode is ProtocolMode.STATELESS:
            return self._complete(await self._follow_task(received), mode, request.method)
        if request.method == RESOURCE_READ and Extension.UI in received.extensions:
            return self._complete(_read_resource(request.params), mode, RESOURCE_READ)
        constant = self._constant(received, request.method)
        if constant is None:
            raise RpcError(
                METHOD_NOT_FOUND,
                f"the server has no method {shorten(request.method)!r}: it offers only tools",
            )
        if request.params.get("cursor") is not None:
            raise RpcError(INVALID_PARAMS, "cursor must be absent: each list has one page")
        return constant

    def _initialize(self, received: ReceivedRequest) -> JsonObject:
        wanted = received.request.params.get("protocolVersion")
        if not isinstance(wanted, str):
            raise RpcError(INVALID_PARAMS, "protocolVersion must be a string")
        return {
            "protocolVersion": negotiate(wanted),
            "capabilities": _capabilities(received.extensions),
            "serverInfo": self._server,
            "instructions": write_instructions(self._listed(received)),
        }

    async def _call_tool(self, received: ReceivedRequest) -> JsonObject:
        params = received.request.params
        name, arguments = params.get("name"), params.get("arguments")
        if not isinstance(name, str):
            raise RpcError(INVALID_PARAMS, "name must be a string: the name of a tool")
        if arguments is not None and not isinstance(arguments, dict):
            raise RpcError(INVALID_PARAMS, "arguments must be an object")
        chosen = self._chosen(received)
        tool = chosen.get(name)
        if tool is None:
            known = ", ".join(one.name for one in chosen.values() if not one.is_of_app)
            problem = f"Unknown tool: {shorten(name)}. The tools are {known}"
            raise RpcError(INVALID_PARAMS, problem)
        _require_grant(received.caller, tool)
        try:
            received.caller.rights.require(tool.scopes)
            given = arguments or {}
            request = read_arguments(tool.request_for(received.extensions), given)
            call = self._call(received, request)
            seconds = tool.long_wait.seconds_of(request) if tool.long_wait else 0.0
            if seconds > LONGEST_WAIT:
                return await self._begin_task(tool, call, given, seconds)
            return render_tool_result(await tool.handle(call))
        except ExpectedFailure as failure:
            return render_tool_failure(explain_failure(failure))

    def _call(self, received: ReceivedRequest, request: R) -> ToolCall[R]:
        return ToolCall(
            received.caller,
            received.received_at,
            received.urls,
            request,
            new_fence(self._random_bytes),
            announce=received.channel.announce,
        )

    async def _begin_task(
        self, tool: Tool[R], call: ToolCall[R], arguments: Mapping[str, Any], seconds: float
    ) -> JsonObject:
        """Return the result if it is there already. Otherwise, begin a task.

        While daemons share no state, the call waits as long as a call without tasks.
        """
        assert tool.long_wait is not None
        text = dump_json(arguments).decode()
        if len(text) > MAX_ARGUMENTS:
            raise InvalidParameter(
                "timeout",
                f"the arguments of a wait of more than {LONGEST_WAIT:g} s may have at most "
                f"{MAX_ARGUMENTS} characters; got {len(text)}",
            )
        result = await tool.handle(replace(call, at_most=0.0))
        if not tool.long_wait.goes_on(result.structured):
            return render_tool_result(result)
        task = Task(
            self._tasks.new_id(),
            call.caller.account_id,
            call.caller.key_id,
            tool.name,
            arguments=text,
            position=call.caller.position,
            created_at=call.received_at,
            seconds=seconds,
            updated_at=call.received_at,
        )
        if not await self._tasks.keep(task):
            return render_tool_result(await tool.handle(call))
        return {"resultType": "task", **render_task(task)}

    async def _follow_task(self, received: ReceivedRequest) -> JsonObject:
        """Answer a method of tasks."""
        if Extension.TASKS not in received.extensions:
            required: JsonObject = {"extensions": {Extension.TASKS.value: {}}}
            raise RpcError(
                MISSING_CAPABILITY,
                f"the client must declare the extension {Extension.TASKS}",
                {"requiredCapabilities": required},
            )
        task = await self._tasks.find(received.caller, received.request.params.get("taskId"))
        if received.request.method == TASK_CANCEL:
            await self._tasks.end(task, TaskStatus.CANCELLED)
        if received.request.method != TASK_GET:
            return {}
        return await self._poll(received, task)

    async def _poll(self, received: ReceivedRequest, task: Task) -> JsonObject:
        """Return the state of a task, and its result if it has ended.

        The call goes on while the daemon is too busy for it, or restarts.
        """
        tool = self._tools[task.tool]
        assert tool.long_wait is not None
        _require_grant(received.caller, tool)
        if task.status is TaskStatus.CANCELLED:
            return render_task(task)
        has_ended = task.status is TaskStatus.COMPLETED
        elapsed = max(0.0, (received.received_at - task.created_at) / SECOND)
        try:
            received.caller.rights.require(tool.scopes)
            request = read_arguments(tool.long_wait.request, json.loads(task.arguments))
            call = replace(
                self._call(received, request),
                caller=replace(received.caller, position=task.position),
                received_at=task.created_at,
                elapsed=elapsed,
                at_most=0.0 if has_ended else POLL_SECONDS,
            )
            found = await tool.handle(call)
            is_over = has_ended or task.seconds - elapsed <= POLL_SECONDS
            if not is_over and tool.long_wait.goes_on(found.structured):
                return render_task(task)
            result = render_tool_result(found)
        except ExpectedFailure as failure:
            problem = problem_of(failure)
            if problem.status in (TOO_MANY_REQUESTS, SERVICE_UNAVAILABLE):
                if has_ended:  # its state needs the result
                    raise to_rpc_error(failure) from failure
                return render_task(task, problem.sentence)
            result = render_tool_failure(explain_failure(failure))
        task = await self._tasks.end(task, TaskStatus.COMPLETED)
        rendered = render_task(task)
        if task.status is TaskStatus.COMPLETED:
            rendered["result"] = {"resultType": "complete", **result}
        return rendered

    def _complete(self, result: JsonObject, mode: ProtocolMode, method: str) -> bytes:
        return dump_json(complete_result(result, mode, method, self._server))


def _read_resource(params: Mapping[str, Any]) -> JsonObject:
    uri = params.get("uri")
    if uri != CARD_URI:
        raise RpcError(INVALID_PARAMS, f"there is no resource {shorten(str(uri))}")
    return read_card()


def _require_grant(caller: Caller, tool: Tool[Any]) -> None:
    """Check that an OAuth client may use a tool. Otherwise, the client asks the person for more.

    The challenge also names the scopes that it has: some clients ask for the named ones only.

    :raises RpcError: a scope is missing.
    """
    missing = caller.rights.missing(tool.scopes)
    if caller.is_grant and missing:
        raise RpcError(
            INSUFFICIENT_SCOPE,
            f"the tool {tool.name} needs the scope {missing[0]}, which was not granted: sign in "
            "again and allow it",
            scopes={*(caller.rights.scopes or ()), *tool.scopes},
        )
