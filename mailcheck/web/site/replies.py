"""Replies as values, and the functions that send them.

Every request is answered with the reply of its handler, with an expected failure, or with a 500
that contains only a reference.
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
from mailcheck.api.shapes import dump_json, dump_json_in_chunks
from mailcheck.core.errors import ExpectedFailure, WaitInterrupted
from mailcheck.operations.concurrency import PacedQueue
from mailcheck.web.site.event_streams import Stream, send_stream
from mailcheck.web.site.failures import (
    BUFFERS_FULL,
    SERVER_ERRORS,
    Crash,
    Problem,
    problem_of,
)
from mailcheck.web.site.requests import PacedRequest, header_values, loggable_path

COMMON_HEADERS = {
    # Browsers must not guess the type of a response, show it in a frame, or cache it.
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}


JSON = "application/json; charset=utf-8"

UNREAD_RETRY = 5
"""Seconds until a client should retry after its response could not be buffered."""


class Reply(Struct, frozen=True):
    """An HTTP response, which always has a content type.

    ``cookies`` are the values of Set-Cookie. ``reference`` identifies the cause of a failure in
    the log.
    """

    status: int
    body: bytes
    content_type: str
    headers: Mapping[str, str] = field(default_factory=dict)
    cookies: Sequence[str] = ()
    reference: str = ""

    @property
    def problem(self) -> str:
        """The error message of a JSON reply, or an empty string."""
        if not self.content_type.startswith("application/json"):
            return ""
        value = json.loads(self.body)
        return str(value.get("error", "")) if isinstance(value, dict) else ""


def json_reply(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    """Create a JSON reply from a shape or plain values."""
    return Reply(status, dump_json(value), JSON, headers or {})


async def large_json_reply(
    value: object, turns: PacedQueue, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Reply:
    """Create a JSON reply from a value with long texts, in chunks that take turns."""
    body = await dump_json_in_chunks(value, turns.wait)
    return Reply(status, body, JSON, headers or {})


def error_reply(status: int, error: str, headers: Mapping[str, str] | None = None) -> Reply:
    """Create an error reply (docs/reference/contract.md)."""
    return json_reply(Error(error), status, headers)


def write_error(problem: Problem) -> Reply:
    """Create the reply to a problem in the format of mailcheck (docs/reference/contract.md)."""
    body, failure = {"error": problem.sentence}, problem.failure
    if isinstance(failure, WaitInterrupted) and failure.cursor is not None:
        body["cursor"] = failure.cursor
    if isinstance(failure, Crash):
        body["reference"] = failure.reference
    reply = json_reply(body, problem.status, problem.headers)
    return replace(reply, reference=problem.reference)


def reply_to_failure(failure: ExpectedFailure) -> Reply:
    """Create the reply to an expected failure in the format of mailcheck."""
    return write_error(problem_of(failure))


def write_reply(request: Request, reply: Reply, more_headers: Mapping[str, str]) -> bytes:
    """Set the status and headers of a response, and return the body to send.

    If the body cannot be buffered, the response is a 503 instead.
    """
    if isinstance(request, PacedRequest) and not request.make_room_for(reply.body):
        reply = _buffers_full_reply()
    set_failure(request, reply)
    # Twisted does not know the phrases of all statuses, such as 429.
    phrase = HTTPStatus(reply.status).phrase
    request.setResponseCode(reply.status, phrase.encode("ascii"))
    set_header = request.responseHeaders.setRawHeaders
    for name, value in all_headers(reply, more_headers).items():
        set_header(name, [value])
    if reply.cookies:
        set_header("Set-Cookie", reply.cookies)
    return reply.body


def set_failure(request: Request, reply: Reply) -> None:
    """Store the problem and reference of an error on the request, for the log."""
    if isinstance(request, PacedRequest) and reply.status in SERVER_ERRORS:
        request.problem = reply.problem or request.problem
        request.reference = reply.reference or request.reference


def all_headers(reply: Reply, more_headers: Mapping[str, str]) -> dict[str, str]:
    """Return all headers of a reply in the order of sending."""
    return {
        **COMMON_HEADERS,
        **reply.headers,
        **more_headers,
        "Content-Type": reply.content_type,
        "Content-Length": str(len(reply.body)),
    }


def reply_as_bytes(reply: Reply) -> bytes:
    """Format a complete response, for connections without a valid request."""
    lines = [f"{name}: {value}\r\n" for name, value in all_headers(reply, {}).items()]
    status = HTTPStatus(reply.status)
    head = "".join([f"HTTP/1.1 {status.value} {status.phrase}\r\n", *lines, "\r\n"])
    return head.encode("ascii") + reply.body


def _buffers_full_reply() -> Reply:
    return error_reply(
        BUFFERS_FULL,
        "the response buffers of this client or of all clients are full: read the data, then retry",
        {"Retry-After": str(UNREAD_RETRY)},
    )


_log = Logger()

MoreHeaders = dict[str, str]


async def respond(
    request: Request, handle: Callable[[MoreHeaders], Awaitable[Reply | Stream]]
) -> bytes:
    """Run a handler and send its reply. Return the body.

    The handler may add headers to the dictionary that it receives. They are sent even if it fails.
    """
    headers: MoreHeaders = {}
    try:
        reply = await handle(headers)
    except CancelledError:
        return b""  # the client has disconnected
    except ExpectedFailure as failure:
        reply = reply_to_failure(failure)
    except Exception:
        reply = reply_to_failure(log_crash(request))
    if isinstance(reply, Stream):
        return await send_stream(
            request, reply, {**COMMON_HEADERS, **headers}, partial(log_crash, request)
        )
    return write_reply(request, reply, headers)


def log_crash(request: Request) -> Crash:
    """Log the exception that is being handled, and return a failure with its reference only."""
    crash = Crash("internal error; its cause is in the log of the service under the reference")
    crash.reference = uuid.uuid4().hex[:12]
    _log.failure(
        "request {method} {path} failed, reference {reference}",
        method=request.method.decode("ascii", "replace"),
        path=loggable_path(request.path),
        reference=crash.reference,
    )
    if isinstance(request, PacedRequest):
        request.reference = crash.reference
    return crash


VARY = {"Vary": "Accept-Encoding"}

MIN_COMPRESSED = 1_000
"""Minimum number of bytes of a compressed body."""

MAX_COMPRESSED = 512 * 1024
"""Maximum number of bytes of a compressed body. Larger ones, mostly attachments, take too long."""

COMPRESSION_LEVEL = 5


def accepts_gzip(request: Request) -> bool:
    """Return whether the client accepts gzip."""
    for word in ",".join(header_values(request, b"Accept-Encoding")).lower().split(","):
        coding, _, weight = word.partition(";")
        if coding.strip() in ("gzip", "*"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def compress(request: Request, reply: Reply) -> Reply:
    """Compress a reply if its size is suitable and the client accepts gzip."""
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
_MEDIA_TYPE = re.compile(
    r"[a-z0-9!#$&^_.+-]{1,64}/[a-z0-9!#$&^_.+-]{1,64}(; charset=[a-z0-9_.:-]{1,40})?"
)


def download_reply(data: bytes, content_type: str, filename: str) -> Reply:
    """Create a reply that a browser saves and does not open: a file name (RFC 6266), a sandbox.

    An invalid content type of a mail is replaced by ``application/octet-stream``.
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
            # A share link leads to the files of a mail, which no search engine should list.
            "X-Robots-Tag": "noindex, nofollow",
        },
    )
