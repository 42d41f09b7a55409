"""New mail as it comes in: the events of an inbox, for its page."""

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
from mailcheck.web.dashboard.rendering import Renderer
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
"""Seconds after which something is sent, so that proxies and browsers keep the connection."""

LONGEST_STREAM = 300.0
"""Seconds; then the browser comes again, and shows that it is still signed in."""


class LivePages(Struct, frozen=True):
    """Streams of what arrives in an inbox."""

    _follow: FollowInbox
    _renderer: Renderer
    _clock: IReactorTime

    def pages(self) -> list[Page]:
        """List the one page."""
        return [Page("GET", "/inbox/live", self.stream)]

    async def stream(self, visit: Visit) -> Stream:
        """GET /inbox/live?after=<cursor>&tag=&to=; without a cursor from the inbox's start."""
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
            # A stream too: a browser does not come again after any other answer.
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
        # The row of a list, and what is told of a mail where the list is not looked at.
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
    """Give the caller that an account's open pages wait as; all of them share its waits."""
    return Caller(account.id, KeyId(f"pages of {account.id}"), RequestLimits(0, 0))


def _write_problem(failure: ExpectedFailure) -> bytes:
    # To a browser an event named "error" is another thing.
    return write_event("problem", {"problem": str(failure)})
