"""HTTP transport of MCP: a posted message is answered with JSON or with an event stream."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.web.server import Request as HttpRequest

from mailcheck.core.instants import Instant
from mailcheck.operations.concurrency import stop_timer
from mailcheck.web.mcp.json_rpc import (
    Message,
    Request,
    RequestId,
    RpcError,
    UnreadableMessage,
    parse_message,
    render_error,
    render_notification,
    render_result,
)
from mailcheck.web.mcp.protocol_modes import ProtocolMode, RoutingHeaders, http_status
from mailcheck.web.site.failures import (
    CONTENT_TOO_LARGE,
    METHOD_NOT_ALLOWED,
    NOT_ACCEPTABLE,
    SERVER_ERRORS,
    UNAUTHORIZED,
    UNSUPPORTED_MEDIA_TYPE,
)
from mailcheck.web.site.replies import COMMON_HEADERS, Reply, write_reply
from mailcheck.web.site.requests import MAX_BODY, BoundedRequest, PacedRequest, header_values

PING_INTERVAL = 15.0
"""Seconds between pings. Proxies close idle connections after 30 or 60 seconds."""

FIRST_PROGRESS = 0.5
"""Seconds until the first progress notification. A faster call is answered with plain JSON."""

PROGRESS_INTERVAL = 5.0
"""Seconds between progress notifications. The documented maximum is 10."""

PING = b": ping\r\n\r\n"

_STREAM_HEADERS = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-store, no-transform",
    "X-Accel-Buffering": "no",  # otherwise nginx buffers the events
}


class ProgressChannel(Protocol):
    """Sends progress of a tool call to its client."""

    def announce(self, seconds: float, what: str) -> None:
        """Announce how many seconds the answer may take, and what the call is doing."""


class NoProgress:
    """The progress channel of a client that does not accept events."""

    def announce(self, seconds: float, what: str) -> None:
        """Do nothing."""


class EventStream:
    """The event stream of one call. It begins with the first ping or progress notification."""

    def __init__(
        self,
        request: HttpRequest,
        headers: Mapping[str, str],
        progress_token: RequestId | None,
        clock: IReactorTime,
    ) -> None:
        self.has_begun = False
        self._request = request
        self._headers = headers
        self._token = progress_token
        self._clock = clock
        self._began_at = clock.seconds()
        self._total = 0.0
        self._what = ""
        self._next: IDelayedCall | None = clock.callLater(PING_INTERVAL, self._ping)

    def announce(self, seconds: float, what: str) -> None:
        """Report progress from now on if the client requested it."""
        if self._token is None:
            return
        self._total, self._what = seconds, what
        self._schedule(FIRST_PROGRESS, self._report)

    def finish(self, message: bytes) -> None:
        """Send the answer as the last event of a stream that has begun."""
        self._send_event(message)
        self._request.finish()

    def abandon(self) -> None:
        """End the stream without an answer, because the client has cancelled the request."""
        self._request.finish()

    def stop(self) -> None:
        """Stop pings and progress notifications."""
        stop_timer(self._next)
        self._next = None

    def _ping(self) -> None:
        self._begin()
        self._request.write(PING)
        self._next = self._clock.callLater(PING_INTERVAL, self._ping)

    def _report(self) -> None:
        elapsed = round(self._clock.seconds() - self._began_at, 3)
        progress = {
            "progressToken": self._token,
            "progress": elapsed,
            "total": max(self._total, elapsed),
            "message": self._what,
        }
        self._send_event(render_notification("notifications/progress", progress))
        self._next = self._clock.callLater(PROGRESS_INTERVAL, self._report)

    def _schedule(self, delay: float, call: Callable[[], None]) -> None:
        self.stop()
        self._next = self._clock.callLater(delay, call)

    def _send_event(self, message: bytes) -> None:
        self._begin()
        self._request.write(b"event: message\r\ndata: %b\r\n\r\n" % message)

    def _begin(self) -> None:
        if self.has_begun:
            return
        self.has_begun = True
        self._request.setResponseCode(200)
        for headers in (COMMON_HEADERS, self._headers, _STREAM_HEADERS):
            for name, value in headers.items():
                self._request.responseHeaders.setRawHeaders(name, [value])


JSON = "application/json"
EVENTS = "text/event-stream"


class McpExchange:
    """One posted message and its response.

    :param challenge: returns the value of WWW-Authenticate for an error.
    """

    def __init__(
        self,
        http: HttpRequest,
        clock: IReactorTime,
        received_at: Instant,
        challenge: Callable[[RpcError], str],
    ) -> None:
        self.http = http
        self.received_at = received_at
        self.headers: dict[str, str] = {}
        self.mode: ProtocolMode | None = None
        self.is_gone = False
        self._clock = clock
        self._challenge = challenge
        self._request_id: RequestId | None = None
        self._stream: EventStream | None = None

    def header(self, name: bytes) -> list[str]:
        """Return the values of a header, without surrounding whitespace (RFC 9110 5.5)."""
        return [value.strip() for value in header_values(self.http, name)]

    def parameter(self, name: bytes) -> list[str]:
        """Return the values of a parameter of the URL."""
        return [value.decode("utf-8", "replace") for value in (self.http.args or {}).get(name, ())]

    def routing_headers(self) -> RoutingHeaders:
        """Return the headers that repeat the body."""
        return RoutingHeaders(
            version=self.header(b"MCP-Protocol-Version"),
            method=self.header(b"Mcp-Method"),
            name=self.header(b"Mcp-Name"),
        )

    def read(self) -> Message:
        """Read the message.

        :raises RpcError: it is not a POST, or cannot be parsed.
        """
        if self.http.method != b"POST":
            self.headers["Allow"] = "POST"
            raise RpcError(METHOD_NOT_ALLOWED, "send a POST: other methods are not supported")
        if isinstance(self.http, BoundedRequest) and self.http.is_too_large:
            raise RpcError(CONTENT_TOO_LARGE, f"a message must have at most {MAX_BODY:,} bytes")
        if _media_types(self.header(b"Content-Type")) != [JSON]:
            raise RpcError(UNSUPPORTED_MEDIA_TYPE, f"Content-Type must be {JSON}")
        if not self._accepts(JSON):
            raise RpcError(
                NOT_ACCEPTABLE, f"Accept must contain {JSON}, and {EVENTS} for event streams"
            )
        assert self.http.content is not None
        try:
            message = parse_message(self.http.content.read())
        except UnreadableMessage as error:
            self._request_id = error.request_id
            raise
        if isinstance(message, Request):
            self._request_id = message.id
        return message

    def open_progress_stream(self, progress_token: Any) -> ProgressChannel:
        """Prepare to send progress of the call to the client."""
        if not self._accepts(EVENTS):
            return NoProgress()
        is_token = isinstance(progress_token, str | int) and not isinstance(progress_token, bool)
        token = progress_token if is_token else None
        self._stream = EventStream(self.http, self.headers, token, self._clock)
        return self._stream

    def answer(self, result: bytes) -> None:
        """Send the result of the request."""
        assert self._request_id is not None
        self._finish(200, render_result(self._request_id, result))

    def send_error(self, error: RpcError) -> None:
        """Send an error response."""
        status = http_status(error, self.mode)
        if status == UNAUTHORIZED or error.scopes:
            self.headers["WWW-Authenticate"] = self._challenge(error)
        if error.retry_after is not None:
            self.headers["Retry-After"] = str(error.retry_after)
        if status in SERVER_ERRORS and isinstance(self.http, PacedRequest):
            self.http.problem, self.http.reference = error.message, error.reference
        self._finish(status, render_error(self._request_id, error))

    def accept(self) -> None:
        """Accept a message that needs no response, or a request that was cancelled."""
        if self._stream is not None and self._stream.has_begun:
            self._stream.abandon()
        else:
            self._finish(202, b"")

    def send(self, reply: Reply) -> None:
        """Send a reply that is not a message."""
        if not self.is_gone:
            self.http.write(write_reply(self.http, reply, self.headers))
            self.http.finish()

    def stop(self) -> None:
        """Stop pings and progress notifications: the response is sent or the client is gone."""
        if self._stream is not None:
            self._stream.stop()

    def _finish(self, status: int, body: bytes) -> None:
        if self._stream is not None and self._stream.has_begun and not self.is_gone:
            self._stream.finish(body)
        else:
            self.send(Reply(status, body, JSON))

    def _accepts(self, media_type: str) -> bool:
        accepted = _media_types(self.header(b"Accept")) or ["*/*"]
        return any(
            wanted in accepted for wanted in (media_type, media_type.split("/")[0] + "/*", "*/*")
        )


def _media_types(values: list[str]) -> list[str]:
    """Return media types without parameters. ``q=0`` excludes one (RFC 9110 12.4.2)."""
    found = []
    for entry in ",".join(values).split(","):
        media_type, *parameters = (part.strip().lower() for part in entry.split(";"))
        if media_type and "q=0" not in parameters:
            found.append(media_type)
    return found
