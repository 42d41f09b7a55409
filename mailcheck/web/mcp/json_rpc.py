"""JSON-RPC 2.0 for MCP: parsing of messages, and formatting of results and errors. No I/O.

Batches are rejected. Only one revision allowed them (2025-03-26), and no known client sends them.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any, NoReturn, TypeGuard

from msgspec import Struct

from mailcheck.api.shapes import JsonObject, JsonValue, dump_json
from mailcheck.core.rights import Scope

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022
"""Error codes of MCP since 2026-07-28 (basic, "Error Codes")."""

MAX_SHOWN = 80
"""Maximum number of characters of an invalid name in an error."""

RequestId = str | int


class RpcError(Exception):
    """An error response. ``code`` is a code of JSON-RPC, or an HTTP status.

    ``retry_after`` is in whole seconds. ``reference`` identifies the cause in the log. ``scopes``
    are the scopes that an OAuth client must ask for before it repeats the request.
    """

    def __init__(
        self,
        code: int,
        message: str,
        data: JsonValue = None,
        retry_after: int | None = None,
        reference: str = "",
        scopes: Collection[Scope] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.retry_after = retry_after
        self.reference = reference
        self.scopes = scopes


class UnreadableMessage(RpcError):
    """The body is not a valid message. ``request_id`` is its id if that could be read."""

    def __init__(self, code: int, message: str, request_id: RequestId | None = None) -> None:
        super().__init__(code, message)
        self.request_id = request_id


class Request(Struct, frozen=True):
    """A message that requires a response."""

    id: RequestId
    method: str
    params: Mapping[str, Any]

    @property
    def meta(self) -> Mapping[str, Any]:
        """The object ``params._meta``, or an empty one if it is absent or not an object."""
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}


class Notification(Struct, frozen=True):
    """A message that requires no response."""

    method: str
    params: Mapping[str, Any]


class PostedResponse(Struct, frozen=True):
    """A client's response to a request of the server, although this server sends none."""


Message = Request | Notification | PostedResponse


def parse_message(body: bytes) -> Message:
    """Parse the body of a POST.

    :raises UnreadableMessage: it is not JSON, or not a single JSON-RPC message.
    """
    try:
        value = json.loads(body.decode("utf-8"), parse_constant=_reject_constant)
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
        raise UnreadableMessage(INVALID_REQUEST, 'jsonrpc must be "2.0"', known_id)
    if "method" not in value and ("result" in value or "error" in value):
        return PostedResponse()
    method = value.get("method")
    if not isinstance(method, str):
        raise UnreadableMessage(INVALID_REQUEST, "method must be a string", known_id)
    if "id" in value and known_id is None:
        raise UnreadableMessage(INVALID_REQUEST, "id must be a string or an integer")
    params = value.get("params")
    if params is not None and not isinstance(params, dict):
        raise UnreadableMessage(INVALID_PARAMS, "params must be an object", known_id)
    if known_id is None:
        return Notification(method, params or {})
    return Request(known_id, method, params or {})


def is_request_id(value: object) -> TypeGuard[RequestId]:
    """Return whether a value can be the id of a request: a string or an integer, but not null."""
    if isinstance(value, str):
        return not any("\ud800" <= character <= "\udfff" for character in value)
    return isinstance(value, int) and not isinstance(value, bool)


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def render_result(request_id: RequestId, result: bytes) -> bytes:
    """Format the response to a request. ``result`` is JSON."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (dump_json(request_id), result)


def render_error(request_id: RequestId | None, error: RpcError) -> bytes:
    """Format an error response. The id is `None` if the request could not be read."""
    shape: dict[str, JsonValue] = {"code": error.code, "message": error.message}
    if error.data is not None:
        shape["data"] = error.data
    return dump_json({"jsonrpc": "2.0", "id": request_id, "error": shape})


def render_notification(method: str, params: JsonObject) -> bytes:
    """Format a notification."""
    return dump_json({"jsonrpc": "2.0", "method": method, "params": params})


def shorten(text: str) -> str:
    """Shorten a name from a client for an error message."""
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "..."
