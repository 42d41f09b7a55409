"""The two modes of the protocol: with a handshake, and stateless.

In revisions up to 2025-11-25, a client begins with ``initialize``. This server keeps no state from
it, so requests are independent in both modes. Since 2026-07-28, each request contains its version
and the capabilities of the client. Headers repeat parts of the body and must agree with it.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from enum import Enum, StrEnum

from msgspec import Struct

from mailcheck.api.shapes import JsonObject, JsonValue
from mailcheck.web.mcp.json_rpc import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
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

APP_TYPE = "text/html;profile=mcp-app"
"""Media type of the resource of an MCP App."""


class Extension(StrEnum):
    """An extension of MCP that clients declare among their capabilities."""

    UI = "io.modelcontextprotocol/ui"
    TASKS = "io.modelcontextprotocol/tasks"


Extensions = frozenset[Extension]

NO_EXTENSIONS: Extensions = frozenset()

_OF_SESSIONS: Extensions = frozenset({Extension.UI})
"""The extensions of clients with a handshake. Tasks need the results of the stateless mode."""

_APPS = "-apps"
"""The end of the id of a session whose client shows Apps."""

CACHE_SCOPES = {
    "tools/list": "private",
    "server/discover": "private",
    "resources/list": "public",
    "resources/templates/list": "public",
    "resources/read": "public",
}
"""Who may share a cached result. Private ones depend on what the client has declared."""

CACHE_TTL_MS = 300_000
"""Milliseconds for which a client may cache such a result. It changes only with a release."""

_BASE64, _BASE64_END = "=?base64?", "?="
"""What encloses a header value in Base64."""

NAMED_BY = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
"""The parameter that the header Mcp-Name repeats, by method."""

_STATUSES = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    METHOD_NOT_FOUND: 404,
    # With a 5xx status, clients assume that the transport is broken.
    INTERNAL_ERROR: 200,
    HEADER_MISMATCH: 400,
    MISSING_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
}


class ProtocolMode(Enum):
    """The mode of a request."""

    HANDSHAKE = "handshake"
    STATELESS = "stateless"


class RoutingHeaders(Struct, frozen=True):
    """All values of each header that repeats part of the body."""

    version: Sequence[str]
    method: Sequence[str]
    name: Sequence[str]


def negotiate(wanted: str) -> str:
    """Return the requested handshake revision, or the newest one if it is not supported."""
    return wanted if wanted in HANDSHAKE_REVISIONS else HANDSHAKE_REVISIONS[0]


def check_version(headers: RoutingHeaders) -> None:
    """Check the version in the header of any message.

    :raises RpcError: the version is not supported.
    """
    if headers.version and headers.version[0] not in REVISIONS:
        raise _unsupported(headers.version[0])


def detect_mode(request: Request, headers: RoutingHeaders) -> ProtocolMode:
    """Return the mode of a request."""
    version = headers.version[0] if headers.version else None
    if VERSION_KEY in request.meta or version not in (None, *HANDSHAKE_REVISIONS):
        return ProtocolMode.STATELESS
    return ProtocolMode.HANDSHAKE


def check_envelope(request: Request, headers: RoutingHeaders) -> None:
    """Check that a stateless request is complete, and that its headers agree with its body.

    :raises RpcError: it is not (2026-07-28, Streamable HTTP, "Server Validation").
    """
    meta = request.meta
    missing = [key for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in meta]
    if missing:
        if VERSION_KEY not in meta:
            check_version(headers)
        raise RpcError(INVALID_PARAMS, f"params._meta must contain {' and '.join(missing)}")
    if not isinstance(meta[CAPABILITIES_KEY], dict):
        raise RpcError(INVALID_PARAMS, f"{CAPABILITIES_KEY} must be an object")
    _check_header("MCP-Protocol-Version", headers.version, meta[VERSION_KEY])
    _check_header("Mcp-Method", headers.method, request.method)
    name = request.params.get(NAMED_BY.get(request.method, ""))
    if name is not None:
        _check_header("Mcp-Name", [_decode(value) for value in headers.name], name)
    if meta[VERSION_KEY] not in STATELESS_REVISIONS:
        raise _unsupported(meta[VERSION_KEY])


def declared_extensions(capabilities: object) -> Extensions:
    """Return the known extensions among the capabilities of a client.

    A client of MCP Apps also names the media types that it shows (SEP-1865).
    """
    found = capabilities.get("extensions") if isinstance(capabilities, dict) else None
    if not isinstance(found, dict):
        return NO_EXTENSIONS
    settings = {one: found[one] for one in Extension if isinstance(found.get(one), dict)}
    shown = settings.get(Extension.UI, {}).get("mimeTypes")
    if not isinstance(shown, list) or APP_TYPE not in shown:
        settings.pop(Extension.UI, None)
    return frozenset(settings)


def requested_extensions(
    request: Request, mode: ProtocolMode, sessions: Sequence[str]
) -> Extensions:
    """Return the extensions that the client of a request has declared.

    :param sessions: the values of the header Mcp-Session-Id.
    """
    if mode is ProtocolMode.STATELESS:
        return declared_extensions(request.meta.get(CAPABILITIES_KEY))
    if request.method == "initialize":
        return declared_extensions(request.params.get("capabilities")) & _OF_SESSIONS
    is_of_apps = len(sessions) == 1 and sessions[0].endswith(_APPS)
    return _OF_SESSIONS if is_of_apps else NO_EXTENSIONS


def name_session(random_part: str, extensions: Extensions) -> str:
    """Return the id of a new session, which names what the client has declared in the handshake.

    The server keeps no state of sessions, and clients repeat the id in each request.
    """
    return random_part + (_APPS if Extension.UI in extensions else "")


def write_routing_headers(request: Request) -> dict[str, str]:
    """Return the headers of a stateless request that repeat its body, as a client sends them."""
    headers = {"MCP-Protocol-Version": request.meta[VERSION_KEY], "Mcp-Method": request.method}
    name = request.params.get(NAMED_BY.get(request.method, ""))
    if name is not None:
        headers["Mcp-Name"] = name
    return {header: _encode(str(value)) for header, value in headers.items()}


def http_status(error: RpcError, mode: ProtocolMode | None) -> int:
    """Return the HTTP status of an error. ``mode`` is `None` if no request could be read.

    A handshake client treats an error status as a failure of the transport. So errors of its
    requests are sent with 200.
    """
    if error.code not in _STATUSES:
        return error.code
    return 200 if mode is ProtocolMode.HANDSHAKE else _STATUSES[error.code]


def complete_result(
    result: JsonObject, mode: ProtocolMode, method: str, server: JsonObject
) -> dict[str, JsonValue]:
    """Add the fields that a stateless client expects in every result."""
    if mode is ProtocolMode.HANDSHAKE:
        return dict(result)
    complete = {"resultType": "complete", **result, "_meta": {SERVER_KEY: server}}
    if method in CACHE_SCOPES:
        complete |= {"ttlMs": CACHE_TTL_MS, "cacheScope": CACHE_SCOPES[method]}
    return complete


def _check_header(header: str, values: Sequence[str | None], expected: object) -> None:
    if len(values) > 1:
        raise RpcError(HEADER_MISMATCH, f"the header {header} occurs {len(values)} times")
    if not values:
        raise RpcError(HEADER_MISMATCH, f"the header {header} is missing")
    if values[0] != expected:
        raise RpcError(
            HEADER_MISMATCH,
            f"the header {header} contains {shorten(repr(values[0]))}, but the body "
            f"{shorten(repr(expected))}",
        )


def _encode(value: str) -> str:
    """Encode a header value in Base64 unless it is printable ASCII without outer spaces."""
    is_plain = value.isascii() and value.isprintable() and value == value.strip()
    if is_plain and not value.startswith(_BASE64):
        return value
    encoded = base64.b64encode(value.encode(errors="replace"))
    return f"{_BASE64}{encoded.decode()}{_BASE64_END}"


def _decode(value: str) -> str | None:
    """Decode a header value that may be in Base64. Return `None` if the encoding is broken."""
    if not (value.startswith(_BASE64) and value.endswith(_BASE64_END)):
        return value
    encoded = value[len(_BASE64) : -len(_BASE64_END)]
    try:
        return base64.b64decode(encoded, validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return None


def _unsupported(version: object) -> RpcError:
    requested = shorten(version) if isinstance(version, str) else shorten(repr(version))
    data: Mapping[str, JsonValue] = {"supported": list(REVISIONS), "requested": requested}
    return RpcError(UNSUPPORTED_VERSION, "this protocol version is not supported", data)
