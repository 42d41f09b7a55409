"""An agent that talks to the house over ``/mcp``; everything it is told is judged."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jsonschema import Draft202012Validator
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure

from mailcheck.web.mcp.protocol_modes import CAPABILITIES_KEY, SERVER_KEY, VERSION_KEY
from tests.house import House
from tests.spec.judge import read_json

STATELESS = "2026-07-28"
HANDSHAKE = "2025-11-25"
JSON = "application/json"
EVENTS = "text/event-stream"


class BrokenProtocol(AssertionError):
    """An answer that a client of MCP could not rely on."""


class _Body(Protocol):
    """Keeps what comes of a body while it comes."""

    def __init__(self, reply: "Reply") -> None:
        self.reply = reply

    def dataReceived(self, data: bytes) -> None:
        self.reply.body.extend(data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self.reply.ended.append(reason)


@dataclass
class Reply:
    """What came back on one POST so far."""

    stub: Any
    body: bytearray = field(default_factory=bytearray)
    responses: list[Any] = field(default_factory=list)
    ended: list[Any] = field(default_factory=list)
    request: Any = None
    reading: Any = None

    def send(self, request: Any) -> None:
        """Take the request's Deferred, and read its response once there is one."""
        self.request = request
        request.addBoth(self._take)
        self.stub.flush()

    def hang_up(self) -> None:
        """Go away in the middle of it."""
        if self.reading is None:
            self.request.cancel()
        else:
            self.reading.transport.loseConnection()
        self.stub.flush()

    def _take(self, response: Any) -> None:
        self.responses.append(response)
        if not hasattr(response, "raiseException"):
            self.reading = _Body(self)
            # treq's own response would keep the body until it is complete.
            response.original.deliverBody(self.reading)

    @property
    def is_over(self) -> bool:
        """Tell whether the whole answer is there."""
        self.stub.flush()
        return bool(self.ended)

    @property
    def status(self) -> int:
        """Give the HTTP status."""
        self.stub.flush()
        assert self.responses, "there is no answer yet"
        if hasattr(self.responses[0], "raiseException"):
            self.responses[0].raiseException()
        code: int = self.responses[0].code
        return code

    @property
    def headers(self) -> dict[str, str]:
        """Give the headers, names in lower case."""
        assert self.status
        return {
            name.decode().lower(): b", ".join(values).decode()
            for name, values in self.responses[0].headers.getAllRawHeaders()
        }

    @property
    def is_stream(self) -> bool:
        """Tell whether the answer comes as events."""
        return self.headers["content-type"] == EVENTS

    @property
    def messages(self) -> list[Any]:
        """List the JSON-RPC messages that came, judged."""
        if self.is_stream:
            found = [
                read_json(line.removeprefix(b"data: "))
                for line in bytes(self.body).split(b"\r\n")
                if line.startswith(b"data: ")
            ]
        else:
            found = [read_json(bytes(self.body))] if self.body else []
        for message in found:
            judge_message(message)
        return found

    @property
    def json(self) -> Any:
        """Give the answer itself: the last message."""
        assert self.is_over, "the answer is not complete"
        judge_headers(self.status, self.headers)
        return self.messages[-1]

    @property
    def result(self) -> Any:
        """Give the result of a request that went well."""
        assert self.status == 200, f"{self.status} {bytes(self.body)!r}"
        assert "result" in self.json, self.json
        return self.json["result"]

    @property
    def error(self) -> Any:
        """Give the error of a request that did not."""
        assert "error" in self.json, self.json
        return self.json["error"]

    @property
    def progress(self) -> list[Any]:
        """List the progress notifications."""
        return [message["params"] for message in self.messages if "method" in message]


class Agent:
    """One client with one key; speaks the handshake's newest revision unless told otherwise."""

    def __init__(self, house: House, key: str | None = None, version: str = HANDSHAKE) -> None:
        self.house = house
        self.key = house.key if key is None else key
        self.version = version
        self.next_id = 0

    def post(
        self,
        body: object,
        headers: Mapping[str, str | None] | None = None,
        method: str = "POST",
        path: str = "/mcp",
    ) -> Reply:
        """Send anything; a header of ``None`` is left out."""
        merged: dict[str, str | None] = {
            "Content-Type": JSON,
            "Accept": f"{JSON}, {EVENTS}",
            "Authorization": f"Bearer {self.key}",
            **(headers or {}),
        }
        sent = {name: value for name, value in merged.items() if value is not None}
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        reply = Reply(self.house.stub)
        url = "http://127.0.0.1:8080" + path
        reply.send(self.house.stub.request(method, url, headers=sent, data=data))
        return reply

    def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str | None] | None = None,
        request_id: object = None,
    ) -> Reply:
        """Send a request as the revision has it."""
        self.next_id += 1
        body = {
            "jsonrpc": "2.0",
            "id": self.next_id if request_id is None else request_id,
            "method": method,
            "params": dict(params or {}),
        }
        named: dict[str, str | None] = {"MCP-Protocol-Version": self.version}
        if self.version == STATELESS:
            body["params"]["_meta"] = {  # type: ignore[index]
                VERSION_KEY: STATELESS,
                CAPABILITIES_KEY: {},
                **(params or {}).get("_meta", {}),
            }
            named["Mcp-Method"] = method
            if "name" in (params or {}):
                named["Mcp-Name"] = str((params or {})["name"])
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
        """Call a tool that answers at once; gives its structured content, judged by its schema."""
        named = {name.rstrip("_"): value for name, value in arguments.items()}
        result = self.call(tool, named).result
        assert result["isError"] is False, result["content"]
        judge_output(self.tools()[tool], result)
        return result["structuredContent"]

    def fail(self, tool: str, **arguments: Any) -> str:
        """Call a tool that fails; gives what the model is told."""
        named = {name.rstrip("_"): value for name, value in arguments.items()}
        return failure_of(self.call(tool, named))

    def tools(self) -> dict[str, Any]:
        """List the tools by name."""
        return {tool["name"]: tool for tool in self.request("tools/list").result["tools"]}


def failure_of(reply: Reply) -> str:
    """Give what the model is told of a tool's failure."""
    result = reply.result
    assert result["isError"] is True, result
    assert "structuredContent" not in result
    (block,) = result["content"]
    text: str = block["text"]
    return text


def judge_headers(status: int, headers: Mapping[str, str]) -> None:
    """Fail when the headers of an answer break a promise."""
    for name in ("x-ratelimit-remaining", "x-ratelimit-daily-remaining"):
        assert headers.get(name, "").isdigit(), f"{name} is {headers.get(name)!r}"
    assert headers["x-content-type-options"] == "nosniff"
    assert not [name for name in headers if name.startswith("access-control")]
    assert (headers.get("www-authenticate") == "Bearer") == (status == 401)
    assert ("retry-after" in headers) == (status in (429, 503))
    assert ("allow" in headers) == (status == 405)
    assert status != 500


def judge_message(message: Any) -> None:
    """Fail when a message is no JSON-RPC 2.0 that a server may send."""
    assert message["jsonrpc"] == "2.0", message
    if "method" in message:
        assert set(message) == {"jsonrpc", "method", "params"}
        return
    assert set(message) in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"}), message
    if "error" in message:
        assert isinstance(message["error"]["code"], int)
        assert message["error"]["message"]


def judge_output(tool: Mapping[str, Any], result: Mapping[str, Any]) -> None:
    """Fail when structured content breaks the schema, or has fields that are not in it."""
    closed = _closed(tool["outputSchema"])
    problems: Sequence[Any] = list(
        Draft202012Validator(closed).iter_errors(result["structuredContent"])
    )
    if problems:
        raise BrokenProtocol(f"{tool['name']}: {[problem.message for problem in problems]}")
    if "resultType" in result:
        assert result["resultType"] == "complete"
        assert result["_meta"][SERVER_KEY]["name"] == "mailcheck"


def _closed(schema: Any) -> Any:
    """Close a schema to fields that it does not name."""
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: _closed(value) for name, value in schema.items()}
    if "properties" in closed and "additionalProperties" not in closed:
        closed["additionalProperties"] = False
    return closed
