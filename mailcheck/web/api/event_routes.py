"""The route of the events of an inbox (DECISIONS.md section 4)."""

from functools import partial
from weakref import WeakKeyDictionary

from msgspec.structs import replace
from twisted.internet.interfaces import IReactorTime

from mailcheck.core.cursors import format_cursor
from mailcheck.core.errors import ExpectedFailure
from mailcheck.core.messages import ListedMessage, StoredMessage
from mailcheck.operations.inbox.follow_inbox import Arrived, Event, FollowInbox, Refused
from mailcheck.operations.ranges import LONGEST_STREAM, SHORTEST_WAIT
from mailcheck.web.api import described_events as described
from mailcheck.web.api.calls import Call, Route
from mailcheck.web.site.event_streams import Stream, stream_of, write_event
from mailcheck.wire.inbox.messages import render_listed_message, render_refusal
from mailcheck.wire.urls import PublicUrls


class EventRoutes:
    """Parameters in, operation, events out; no rule of its own."""

    def __init__(self, follow: FollowInbox, clock: IReactorTime) -> None:
        self._follow = follow
        self._clock = clock
        self._written: WeakKeyDictionary[StoredMessage, tuple[PublicUrls, bytes]] = (
            WeakKeyDictionary()
        )

    def routes(self) -> list[Route]:
        """List the one route."""
        return [Route("GET", "/inbox/events", self.events, described.EVENTS)]

    async def events(self, call: Call) -> Stream:
        """GET /inbox/events."""
        wanted = replace(
            call.query.wait_filter(), after=call.query.cursor_to_go_on_from(call.last_event_id)
        )
        seconds = call.query.seconds("seconds", SHORTEST_WAIT, LONGEST_STREAM, 0) or None
        events = self._follow.follow(call.caller, wanted, seconds)
        # What is wrong with it is an answer of its own: the stream begins when it is known.
        first = await anext(events)
        write = partial(self._write, call.urls)
        return stream_of(events, first, write, self._clock, _write_ending)

    def _write(self, urls: PublicUrls, event: Event) -> bytes:
        if isinstance(event, Refused):
            return write_event("refused", render_refusal(event.refusal))
        if isinstance(event, Arrived):
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
