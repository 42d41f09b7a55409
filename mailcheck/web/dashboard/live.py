"""Event streams of pages, and the stream that updates the live parts of all pages."""

from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any, TypeVar

from msgspec import Struct
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.web.server import Request

from mailcheck.core.accounts import Caller, RequestLimits
from mailcheck.core.errors import ExpectedFailure
from mailcheck.core.identifiers import KeyId, digest_secret
from mailcheck.operations.follow_account import FollowAccount
from mailcheck.operations.parked_waits import WaitSlots
from mailcheck.web.dashboard.rendering import describe_failure, format_sentence
from mailcheck.web.dashboard.visits import Page, Visit
from mailcheck.web.site import costs
from mailcheck.web.site.event_streams import (
    EVENT_STREAM,
    RETRY_LATER,
    Stream,
    make_stream,
    write_event,
)

KEEP_ALIVE = 20.0
"""Seconds between two keep-alive comments, without which proxies would close the connection."""

LONGEST_STREAM = 300.0
"""Maximum duration of a stream in seconds. The browser then reconnects with its session."""

T = TypeVar("T")


class LivePartPages(Struct, frozen=True):
    """The event stream of the live parts. The script loads the page again after a change."""

    _follow: FollowAccount
    _clock: IReactorTime

    def pages(self) -> list[Page]:
        """List the page."""
        return [Page("GET", "/live", self.stream, costs.FREE)]

    async def stream(self, visit: Visit) -> Stream:
        """GET /live: a ``changed`` event when data of the account has changed."""
        events = self._follow.follow(live_caller(visit), LONGEST_STREAM, KEEP_ALIVE)
        return await open_stream(events, _write, self._clock)


def _write(has_changed: bool) -> bytes:
    return write_event("changed", {}) if has_changed else write_event()


async def open_stream(
    events: AsyncGenerator[T, None], write: Callable[[T], bytes], clock: IReactorTime
) -> Stream:
    """Return the stream of some events. An expected failure is a ``problem`` event at its end."""
    try:
        first = await anext(events)
    except ExpectedFailure as failure:
        # Browsers reconnect to an event stream only, not after an error status.
        problem = b"retry: %d\n" % RETRY_LATER + write_problem(failure)

        async def refuse(request: Request) -> None:
            request.write(problem)

        return Stream(EVENT_STREAM, refuse)
    return make_stream(events, first, write, clock, write_problem)


def run_with_access(
    slots: WaitSlots, visit: Visit, run: Callable[[Request], Coroutine[Any, Any, None]]
) -> Stream:
    """Return a stream that ends with the access of the person, and counts as an open page."""

    async def run_while_allowed(request: Request) -> None:
        try:
            async with slots.held_by(live_caller(visit)) as parked:
                await parked.until(Deferred.fromCoroutine(run(request)))
        except ExpectedFailure as failure:
            request.write(write_problem(failure))

    return Stream(EVENT_STREAM, run_while_allowed)


def live_caller(visit: Visit) -> Caller:
    """Return the caller for all open pages of a person, which share a limit of waits."""
    return Caller(
        visit.account.id,
        KeyId(f"pages of {visit.visitor.id}"),
        RequestLimits(0, 0),
        client=visit.client,
        session=digest_secret(visit.session),
        person=visit.visitor.name,
    )


def write_problem(failure: ExpectedFailure) -> bytes:
    """Return the event for an expected failure."""
    # Browsers reserve the event name "error" for connection errors.
    return write_event("problem", {"problem": format_sentence(describe_failure(failure))})
