"""Responses that are streams of server-sent events (HTML Living Standard, section 9.2)."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any, TypeVar

from msgspec import Struct
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.defer import TimeoutError as DeferredTimeout
from twisted.internet.interfaces import IPushProducer, IReactorTime
from twisted.web.http_headers import Headers
from twisted.web.server import Request
from zope.interface import implementer

from mailcheck.api.shapes import dump_json
from mailcheck.core.errors import ExpectedFailure
from mailcheck.web.site.requests import PacedRequest

EVENT_STREAM = "text/event-stream; charset=utf-8"

STALL_TIMEOUT = 30.0
"""Seconds in which a client must read some of the 64 KiB in its buffer. Then it is disconnected."""

RETRY, RETRY_LATER = 1_000, 15_000
"""Milliseconds until a client reconnects, and the longer delay after a rejection."""

T = TypeVar("T")


_SENT = Headers()
"""Replaces the sent headers of a stream, to save memory when there are thousands of streams."""


class Stream(Struct, frozen=True):
    """A response that is a stream. ``run`` writes to the request until the stream has ended."""

    content_type: str
    run: Callable[[Request], Awaitable[None]]


@implementer(IPushProducer)
class _ReadWatcher:
    """A producer that is resumed when the client has read the buffered data."""

    def __init__(self) -> None:
        self.caught_up: Deferred[None] = Deferred()

    def pauseProducing(self) -> None:  # noqa: N802
        """Do nothing, because no data is written while the watcher is registered."""

    def resumeProducing(self) -> None:  # noqa: N802
        """Report that the client has read all data."""
        if not self.caught_up.called:
            self.caught_up.callback(None)

    def stopProducing(self) -> None:  # noqa: N802
        """Do nothing, because the request notifies the writer of a disconnect."""


def write_event(kind: str = "", data: object = None, cursor: str = "") -> bytes:
    """Format an event. Without data, it only gives the client a position to continue from."""
    lines = [f"id: {cursor}".encode()] if cursor else []
    if kind:
        # Encoded JSON contains no line breaks, so it cannot end the event early.
        lines += [b"event: " + kind.encode(), b"data: " + dump_json(data)]
    else:
        lines.append(b": nothing new")
    return b"\n".join(lines) + b"\n\n"


def make_stream(
    events: AsyncGenerator[T, None],
    first: T,
    write: Callable[[T], bytes],
    clock: IReactorTime,
    write_ending: Callable[[ExpectedFailure], bytes],
) -> Stream:
    """Create a stream of events that is sent as fast as the client reads it.

    ``first`` is the first event. Events are not buffered for a client that does not read: it is
    disconnected, and reconnects with the id of its last event. ``write_ending`` formats the
    reason if the stream ends unexpectedly.
    """

    async def run(request: Request) -> None:
        async with aclosing(events):
            if request.method == b"HEAD":
                return
            request.write(b"retry: %d\n\n" % RETRY + write(first))
            request.responseHeaders = _SENT
            try:
                async for event in events:
                    await wait_until_read(request, clock)
                    request.write(write(event))
            except DeferredTimeout:
                channel: Any = request.channel
                channel.hang_up()
            except ExpectedFailure as failure:
                request.write(b"retry: %d\n" % RETRY_LATER)
                request.write(write_ending(failure))

    return Stream(EVENT_STREAM, run)


async def wait_until_read(request: Request, clock: IReactorTime) -> None:
    """If the write buffer of the connection is full, wait until the client has read it.

    :raises DeferredTimeout: the client does not read, or too much data waits unread.
    """
    channel: Any = request.channel
    if channel is None or not channel.is_full:
        return
    assert isinstance(request, PacedRequest)
    release = request.hold_unread()
    if release is None:
        raise DeferredTimeout
    watcher = _ReadWatcher()
    request.registerProducer(watcher, True)
    try:
        await watcher.caught_up.addTimeout(STALL_TIMEOUT, clock)
    finally:
        release()
        if request.channel is not None:  # it is None after a disconnect
            request.unregisterProducer()


async def send_stream(
    request: Request, stream: Stream, headers: Mapping[str, str], on_crash: Callable[[], object]
) -> bytes:
    """Send the headers of a stream and its events. Return an empty body, because all is sent.

    ``headers`` are sent in addition to those of every stream. ``on_crash`` is called after an
    internal error, because the response has begun and cannot be replaced.
    """
    request.setResponseCode(200)
    # X-Accel-Buffering keeps nginx from buffering the events.
    more = {"Content-Type": stream.content_type, "X-Accel-Buffering": "no"}
    for name, value in {**headers, **more}.items():
        request.responseHeaders.setRawHeaders(name, [value])
    try:
        await stream.run(request)
    except CancelledError:
        pass  # the client has disconnected
    except Exception:
        on_crash()
    return b""
