"""An MCP client that checks every response of the house."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from mailcheck.api.shapes import schema_of
from mailcheck.assembly.doors.agents import build_tools
from mailcheck.web.mcp.protocol_modes import (
    APP_TYPE,
    CAPABILITIES_KEY,
    NAMED_BY,
    SERVER_KEY,
    VERSION_KEY,
    Extension,
)
from tests.house import House
from tests.spec.judge import read_json
from tests.web.raw_http import Pending

STATELESS = "2026-07-28"
HANDSHAKE = "2025-11-25"
JSON = "application/json"
EVENTS = "text/event-stream"

BOTH_MODES = pytest.mark.parametrize("agent", [HANDSHAKE, STATELESS], indirect=True)
"""Runs a test in each mode, if what it proves depends on the mode."""

NO_EXTENSIONS: Mapping[Extension, Any] = {}
APPS: Mapping[Extension, Any] = {Extension.UI: {"mimeTypes": [APP_TYPE]}}
TASKS: Mapping[Extension, Any] = {Extension.TASKS: {}}

INBOX_TOOLS = [
    "new_address",
    "wait_for_message",
    "list_messages",
    "get_message",
    "get_attachment",
    "extract",
    "share_link",
    "delete_message",
]
TOOL_NAMES = [
    *INBOX_TOOLS,
    "check_domain",
    "check_mx",
    "check_blocklists",
    "get_reports",
    "generate_test",
    "wait_for_test",
    "list_watches",
    "get_watch",
    "get_heartbeats",
    "send_inbound",
    "get_inbound",
]
"""The names of all tools, in the order of the list."""


_schema = cache(schema_of)


class BrokenProtocol(AssertionError):
    """A response that violates the protocol."""


class Reply(Pending):
    """The response to one POST so far."""

    @property
    def status(self) -> int:
        """Return the HTTP status."""
        return self.so_far.status

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers with lower-case names."""
        return self.so_far.headers

    @property
    def body(self) -> bytes:
        """Return the part of the body that has arrived."""
        return self.so_far.body if self.is_answered else b""

    @property
    def is_stream(self) -> bool:
        """Return whether the response is an event stream."""
        return self.headers["content-type"] == EVENTS

    @property
    def messages(self) -> list[Any]:
        """Return the JSON-RPC messages received so far, checked."""
        if self.is_stream:
            found = [
                read_json(line.removeprefix(b"data: "))
                for line in self.body.split(b"\r\n")
                if line.startswith(b"data: ")
            ]
        else:
            found = [read_json(self.body)] if self.body else []
        for message in found:
            judge_message(message)
        return found

    @property
    def json(self) -> Any:
        """Return the answer, which is the last message."""
        assert self.is_over, "the answer is not complete"
        judge_headers(self.status, self.headers)
        return self.messages[-1]

    @property
    def result(self) -> Any:
        """Return the result of a successful request."""
        assert self.status == 200, f"{self.status} {self.body!r}"
        assert "result" in self.json, self.json
        return self.json["result"]

    @property
    def error(self) -> Any:
        """Return the error of a failed request."""
        assert "error" in self.json, self.json
        return self.json["error"]

    @property
    def progress(self) -> list[Any]:
        """Return the progress notifications."""
        return [message["params"] for message in self.messages if "method" in message]


class Agent:
    """A client with one key. By default it uses the newest handshake revision."""

    def __init__(
        self,
        house: House,
        key: str | None = None,
        version: str = HANDSHAKE,
        extensions: Mapping[Extension, Any] = NO_EXTENSIONS,
    ) -> None:
        self.house = house
        self.key = house.key if key is None else key
        self.version = version
        self.next_id = 0
        self.capabilities: dict[str, Any] = {"extensions": dict(extensions)} if extensions else {}
        self.session: dict[str, str | None] = {}
        if extensions and version != STATELESS:
            params = {"protocolVersion": version, "capabilities": self.capabilities}
            self.initialized = self.request("initialize", params)
            self.session = {"Mcp-Session-Id": self.initialized.headers["mcp-session-id"]}

    def post(
        self,
        body: object,
        headers: Mapping[str, str | None] | None = None,
        method: str = "POST",
        path: str = "/mcp",
    ) -> Reply:
        """Send any body. A header of ``None`` is omitted."""
        merged: dict[str, str | None] = {
            "Content-Type": JSON,
            "Accept": f"{JSON}, {EVENTS}",
            "Authorization": f"Bearer {self.key}",
            **(headers or {}),
        }
        sent = {name: value for name, value in merged.items() if value is not None}
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return Reply(self.house, method, path, sent, data=data)

    def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str | None] | None = None,
        request_id: object = None,
    ) -> Reply:
        """Send a request in the form of the revision."""
        self.next_id += 1
        body = {
            "jsonrpc": "2.0",
            "id": self.next_id if request_id is None else request_id,
            "method": method,
            "params": dict(params or {}),
        }
        named: dict[str, str | None] = {"MCP-Protocol-Version": self.version, **self.session}
        if self.version == STATELESS:
            body["params"]["_meta"] = {  # type: ignore[index]
                VERSION_KEY: STATELESS,
                CAPABILITIES_KEY: self.capabilities,
                **(params or {}).get("_meta", {}),
            }
            named["Mcp-Method"] = method
            if (name := (params or {}).get(NAMED_BY.get(method, ""))) is not None:
                named["Mcp-Name"] = str(name)
        return self.post(body, {**named, **(headers or {})})

    def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        headers: Mapping[str, str | None] | None = None,
        progress_token: object = None,
        request_id: object = None,
    ) -> Reply:
        """Call a tool."""
        params: dict[str, Any] = {"name": tool}
        if arguments is not None:
            params["arguments"] = dict(arguments)
        if progress_token is not None:
            params["_meta"] = {"progressToken": progress_token}
        return self.request("tools/call", params, headers, request_id)

    def use(self, tool: str, **arguments: Any) -> Any:
        """Call a tool that answers at once. Return its content, checked by its schema."""
        named = {name.rstrip("_"): value for name, value in arguments.items()}
        result = self.call(tool, named).result
        assert result["isError"] is False, result["content"]
        judge_output(self.known_tools[tool], result)
        return result["structuredContent"]

    def fail(self, tool: str, **arguments: Any) -> str:
        """Call a tool that fails. Return the message for the model."""
        named = {name.rstrip("_"): value for name, value in arguments.items()}
        return failure_of(self.call(tool, named))

    def tools(self) -> dict[str, Any]:
        """Return the tools by name, each with the whole schema of its results."""
        schemas = {tool.name: _schema(tool.output) for tool in build_tools(self.house.assembly)}
        return {
            tool["name"]: {**tool, "wholeSchema": schemas[tool["name"]]}
            for tool in self.request("tools/list").result["tools"]
        }

    @cached_property
    def known_tools(self) -> dict[str, Any]:
        """The tools as they were at the first use of one."""
        return self.tools()


def failure_of(reply: Reply) -> str:
    """Return the message for the model about a tool's failure."""
    result = reply.result
    assert result["isError"] is True, result
    assert "structuredContent" not in result
    (block,) = result["content"]
    text: str = block["text"]
    return text


def marker_of(result: Mapping[str, Any]) -> str:
    """Return the marker of the fence in the text of a result."""
    found = re.search(r"<<<([0-9a-f]{10}) and \1>>>", result["content"][0]["text"])
    assert found is not None, result
    return found[1]


def judge_headers(status: int, headers: Mapping[str, str]) -> None:
    """Raise an error if the headers of a response violate the contract."""
    for name in ("x-ratelimit-remaining", "x-ratelimit-daily-remaining"):
        assert headers.get(name, "").isdigit(), f"{name} is {headers.get(name)!r}"
    assert headers["x-content-type-options"] == "nosniff"
    assert not [name for name in headers if name.startswith("access-control")]
    challenge = headers.get("www-authenticate", "")
    is_step_up = status == 403 and 'error="insufficient_scope"' in challenge
    assert challenge.startswith("Bearer") == (status == 401 or is_step_up)
    assert ("retry-after" in headers) == (status in (429, 503))
    assert ("allow" in headers) == (status == 405)
    assert status != 500


def judge_message(message: Any) -> None:
    """Raise an error if a message is not a valid JSON-RPC 2.0 message of a server."""
    assert message["jsonrpc"] == "2.0", message
    if "method" in message:
        assert set(message) == {"jsonrpc", "method", "params"}
        return
    assert set(message) in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"}), message
    if "error" in message:
        assert isinstance(message["error"]["code"], int)
        assert message["error"]["message"]


def judge_output(tool: Mapping[str, Any], result: Mapping[str, Any]) -> None:
    """Raise an error if structured content does not match its schema exactly."""
    assert result["structuredContent"].keys() <= tool["outputSchema"]["properties"].keys()
    closed = _closed(tool["wholeSchema"])
    problems: Sequence[Any] = list(
        Draft202012Validator(closed).iter_errors(result["structuredContent"])
    )
    if problems:
        raise BrokenProtocol(f"{tool['name']}: {[problem.message for problem in problems]}")
    if "resultType" in result:
        assert result["resultType"] == "complete"
        assert result["_meta"][SERVER_KEY]["name"] == "mailcheck"


def _closed(schema: Any) -> Any:
    """Return a schema that rejects additional fields."""
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: _closed(value) for name, value in schema.items()}
    if "properties" in closed and "additionalProperties" not in closed:
        closed["additionalProperties"] = False
    return closed
