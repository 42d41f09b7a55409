"""The two eras of the protocol: what differs between a handshake and a stateless request.

Up to 2025-11-25 a client opens with ``initialize``; this server needs nothing
of it later, so every request stands for itself in both eras. Since 2026-07-28
each request carries its version and the client's capabilities, and repeats
some of its body in headers that must agree with it.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from enum import Enum

from msgspec import Struct

from mailcheck.api.shapes import JsonObject, JsonValue
from mailcheck.web.mcp.json_rpc import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
    Request,
    RpcError,
    shorten,
)

STATELESS_REVISIONS = ("2026-07-28",)
HANDSHAKE_REVISIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
REVISIONS = STATELESS_REVISIONS + HANDSHAKE_REVISIONS

_META = "io.modelcontextprotocol/"
VERSION_KEY = _META + "protocolVersion"
CAPABILITIES_KEY = _META + "clientCapabilities"
SERVER_KEY = _META + "serverInfo"

CACHEABLE = frozenset(("tools/list", "server/discover"))
FRESH_FOR = 300_000
"""Milliseconds that a client may keep the tool list: it changes with a new version only."""

NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Which parameter the header Mcp-Name repeats."""

_STATUSES = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    METHOD_NOT_FOUND: 404,
    # A crash of ours is said in the answer; clients take a 5xx for a broken transport.
    INTERNAL_ERROR: 200,
    HEADER_MISMATCH: 400,
    UNSUPPORTED_VERSION: 400,
}


class ProtocolMode(Enum):
    """How a request says which revision it speaks."""

    HANDSHAKE = "handshake"
    STATELESS = "stateless"


class RoutingHeaders(Struct, frozen=True):
    """The headers that repeat the body, each with all its values."""

    version: Sequence[str]
    method: Sequence[str]
    name: Sequence[str]


def negotiate(wanted: str) -> str:
    """Choose the revision of a handshake: the client's, or our newest that has one."""
    return wanted if wanted in HANDSHAKE_REVISIONS else HANDSHAKE_REVISIONS[0]


def check_version(headers: RoutingHeaders) -> None:
    """Refuse a version that no message can be read by.

    :raises RpcError: the header names a revision that is not spoken here.
    """
    if headers.version and headers.version[0] not in REVISIONS:
        raise _unsupported(headers.version[0])


def detect_mode(request: Request, headers: RoutingHeaders) -> ProtocolMode:
    """Tell the era of a request by how it opens."""
    version = headers.version[0] if headers.version else None
    if VERSION_KEY in request.meta or version not in (None, *HANDSHAKE_REVISIONS):
        return ProtocolMode.STATELESS
    return ProtocolMode.HANDSHAKE


def check_envelope(request: Request, headers: RoutingHeaders) -> None:
    """Check that a stateless request is complete and its headers say what its body says.

    :raises RpcError: they do not (2026-07-28, Streamable HTTP, "Server Validation").
    """
    meta = request.meta
    missing = [key for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in meta]
    if missing:
        if VERSION_KEY not in meta:
            check_version(headers)
        raise RpcError(INVALID_PARAMS, f"params._meta is missing {' and '.join(missing)}")
    if not isinstance(meta[CAPABILITIES_KEY], dict):
        raise RpcError(INVALID_PARAMS, f"{CAPABILITIES_KEY} is not an object")
    _check_header("MCP-Protocol-Version", headers.version, meta[VERSION_KEY])
    _check_header("Mcp-Method", headers.method, request.method)
    name = request.params.get(NAMED_BY.get(request.method, ""))
    if name is not None:
        _check_header("Mcp-Name", [_decode(value) for value in headers.name], name)
    if meta[VERSION_KEY] not in STATELESS_REVISIONS:
        raise _unsupported(meta[VERSION_KEY])


def http_status(error: RpcError, mode: ProtocolMode | None) -> int:
    """Give the HTTP status of an error; ``mode`` is unknown where no request could be read.

    A handshake client takes a failed status for a failed transport, so it is
    told of what it asked for in an answer with 200.
    """
    if error.code not in _STATUSES:
        return error.code
    return 200 if mode is ProtocolMode.HANDSHAKE else _STATUSES[error.code]


def complete_result(
    result: JsonObject, mode: ProtocolMode, method: str, server: JsonObject
) -> dict[str, JsonValue]:
    """Add what a stateless client wants to find in every result."""
    if mode is ProtocolMode.HANDSHAKE:
        return dict(result)
    complete = {"resultType": "complete", **result, "_meta": {SERVER_KEY: server}}
    if method in CACHEABLE:
        complete |= {"ttlMs": FRESH_FOR, "cacheScope": "public"}
    return complete


def _check_header(header: str, values: Sequence[str | None], expected: object) -> None:
    if len(values) > 1:
        raise RpcError(HEADER_MISMATCH, f"the header {header} is there {len(values)} times")
    if not values:
        raise RpcError(HEADER_MISMATCH, f"the header {header} is missing")
    if values[0] != expected:
        raise RpcError(
            HEADER_MISMATCH,
            f"the header {header} says {shorten(repr(values[0]))}, "
            f"the body {shorten(repr(expected))}",
        )


def _decode(value: str) -> str | None:
    """Undo the encoding of what no header can hold; nothing where it is broken."""
    if not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    try:
        return base64.b64decode(value[9:-2], validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return None


def _unsupported(version: object) -> RpcError:
    requested = shorten(version) if isinstance(version, str) else shorten(repr(version))
    data: Mapping[str, JsonValue] = {"supported": list(REVISIONS), "requested": requested}
    return RpcError(UNSUPPORTED_VERSION, "this protocol version is not supported", data)
