"""Answers that go on: server-sent events (HTML Living Standard, section 9.2)."""

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

EVENT_STREAM = "text/event-stream; charset=utf-8"

STALL_TIMEOUT = 30.0
"""Seconds in which a client must read something of 64 KiB that wait for it, or is hung up on."""

RETRY, RETRY_LATER = 1_000, 15_000
"""Milliseconds after which a client comes again; later where it was refused."""

T = TypeVar("T")


class Stream(Struct, frozen=True):
    """A response that goes on: ``run`` writes to the request until it has ended."""

    content_type: str
    run: Callable[[Request], Awaitable[None]]


@implementer(IPushProducer)
class _Pace:
    """Learns that a client has read what there is."""

    def __init__(self) -> None:
        self.caught_up: Deferred[None] = Deferred()

    def pauseProducing(self) -> None:  # noqa: N802
        """Do nothing: nothing is written meanwhile."""

    def resumeProducing(self) -> None:  # noqa: N802
        """Take note that it has caught up."""
        if not self.caught_up.called:
            self.caught_up.callback(None)

    def stopProducing(self) -> None:  # noqa: N802
        """Do nothing: who writes is told by the request."""


def write_event(kind: str = "", data: object = None, cursor: str = "") -> bytes:
    """Write an event; one without data only tells the client where to go on (``id``)."""
    lines = [f"id: {cursor}".encode()] if cursor else []
    if kind:
        # JSON has no line breaks outside of its escapes: it can't end the event early.
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
    """Make a stream of events, of which the first is known, as fast as its client reads them.

    Nothing is heaped up for who does not read: he comes again with the last event that he has
    got. ``write_ending`` says why the stream ends where it should go on.
    """

    async def run(request: Request) -> None:
        async with aclosing(events):
            if request.method == b"HEAD":
                return
            request.write(b"retry: %d\n\n" % RETRY + write(first))
            request.responseHeaders = _SENT
            try:
                async for event in events:
                    await _keep_pace(request, clock)
                    request.write(write(event))
            except DeferredTimeout:
                channel: Any = request.channel
                channel.hang_up()
            except ExpectedFailure as failure:
                request.write(b"retry: %d\n" % RETRY_LATER)
                request.write(write_ending(failure))

    return Stream(EVENT_STREAM, run)


_SENT = Headers()
"""In place of a head that was sent: thousands of streams would keep theirs."""


async def _keep_pace(request: Request, clock: IReactorTime) -> None:
    """Wait until a connection that is full is empty."""
    channel: Any = request.channel
    if channel is None or not channel.is_full:
        return
    pace = _Pace()
    request.registerProducer(pace, True)
    try:
        await pace.caught_up.addTimeout(STALL_TIMEOUT, clock)
    finally:
        if request.channel is not None:  # it goes when the client does
            request.unregisterProducer()


async def send_stream(
    request: Request, stream: Stream, headers: Mapping[str, str], when_crashed: Callable[[], object]
) -> bytes:
    """Send the head of a stream, and the stream; gives what is left to be sent, which is nothing.

    ``headers`` are all that it has beside its own. ``when_crashed`` is called in place of an
    answer: that has begun.
    """
    request.setResponseCode(200)
    # nginx would keep events back.
    more = {"Content-Type": stream.content_type, "X-Accel-Buffering": "no"}
    for name, value in {**headers, **more}.items():
        request.responseHeaders.setRawHeaders(name, [value])
    try:
        await stream.run(request)
    except CancelledError:
        pass  # the client has gone
    except Exception:
        when_crashed()
    return b""
