"""Event stream of new messages, for the page of the inbox."""

from functools import partial

from msgspec import Struct
from twisted.internet.interfaces import IReactorTime

from mailcheck.api.inbox.messages import render_refusal
from mailcheck.api.requests.fields import CURSOR, RECIPIENT, TAG
from mailcheck.core.cursors import Position, format_cursor
from mailcheck.core.filters import MessageFilter
from mailcheck.core.messages import ListedMessage
from mailcheck.operations.inbox.follow_inbox import (
    Event,
    FollowInbox,
    MailRefused,
    MessageArrived,
)
from mailcheck.operations.inbox.messages import ReadInbox
from mailcheck.web.dashboard.live import KEEP_ALIVE, LONGEST_STREAM, live_caller, open_stream
from mailcheck.web.dashboard.rendering import Renderer, name_subject
from mailcheck.web.dashboard.visits import Page, Visit
from mailcheck.web.site import costs
from mailcheck.web.site.event_streams import Stream, write_event
from mailcheck.web.site.requests import header_values

MOST_REPLAYED = 100
"""Maximum number of messages that a stream repeats: as many as the longest list of a page."""


class LivePages(Struct, frozen=True):
    """Event streams of an inbox."""

    _follow: FollowInbox
    _read: ReadInbox
    _renderer: Renderer
    _clock: IReactorTime

    def pages(self) -> list[Page]:
        """List the page."""
        return [Page("GET", "/inbox/live", self.stream, costs.FREE)]

    async def stream(self, visit: Visit) -> Stream:
        """GET /inbox/live?after=<cursor>&tag=&to=. Without a cursor it starts now.

        Of the messages since the cursor, at most the newest `MOST_REPLAYED` are sent.
        """
        query = visit.query
        last = "".join(header_values(visit.request, b"Last-Event-ID"))
        after = query.value("after", CURSOR)
        if last:
            after = CURSOR.parse("Last-Event-ID", last)
        newest = (await self._read.state(visit.account.id)).last_position
        wanted = MessageFilter(
            tag=query.value("tag", TAG),
            recipient=query.value("to", RECIPIENT),
            after=newest if after is None else max(after, Position(newest - MOST_REPLAYED)),
        )
        caller = live_caller(visit)
        events = self._follow.follow(caller, wanted, LONGEST_STREAM, KEEP_ALIVE)
        return await open_stream(events, partial(self._write, visit), self._clock)

    def _write(self, visit: Visit, event: Event) -> bytes:
        if isinstance(event, MailRefused):
            return write_event("refused", render_refusal(event.refusal))
        cursor = format_cursor(event.cursor)
        if not isinstance(event, MessageArrived):
            return write_event("removed" if event.has_removals else "", {}, cursor)
        # The row for the list, and the texts for a notification while the page is hidden.
        summary, extracted = event.message.summary, event.message.content.extracted
        row = self._renderer.part(
            "inbox_row.html",
            one=ListedMessage(summary, extracted),
            href=visit.link(f"/inbox/messages/{summary.id}"),
            mailbox=visit.account.mailbox_name,
            opened=None,
            is_all_selected=False,
        )
        author = summary.header.author_name or summary.header.author_address
        shown = {
            "id": summary.id,
            "subject": name_subject(summary.header.subject),
            "about": "\n".join(filter(None, [author, *extracted.codes[:1]])),
            "row": str(row),
        }
        return write_event("mail", shown, cursor)
