"""JSON-RPC 2.0 as MCP has it: one message in, a result or an error out. No I/O here.

Batches are refused: only one revision ever had them (2025-03-26), and no
client in use sends them.
"""

import json
from collections.abc import Mapping
from typing import Any, NoReturn, TypeGuard

from msgspec import Struct

from mailcheck.api.shapes import JsonObject, JsonValue, dump_json

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

HEADER_MISMATCH = -32020
UNSUPPORTED_VERSION = -32022
"""These two are MCP's own since 2026-07-28 (basic, "Error Codes")."""

MAX_SHOWN = 80
"""Characters of a bad name that an error repeats."""

RequestId = str | int


class RpcError(Exception):
    """The protocol's own error; ``code`` is JSON-RPC's, or the HTTP status that says it all.

    ``retry_after`` is in whole seconds; ``reference`` is where the log has the cause.
    """

    def __init__(
        self,
        code: int,
        message: str,
        data: JsonValue = None,
        retry_after: int | None = None,
        reference: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.retry_after = retry_after
        self.reference = reference


class UnreadableMessage(RpcError):
    """The body is no message; ``request_id`` is its id where that much could be read."""

    def __init__(self, code: int, message: str, request_id: RequestId | None = None) -> None:
        super().__init__(code, message)
        self.request_id = request_id


class Request(Struct, frozen=True):
    """A message that wants an answer."""

    id: RequestId
    method: str
    params: Mapping[str, Any]

    @property
    def meta(self) -> Mapping[str, Any]:
        """Give ``params._meta``; empty where there is none that is an object."""
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}


class Notification(Struct, frozen=True):
    """A message that wants none."""

    method: str
    params: Mapping[str, Any]


class PostedResponse(Struct, frozen=True):
    """A client's answer to a request; this server never sends one."""


Message = Request | Notification | PostedResponse


def parse_message(body: bytes) -> Message:
    """Read the body of a POST.

    :raises UnreadableMessage: it is not JSON, or not one JSON-RPC message.
    """
    try:
        value = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise UnreadableMessage(PARSE_ERROR, "the body is not JSON in UTF-8") from None
    if isinstance(value, list):
        raise UnreadableMessage(INVALID_REQUEST, "batches are not supported: send one message")
    if not isinstance(value, dict):
        raise UnreadableMessage(INVALID_REQUEST, "the body is not a JSON-RPC message")
    return _read_object(value)


def _read_object(value: dict[str, Any]) -> Message:
    request_id = value.get("id")
    known_id = request_id if is_request_id(request_id) else None
    if value.get("jsonrpc") != "2.0":
        raise UnreadableMessage(INVALID_REQUEST, 'jsonrpc is not "2.0"', known_id)
    if "method" not in value and ("result" in value or "error" in value):
        return PostedResponse()
    method = value.get("method")
    if not isinstance(method, str):
        raise UnreadableMessage(INVALID_REQUEST, "method is not a string", known_id)
    if "id" in value and known_id is None:
        raise UnreadableMessage(INVALID_REQUEST, "id is not a string or an integer")
    params = value.get("params")
    if params is not None and not isinstance(params, dict):
        raise UnreadableMessage(INVALID_PARAMS, "params is not an object", known_id)
    if known_id is None:
        return Notification(method, params or {})
    return Request(known_id, method, params or {})


def is_request_id(value: object) -> TypeGuard[RequestId]:
    """Tell whether a value can be the id of a request: text or an integer, never null."""
    if isinstance(value, str):
        return not any("\ud800" <= character <= "\udfff" for character in value)
    return isinstance(value, int) and not isinstance(value, bool)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def render_result(request_id: RequestId, result: bytes) -> bytes:
    """Write a result, given as JSON, as the answer to a request."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (dump_json(request_id), result)


def render_error(request_id: RequestId | None, error: RpcError) -> bytes:
    """Write an error as the answer to a request, or to nobody knows which."""
    shape: dict[str, JsonValue] = {"code": error.code, "message": error.message}
    if error.data is not None:
        shape["data"] = error.data
    return dump_json({"jsonrpc": "2.0", "id": request_id, "error": shape})


def render_notification(method: str, params: JsonObject) -> bytes:
    """Write a notification."""
    return dump_json({"jsonrpc": "2.0", "method": method, "params": params})


def shorten(text: str) -> str:
    """Give a name that a client sent, short enough to be repeated."""
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "..."
