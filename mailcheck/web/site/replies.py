"""Replies as values, and the one place that writes them to a request."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from twisted.web.server import Request

from mailcheck.core.errors import ExpectedFailure, LimitExceeded, WaitInterrupted
from mailcheck.web.site.connection import PacedRequest
from mailcheck.web.site.errors import (
    NOT_NOW,
    TRY_AGAIN,
    UNAUTHORIZED,
    UNREAD,
    is_fault,
    status_of,
)
from mailcheck.wire.errors import Error
from mailcheck.wire.json_values import dump_json

COMMON_HEADERS = {
    # Nothing here is for a browser to guess at, to frame or to keep.
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}


UNREAD_RETRY = 5
"""Seconds after which an answer that there was no room for is worth asking for again."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One HTTP response; it always has a content type."""

    status: int
    body: bytes
    content_type: str
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def problem(self) -> str:
        """The error that it tells of, where that is JSON."""
        if not self.content_type.startswith("application/json"):
            return ""
        value = json.loads(self.body)
        return str(value.get("error", "")) if isinstance(value, dict) else ""


def json_reply(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    """Make a JSON response of a shape or of plain values."""
    return Reply(status, dump_json(value), "application/json; charset=utf-8", headers or {})


def error_reply(status: int, error: str, headers: Mapping[str, str] | None = None) -> Reply:
    """Make an error response (SPEC.md section 7)."""
    return json_reply(Error(error), status, headers)


def reply_to_failure(failure: ExpectedFailure) -> Reply:
    """Render an expected failure; one that is missing in the table is our own mistake."""
    status = status_of(failure)
    body = {"error": str(failure)}
    headers: dict[str, str] = {}
    if isinstance(failure, LimitExceeded):
        headers["Retry-After"] = str(failure.retry_after)
    if status == NOT_NOW:
        headers["Retry-After"] = str(TRY_AGAIN)
    if status == UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(failure, WaitInterrupted) and failure.cursor is not None:
        body["cursor"] = failure.cursor
    return json_reply(body, status, headers)


def write_reply(request: Request, reply: Reply, more_headers: Mapping[str, str]) -> bytes:
    """Set status and headers of a request, and give the body to send.

    It is 503 instead where too much that was sent earlier has not been read.
    """
    if isinstance(request, PacedRequest) and not request.make_room_for(reply.body):
        reply = _unread_reply()
    if isinstance(request, PacedRequest) and is_fault(reply.status):
        request.problem = reply.problem
    request.setResponseCode(reply.status)
    set_header = request.responseHeaders.setRawHeaders
    for name, value in all_headers(reply, more_headers).items():
        set_header(name, [value])
    return reply.body


def all_headers(reply: Reply, more_headers: Mapping[str, str]) -> dict[str, str]:
    """Give the headers of a reply with those that every one has, in their order."""
    return {
        **COMMON_HEADERS,
        **reply.headers,
        **more_headers,
        "Content-Type": reply.content_type,
        "Content-Length": str(len(reply.body)),
    }


def _unread_reply() -> Reply:
    return error_reply(
        UNREAD,
        "too much is on its way to you, or to all clients: read it first, then try again",
        {"Retry-After": str(UNREAD_RETRY)},
    )
