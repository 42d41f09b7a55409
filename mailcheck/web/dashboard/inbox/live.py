"""New mail as it comes in: server-sent events (HTML Living Standard, section 9.2)."""

from dataclasses import replace

from twisted.web.server import Request

from mailcheck.core.accounts import Account, Caller, RequestLimits
from mailcheck.core.cursors import START, Position, format_cursor, parse_cursor
from mailcheck.core.errors import ExpectedFailure, InvalidParameter
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import KeyId
from mailcheck.core.instants import MINUTE
from mailcheck.core.messages import ListedMessage, StoredMessage
from mailcheck.operations.inbox.wait_for_message import TimedOut, WaitForMessage
from mailcheck.operations.ports import Now
from mailcheck.web.dashboard.pace import Pace, pace_of
from mailcheck.web.dashboard.visits import Page, Stream, Visit
from mailcheck.web.site.request_headers import header_values
from mailcheck.wire.inbox.messages import render_listed_message
from mailcheck.wire.json_values import JsonObject, dump_json
from mailcheck.wire.shapes import as_json

KEEP_ALIVE = 20.0
"""Seconds after which something is sent, so that proxies and browsers keep the connection."""

LONGEST_STREAM = 5 * MINUTE
"""Then the browser comes again, and shows that it is still signed in."""

RETRY, RETRY_LATER = 1_000, 15_000
"""Milliseconds after which a browser comes again; later where it was refused."""

_UNLIMITED = RequestLimits(0, 0)


class LivePages:
    """Streams of what arrives in an inbox, each one a parked wait after the other."""

    def __init__(self, wait: WaitForMessage, now: Now) -> None:
        self._wait = wait
        self._now = now

    def pages(self) -> list[Page]:
        """List the one page."""
        return [Page("GET", "/inbox/live", self.stream)]

    async def stream(self, visit: Visit) -> Stream:
        """GET /inbox/live?after=<cursor>&tag=."""
        wanted = MessageFilter(tag=visit.query.tag(), after=_last_seen(visit))
        caller = live_caller(visit.account)

        async def run(request: Request) -> None:
            with pace_of(request) as pace:
                await self._run(visit, request, pace, caller, wanted)

        return Stream("text/event-stream; charset=utf-8", run)

    async def _run(
        self, visit: Visit, request: Request, pace: Pace, caller: Caller, wanted: MessageFilter
    ) -> None:
        request.write(b"retry: %d\n\n" % RETRY)
        ends_at = self._now() + LONGEST_STREAM
        try:
            # For a client that does not read nothing is heaped up: it comes again
            # with the last event that it has got.
            while self._now() < ends_at and not pace.is_behind:
                outcome = await self._wait.wait(caller, wanted, KEEP_ALIVE)
                if isinstance(outcome, TimedOut):
                    position = outcome.cursor
                    request.write(b"id: %s\n: nothing new\n\n" % _cursor(position))
                else:
                    position = outcome.summary.position
                    request.write(_event(visit, outcome))
                wanted = replace(wanted, after=position)
        except ExpectedFailure as failure:
            problem = dump_json({"problem": str(failure)})
            request.write(b"retry: %d\nevent: problem\ndata: %s\n\n" % (RETRY_LATER, problem))


def live_caller(account: Account) -> Caller:
    """Give the caller that an account's open pages wait as; all of them share its waits."""
    return Caller(account.id, KeyId(f"pages of {account.id}"), _UNLIMITED)


def _last_seen(visit: Visit) -> Position:
    """Give the cursor to go on from, at first the start of the inbox.

    A browser that comes again says the last one it has seen.
    """
    last = "".join(header_values(visit.request, b"Last-Event-ID"))
    if not last:
        return visit.query.cursor() or START
    try:
        return parse_cursor(last)
    except ValueError:
        raise InvalidParameter("Last-Event-ID", "Last-Event-ID is no cursor of ours") from None


def _event(visit: Visit, message: StoredMessage) -> bytes:
    listed = ListedMessage(message.summary, message.content.extracted)
    shown: JsonObject = {
        **as_json(render_listed_message(listed, visit.urls)),
        "path": visit.link(f"/inbox/messages/{message.summary.id}"),
    }
    # JSON has no line breaks outside of its escapes: it can't end the event early.
    return b"id: %s\nevent: mail\ndata: %s\n\n" % (
        _cursor(message.summary.position),
        dump_json(shown),
    )


def _cursor(position: Position) -> bytes:
    return format_cursor(position).encode("ascii")
