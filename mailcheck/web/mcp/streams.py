"""The answer to one call: plain JSON, or an event stream once there is something to say before it.

A call that is short, and most are, is answered in JSON. One that lasts turns
into ``text/event-stream``: with progress for the client that asked for it, with
comments that keep connections open for any other.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.web.server import Request

from mailcheck.web.mcp.json_rpc import RequestId, render_notification
from mailcheck.web.site.replies import COMMON_HEADERS

QUIET = 15.0
"""Seconds without a word: proxies close connections after 30 or 60."""

FIRST_PROGRESS = 0.5
"""Seconds until the first progress: what is faster is answered in plain JSON."""

PROGRESS_INTERVAL = 5.0
"""Seconds between progress notifications; clients are promised one every 10."""

PING = b": ping\r\n\r\n"

_STREAM_HEADERS = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-store, no-transform",
    "X-Accel-Buffering": "no",  # nginx would keep events back
}


class Channel(Protocol):
    """What a tool call may tell its client before it is answered."""

    def expect(self, seconds: float, what: str) -> None:
        """Say that the answer may take so long, and what is waited for."""


class Silence:
    """The channel of a client that takes no events."""

    def expect(self, seconds: float, what: str) -> None:
        """Say nothing."""


class EventStream:
    """The events of one call; begins by itself when the call lasts."""

    def __init__(
        self,
        request: Request,
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
        self._next: IDelayedCall | None = clock.callLater(QUIET, self._ping)

    def expect(self, seconds: float, what: str) -> None:
        """Report progress from now on, where the client wants to hear of it."""
        if self._token is None:
            return
        self._total, self._what = seconds, what
        self._schedule(FIRST_PROGRESS, self._report)

    def finish(self, message: bytes) -> None:
        """Send the answer as the last event of a stream that has begun."""
        self._send_event(message)
        self._request.finish()

    def abandon(self) -> None:
        """End without an answer: the client has taken its request back."""
        self._request.finish()

    def stop(self) -> None:
        """Say nothing more by itself."""
        if self._next is not None and self._next.active():
            self._next.cancel()
        self._next = None

    def _ping(self) -> None:
        self._begin()
        self._request.write(PING)
        self._next = self._clock.callLater(QUIET, self._ping)

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
