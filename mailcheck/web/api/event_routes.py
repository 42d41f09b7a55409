"""The route of the events of an inbox (docs/reference/contract.md)."""

from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from msgspec.structs import replace
from twisted.internet.interfaces import IReactorTime

from mailcheck.api.errors import Interrupted
from mailcheck.api.inbox.messages import render_listed_message, render_refusal
from mailcheck.api.openapi.operations import Body, Operation, Parameter, Response, json_body
from mailcheck.api.requests.fields import CURSOR
from mailcheck.api.requests.inbox import FollowInbox as FollowRequest
from mailcheck.api.shapes import string_schema
from mailcheck.api.urls import PublicUrls
from mailcheck.core.cursors import CURSOR_PATTERN, format_cursor
from mailcheck.core.errors import ExpectedFailure
from mailcheck.core.messages import ListedMessage, StoredMessage
from mailcheck.operations.inbox.follow_inbox import (
    HEARTBEAT,
    Event,
    FollowInbox,
    MailRefused,
    MessageArrived,
)
from mailcheck.web.api.calls import COMMON_ERRORS, Call, Route
from mailcheck.web.site.event_streams import Stream, make_stream, write_event

_LAST_EVENT_ID = Parameter(
    "Last-Event-ID",
    "header",
    "The `id` of the last event that was got: it goes on from there, whatever `after` says. "
    "Browsers and other clients of server-sent events send it by themselves.",
    {**string_schema(), "pattern": CURSOR_PATTERN},
)

EVENTS = Operation(
    "followInbox",
    "Inbox",
    "Be told of each message as it comes",
    "Server-sent events. `message` has a message as in a list, each once and in order; its `id` "
    "is the cursor to go on from. `refused` has a mail that may have been one of those and was "
    "refused, as in `rejected`; it has no `id`. At first, and after "
    f"{HEARTBEAT:g} seconds without one, an `id` alone says up to where all was told. "
    "`closed` says why the stream ends. Who connects again with the last `id` misses nothing and "
    "gets no message twice. A stream takes a place among the waits of its key, ends when that is "
    "revoked, and is cut off where its client reads nothing for 30 seconds.",
    {
        200: Response("The events.", [Body(media_type="text/event-stream")]),
        503: Response(
            "The service shuts down, or its store does not answer: connect again.",
            [json_body("interrupted", Interrupted)],
            COMMON_ERRORS[503].headers,
        ),
    },
    FollowRequest,
    headers=(_LAST_EVENT_ID,),
)


class EventRoutes:
    """Parameters in, operation, events out; no rule of its own."""

    def __init__(self, follow: FollowInbox, clock: IReactorTime) -> None:
        self._follow = follow
        self._clock = clock
        self._written: WeakKeyDictionary[StoredMessage, tuple[PublicUrls, bytes]] = (
            WeakKeyDictionary()
        )

    def routes(self) -> list[Route[Any]]:
        """List the one route."""
        return [Route("GET", "/inbox/events", self.events, EVENTS)]

    async def events(self, call: Call[FollowRequest]) -> Stream:
        """GET /inbox/events."""
        wanted = call.request.wanted
        if call.last_event_id:
            wanted = replace(wanted, after=CURSOR.parse("Last-Event-ID", call.last_event_id))
        events = self._follow.follow(call.caller, wanted, call.request.seconds)
        # What is wrong with it is an answer of its own: the stream begins when it is known.
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
        """Write a message; once for all who get it."""
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
