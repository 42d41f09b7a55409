"""The event stream of an inbox (docs/reference/contract.md)."""

from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from msgspec.structs import replace
from twisted.internet.interfaces import IReactorTime

from mailcheck.api.errors import Interrupted
from mailcheck.api.inbox.messages import render_listed_message, render_refusal
from mailcheck.api.openapi.operations import Body, Operation, Parameter, Response, json_response
from mailcheck.api.requests.fields import CURSOR
from mailcheck.api.requests.inbox import FollowInbox as FollowRequest
from mailcheck.api.shapes import string_schema
from mailcheck.api.urls import PublicUrls
from mailcheck.core.cursors import CURSOR_PATTERN, format_cursor
from mailcheck.core.errors import ExpectedFailure
from mailcheck.core.messages import ListedMessage, StoredMessage
from mailcheck.core.rights import Scope
from mailcheck.operations.inbox.follow_inbox import (
    HEARTBEAT,
    Event,
    FollowInbox,
    MailRefused,
    MessageArrived,
)
from mailcheck.web.api.calls import COMMON_ERRORS, Route, make_route
from mailcheck.web.site import costs
from mailcheck.web.site.application import Call
from mailcheck.web.site.event_streams import Stream, make_stream, write_event

_LAST_EVENT_ID = Parameter(
    "Last-Event-ID",
    "header",
    "The `id` of the last received event. The stream continues after it and ignores `after`. "
    "Browsers and other clients of server-sent events send it automatically.",
    {**string_schema(), "pattern": CURSOR_PATTERN},
)

EVENTS = Operation(
    "followInbox",
    (Scope.INBOX_READ,),
    "Inbox",
    "Stream new messages as events",
    "Server-sent events. A `message` event contains a message as in a list, each once and in "
    "order; its `id` is the cursor to continue from. A `refused` event contains a rejected mail "
    "that may have matched, as in `rejected`, and has no `id`. At the beginning, and after "
    f"{HEARTBEAT:g} seconds without an event, an `id` alone contains the current position. "
    "A `closed` event contains the reason why the stream ends. A client that reconnects with the "
    "last `id` misses no message and receives none twice. A stream counts as a wait of its key and "
    "ends when the key is revoked. It is aborted if the client does not read for 30 seconds.",
    answer=Response("The events.", [Body(media_type="text/event-stream")]),
    errors={
        503: json_response(
            "The service is shutting down, or its store is unavailable: connect again.",
            "interrupted",
            Interrupted,
            headers=COMMON_ERRORS[503].headers,
        )
    },
    request=FollowRequest,
    headers=(_LAST_EVENT_ID,),
)


class EventRoutes:
    """The handler of the event stream, which renders the events of an operation."""

    def __init__(self, follow: FollowInbox, clock: IReactorTime) -> None:
        self._follow = follow
        self._clock = clock
        self._written: WeakKeyDictionary[StoredMessage, tuple[PublicUrls, bytes]] = (
            WeakKeyDictionary()
        )

    def routes(self) -> list[Route[Any]]:
        """List the route."""
        return [make_route("GET", "/inbox/events", self.events, EVENTS, costs.FREE)]

    async def events(self, call: Call[FollowRequest]) -> Stream:
        """GET /inbox/events."""
        wanted = call.request.wanted
        last_event_id = call.headers.get("last-event-id", "")
        if last_event_id:
            wanted = replace(wanted, after=CURSOR.parse("Last-Event-ID", last_event_id))
        events = self._follow.follow(call.caller, wanted, call.request.seconds)
        # A failure before the first event gets a separate response, not an event.
        first = await anext(events)
        write = partial(self._write, call.urls)
        return make_stream(events, first, write, self._clock, _write_ending)

    def _write(self, urls: PublicUrls, event: Event) -> bytes:
        if isinstance(event, MailRefused):
            return write_event("refused", render_refusal(event.refusal))
        if isinstance(event, MessageArrived):
            return self._write_message(urls, event.message)
        return write_event(cursor=format_cursor(event.cursor))

    def _write_message(self, urls: PublicUrls, message: StoredMessage) -> bytes:
        """Format a message, once for all clients that receive it."""
        known = self._written.get(message)
        if known is not None and known[0] == urls:
            return known[1]
        listed = ListedMessage(message.summary, message.content.extracted)
        cursor = format_cursor(message.summary.position)
        written = write_event("message", render_listed_message(listed, urls), cursor)
        self._written[message] = (urls, written)
        return written


def _write_ending(failure: ExpectedFailure) -> bytes:
    return write_event("closed", {"error": str(failure)})
