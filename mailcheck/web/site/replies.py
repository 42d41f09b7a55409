"""Replies as values, the one place that writes them, and how every request gets one.

What answers a request gives a reply, an expected failure, or, where it fails, a bland 500 with a
reference.
"""

import gzip
import json
import re
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from urllib.parse import quote

from msgspec import Struct, field
from msgspec.structs import replace
from twisted.internet.defer import CancelledError
from twisted.logger import Logger
from twisted.web.server import Request

from mailcheck.api.errors import Error
from mailcheck.api.shapes import Shape, dump_json, dump_json_in_chunks
from mailcheck.core.errors import ExpectedFailure, LimitExceeded, WaitInterrupted
from mailcheck.operations.concurrency import PacedQueue
from mailcheck.operations.incidents import public_failure
from mailcheck.web.site.errors import (
    BUFFERS_FULL,
    INTERNAL_SERVER_ERROR,
    RETRY_AFTER_SECONDS,
    SERVER_ERRORS,
    SERVICE_UNAVAILABLE,
    UNAUTHORIZED,
    status_of,
)
from mailcheck.web.site.event_streams import Stream, send_stream
from mailcheck.web.site.requests import PacedRequest, header_values, loggable_path

COMMON_HEADERS = {
    # Nothing here is for a browser to guess at, to frame or to keep.
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}


JSON = "application/json; charset=utf-8"

UNREAD_RETRY = 5
"""Seconds after which an answer that there was no room for is worth asking for again."""


class Reply(Struct, frozen=True):
    """One HTTP response; it always has a content type.

    ``cookies`` are Set-Cookie fields, ``reference`` is where the log has the cause of a failure.
    """

    status: int
    body: bytes
    content_type: str
    headers: Mapping[str, str] = field(default_factory=dict)
    cookies: Sequence[str] = ()
    reference: str = ""

    @property
    def problem(self) -> str:
        """The error that it tells of, where that is JSON."""
        if not self.content_type.startswith("application/json"):
            return ""
        value = json.loads(self.body)
        return str(value.get("error", "")) if isinstance(value, dict) else ""


def json_reply(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    """Make a JSON response of a shape or of plain values."""
    return Reply(status, dump_json(value), JSON, headers or {})


async def large_json_reply(
    shape: Shape, turns: PacedQueue, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Reply:
    """Make a JSON response of a shape whose texts may be long: piece by piece, in turns."""
    body = await dump_json_in_chunks(shape, turns.wait)
    return Reply(status, body, JSON, headers or {})


def error_reply(status: int, error: str, headers: Mapping[str, str] | None = None) -> Reply:
    """Make an error response (docs/reference/contract.md)."""
    return json_reply(Error(error), status, headers)


def reply_to_failure(failure: ExpectedFailure) -> Reply:
    """Render an expected failure; one that is missing in the table is our own mistake."""
    status = status_of(failure)
    failure = public_failure(failure)
    body = {"error": str(failure)}
    headers: dict[str, str] = {}
    if isinstance(failure, LimitExceeded):
        headers["Retry-After"] = str(failure.retry_after)
    if status == SERVICE_UNAVAILABLE:
        headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
    if status == UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(failure, WaitInterrupted) and failure.cursor is not None:
        body["cursor"] = failure.cursor
    return replace(json_reply(body, status, headers), reference=failure.reference)


def write_reply(request: Request, reply: Reply, more_headers: Mapping[str, str]) -> bytes:
    """Set status and headers of a request, and give the body to send.

    It is 503 instead where too much that was sent earlier has not been read.
    """
    if isinstance(request, PacedRequest) and not request.make_room_for(reply.body):
        reply = _unread_reply()
    note_fault(request, reply)
    request.setResponseCode(reply.status)
    set_header = request.responseHeaders.setRawHeaders
    for name, value in all_headers(reply, more_headers).items():
        set_header(name, [value])
    if reply.cookies:
        set_header("Set-Cookie", reply.cookies)
    return reply.body


def note_fault(request: Request, reply: Reply) -> None:
    """Set the cause that the log names for a request that fails by an internal error."""
    if isinstance(request, PacedRequest) and reply.status in SERVER_ERRORS:
        request.problem = reply.problem or request.problem
        request.reference = reply.reference or request.reference


def all_headers(reply: Reply, more_headers: Mapping[str, str]) -> dict[str, str]:
    """Give the headers of a reply with those that every one has, in their order."""
    return {
        **COMMON_HEADERS,
        **reply.headers,
        **more_headers,
        "Content-Type": reply.content_type,
        "Content-Length": str(len(reply.body)),
    }


def reply_as_bytes(reply: Reply) -> bytes:
    """Write a whole response, for what is no request or is not read as one."""
    lines = [f"{name}: {value}\r\n" for name, value in all_headers(reply, {}).items()]
    status = HTTPStatus(reply.status)
    head = "".join([f"HTTP/1.1 {status.value} {status.phrase}\r\n", *lines, "\r\n"])
    return head.encode("ascii") + reply.body


def _unread_reply() -> Reply:
    return error_reply(
        BUFFERS_FULL,
        "too much is on its way to you, or to all clients: read it first, then try again",
        {"Retry-After": str(UNREAD_RETRY)},
    )


_log = Logger()

MoreHeaders = dict[str, str]


async def respond(
    request: Request, handle: Callable[[MoreHeaders], Awaitable[Reply | Stream]]
) -> bytes:
    """Run a handler and write what comes of it; gives the body.

    The handler may put headers into the dictionary that it is given: they are
    sent whether it ends well or not.
    """
    headers: MoreHeaders = {}
    try:
        reply = await handle(headers)
    except CancelledError:
        return b""  # the client has gone
    except ExpectedFailure as failure:
        reply = reply_to_failure(failure)
    except Exception:
        reply = reply_to_crash(request)
    if isinstance(reply, Stream):
        return await send_stream(
            request, reply, {**COMMON_HEADERS, **headers}, partial(reply_to_crash, request)
        )
    return write_reply(request, reply, headers)


def reply_to_crash(request: Request) -> Reply:
    """Answer for a fault of ours, and log it under a reference that the answer repeats."""
    reference = uuid.uuid4().hex[:12]
    _log.failure(
        "request {method} {path} failed, reference {reference}",
        method=request.method.decode("ascii", "replace"),
        path=loggable_path(request.path),
        reference=reference,
    )
    if isinstance(request, PacedRequest):
        request.reference = reference
    error = "the service failed; the cause is in its log under the reference"
    return json_reply({"error": error, "reference": reference}, INTERNAL_SERVER_ERROR)


VARY = {"Vary": "Accept-Encoding"}

MIN_COMPRESSED = 1_000
"""Bytes under which compressing is not worth it."""

MAX_COMPRESSED = 512 * 1024
"""Bytes over which compressing would hold up the others; an attachment is mostly compressed."""

COMPRESSION_LEVEL = 5


def accepts_gzip(request: Request) -> bool:
    """Tell whether a client takes gzip."""
    for word in ",".join(header_values(request, b"Accept-Encoding")).lower().split(","):
        coding, _, weight = word.partition(";")
        if coding.strip() in ("gzip", "*"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def compress(request: Request, reply: Reply) -> Reply:
    """Compress a reply where that pays and the client takes it."""
    if (
        not MIN_COMPRESSED <= len(reply.body) <= MAX_COMPRESSED
        or "Content-Encoding" in reply.headers
    ):
        return reply
    varies = {word.strip() for word in reply.headers.get("Vary", "").split(",")} - {""}
    headers = {**reply.headers, "Vary": ", ".join(sorted({*varies, VARY["Vary"]}))}
    if not accepts_gzip(request):
        return replace(reply, headers=headers)
    headers["Content-Encoding"] = "gzip"
    return replace(
        reply, body=gzip.compress(reply.body, COMPRESSION_LEVEL, mtime=0), headers=headers
    )


FALLBACK_NAME = "attachment"

_UNSAFE = re.compile(r'[^A-Za-z0-9._ -]|["\\]')
_MEDIA_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]{1,64}/[a-z0-9!#$&^_.+-]{1,64}(; charset=utf-8)?")


def download_reply(data: bytes, content_type: str, filename: str) -> Reply:
    """Make a response that a browser saves: RFC 6266 names, a sandbox, no sniffing.

    A content type that a mail made up and that is none is sent as plain bytes.
    """
    if _MEDIA_TYPE.fullmatch(content_type) is None:
        content_type = "application/octet-stream"
    plain = _UNSAFE.sub("_", filename).strip(". ") or FALLBACK_NAME
    encoded = quote(filename or FALLBACK_NAME, safe="", errors="replace")
    return Reply(
        200,
        data,
        content_type,
        {
            "Content-Disposition": f"attachment; filename=\"{plain}\"; filename*=UTF-8''{encoded}",
            "Content-Security-Policy": "sandbox; default-src 'none'",
        },
    )
