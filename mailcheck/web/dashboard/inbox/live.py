"""Event stream of new messages, for the page of the inbox."""

from functools import partial

from msgspec import Struct
from twisted.internet.interfaces import IReactorTime
from twisted.web.server import Request

from mailcheck.api.inbox.messages import render_refusal
from mailcheck.api.requests.fields import CURSOR, RECIPIENT, TAG
from mailcheck.core.accounts import Account, Caller, RequestLimits
from mailcheck.core.cursors import START, format_cursor
from mailcheck.core.errors import ExpectedFailure
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import KeyId
from mailcheck.core.messages import ListedMessage
from mailcheck.operations.inbox.follow_inbox import (
    Event,
    FollowInbox,
    MailRefused,
    MessageArrived,
)
from mailcheck.web.dashboard.rendering import Renderer, format_sentence
from mailcheck.web.dashboard.visits import Page, Visit
from mailcheck.web.site.event_streams import (
    EVENT_STREAM,
    RETRY_LATER,
    Stream,
    make_stream,
    write_event,
)
from mailcheck.web.site.requests import header_values

KEEP_ALIVE = 20.0
"""Seconds between two keep-alive comments, without which proxies would close the connection."""

LONGEST_STREAM = 300.0
"""Maximum duration of a stream in seconds. The browser then reconnects with its session."""


class LivePages(Struct, frozen=True):
    """Event streams of an inbox."""

    _follow: FollowInbox
    _renderer: Renderer
    _clock: IReactorTime

    def pages(self) -> list[Page]:
        """List the page."""
        return [Page("GET", "/inbox/live", self.stream)]

    async def stream(self, visit: Visit) -> Stream:
        """GET /inbox/live?after=<cursor>&tag=&to=. Without a cursor it starts at the beginning."""
        query = visit.query
        last = "".join(header_values(visit.request, b"Last-Event-ID"))
        after = query.value("after", CURSOR)
        if last:
            after = CURSOR.parse("Last-Event-ID", last)
        wanted = MessageFilter(
            tag=query.value("tag", TAG),
            recipient=query.value("to", RECIPIENT),
            after=START if after is None else after,
        )
        caller = live_caller(visit.account)
        events = self._follow.follow(caller, wanted, LONGEST_STREAM, KEEP_ALIVE)

        try:
            first = await anext(events)
        except ExpectedFailure as failure:
            # Browsers reconnect to an event stream only, not after an error status.
            problem = b"retry: %d\n" % RETRY_LATER + _write_problem(failure)

            async def refuse(request: Request) -> None:
                request.write(problem)

            return Stream(EVENT_STREAM, refuse)
        return make_stream(events, first, partial(self._write, visit), self._clock, _write_problem)

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
        )
        author = summary.header.author_name or summary.header.author_address
        shown = {
            "id": summary.id,
            "subject": summary.header.subject or "(no subject)",
            "about": "\n".join(filter(None, [author, *extracted.codes[:1]])),
            "row": str(row),
        }
        return write_event("mail", shown, cursor)


def live_caller(account: Account) -> Caller:
    """Return the caller for all open pages of an account, which share its limit of waits."""
    return Caller(account.id, KeyId(f"pages of {account.id}"), RequestLimits(0, 0))


def _write_problem(failure: ExpectedFailure) -> bytes:
    # Browsers reserve the event name "error" for connection errors.
    return write_event("problem", {"problem": format_sentence(str(failure))})
