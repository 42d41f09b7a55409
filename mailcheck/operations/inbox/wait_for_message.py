"""Waiting for a mail: register, look, only then wait; and say what did arrive if it did not."""

from dataclasses import dataclass, replace

from twisted.internet.defer import TimeoutError as DeferredTimeout
from twisted.internet.interfaces import IReactorTime

from mailcheck.core.accounts import Caller
from mailcheck.core.cursors import START, Position, format_cursor, require_reached
from mailcheck.core.errors import (
    InvalidParameter,
    MessageNotFound,
    ShuttingDown,
    StoreUnavailable,
    WaitInterrupted,
)
from mailcheck.core.filters import MessageFilter
from mailcheck.core.instants import MINUTE, SECOND, Instant, instant_of
from mailcheck.core.instruments import SECONDS, Distribution, Tally
from mailcheck.core.messages import MessageSummary, Refusal, StoredMessage
from mailcheck.operations.inbox.contents import MessageLoader
from mailcheck.operations.inbox.feeds import InboxFeeds, Waiter
from mailcheck.operations.places import WaitSlots
from mailcheck.operations.ports import MessageRow, MessageStore

LOOK_BACK = 10 * MINUTE
"""A mail that came this long before the wait may be the one meant: people send first."""

SEEN_LIMIT = 20
"""Messages, and refusals, that a wait in vain is told about."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A message that did arrive, and why it is not the one that was waited for."""

    message: MessageSummary
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TimedOut:
    """Nothing that matches came in time.

    ``gave_since``: the caller chose ``since``, so that repeating it would miss
    again. ``waited`` is in seconds. ``missed`` is a message that would have matched
    had the wait begun earlier; ``missed_by`` milliseconds before the request.
    """

    cursor: Position
    gave_since: bool
    waited: float
    seen: tuple[Seen, ...]
    rejected: tuple[Refusal, ...]
    missed: MessageSummary | None
    missed_by: int


@dataclass(frozen=True, slots=True)
class _Request:
    """A wait as it was asked for; seconds of the clock, and seconds.

    ``is_open``: it gave neither ``since`` nor ``after``.
    """

    began: float
    timeout: float
    gave_since: bool
    is_open: bool

    @property
    def ends_at(self) -> float:
        return self.began + self.timeout


class WaitForMessage:
    """The operation behind the long poll of REST and the wait tool of MCP."""

    def __init__(
        self,
        store: MessageStore,
        feeds: InboxFeeds,
        loader: MessageLoader,
        slots: WaitSlots,
        clock: IReactorTime,
    ) -> None:
        self._store = store
        self._feeds = feeds
        self._loader = loader
        self._slots = slots
        self._clock = clock
        self.outcomes = Tally()
        self.wake_up_seconds = Distribution(SECONDS)

    async def wait(
        self, caller: Caller, wanted: MessageFilter, timeout: float
    ) -> StoredMessage | TimedOut:
        """Give the oldest message that matches, at once or as soon as it arrives.

        Where ``wanted`` has neither ``since`` nor ``after``, only what comes in from
        the request on counts (SPEC.md section 4): after the position that was the inbox's
        newest when the caller was identified. No clock decides that: daemons differ.

        ``timeout`` is in seconds. A broadcast: every wait that matches gets
        the message, nothing is consumed. Cancelling it leaves no trace.

        :raises InvalidParameter: ``after`` is a cursor of another inbox, or a text is
            searched: texts are taken out of mails some time after they came.
        :raises TooManyWaits: the key holds as many waits as it may.
        :raises WaitInterrupted: the daemon stops or the store fails meanwhile.
        """
        if wanted.search is not None:
            raise InvalidParameter(
                "q", "q searches stored mail and is not for waits: send from, subject, tag or to"
            )
        is_open = wanted.since is None and wanted.after is None
        request = _Request(self._clock.seconds(), timeout, wanted.since is not None, is_open)
        if is_open:
            wanted = replace(wanted, after=await self._start(caller))
        async with self._slots.taken_by(caller):
            waiter = self._join(caller, wanted)
            try:
                found = await self._find_or_wait(waiter, request)
            finally:
                self._feeds.leave(waiter)
        self._count(found, instant_of(request.began))
        return found

    def _count(self, found: StoredMessage | TimedOut, began: Instant) -> None:
        if isinstance(found, TimedOut):
            self.outcomes.add("timed out")
        elif found.summary.received_at < began:
            self.outcomes.add("found")
        else:
            self.outcomes.add("woken")
            self.wake_up_seconds.observe((self._now() - found.summary.received_at) / SECOND)

    async def _start(self, caller: Caller) -> Position:
        """Give the position that a wait without a cursor begins after."""
        if caller.position is not None:
            return caller.position
        try:
            inbox = await self._store.find_account_inbox(caller.account_id)
        except StoreUnavailable as failure:
            raise _interrupted(failure, None) from failure
        return START if inbox is None else inbox.last_position

    def _join(self, caller: Caller, wanted: MessageFilter) -> Waiter:
        try:
            return self._feeds.join(caller.account_id, wanted)
        except ShuttingDown as failure:
            raise _interrupted(failure, wanted.after or None) from failure

    async def _find_or_wait(self, waiter: Waiter, request: _Request) -> StoredMessage | TimedOut:
        position: Position | None = waiter.wanted.after or None
        try:
            while True:
                matches, last_position = await self._look(waiter)
                require_reached(waiter.wanted.start, last_position)
                position = position or last_position
                if not matches:
                    if not self._feeds.has_looked(waiter, last_position):
                        continue
                    message = await self._next_match(waiter, request.ends_at)
                    # The last look and the cursor it ends with are one snapshot:
                    # who goes on from the cursor misses nothing.
                    matches, last_position = (
                        ((message,), last_position) if message else await self._look(waiter)
                    )
                if not matches:
                    return await self._explain(waiter, request, last_position)
                try:
                    return await self._loader.complete(matches[0])
                except MessageNotFound:
                    waiter.rearm()
        except (ShuttingDown, StoreUnavailable) as failure:
            raise _interrupted(failure, position) from failure

    async def _look(self, waiter: Waiter) -> tuple[tuple[MessageRow, ...], Position]:
        return await self._store.oldest_matches(waiter.account_id, waiter.wanted, self._now(), 1)

    async def _next_match(self, waiter: Waiter, deadline: float) -> MessageRow | None:
        left = max(0.0, deadline - self._clock.seconds())
        try:
            return await waiter.when_matched.addTimeout(left, self._clock)
        except DeferredTimeout:
            return None

    async def _explain(self, waiter: Waiter, request: _Request, cursor: Position) -> TimedOut:
        wanted = waiter.wanted
        began = instant_of(request.began)
        since = Instant(began - LOOK_BACK)
        newest = await self._store.newest(waiter.account_id, since, self._now(), SEEN_LIMIT)
        # What came in after the last look is for those who go on from the cursor.
        messages = [message for message in newest if message.position <= cursor]
        rejected = await self._store.recent_refusals(waiter.account_id, since, SEEN_LIMIT)
        any_time = replace(wanted, since=None, after=None)
        # People know when they asked, not at which position.
        judged = replace(wanted, since=began, after=None) if request.is_open else wanted
        missed = next((message for message in messages if any_time.matches(message)), None)
        return TimedOut(
            cursor=cursor,
            gave_since=request.gave_since,
            waited=round(self._clock.seconds() - request.began, 3),
            seen=tuple(Seen(message, _reasons(judged, message)) for message in messages),
            rejected=tuple(rejected),
            missed=missed,
            missed_by=began - missed.received_at if missed else 0,
        )

    def _now(self) -> Instant:
        return instant_of(self._clock.seconds())


def _interrupted(
    failure: ShuttingDown | StoreUnavailable, position: Position | None
) -> WaitInterrupted:
    cursor = None if position is None else format_cursor(position)
    return WaitInterrupted(f"the wait was cut short: {failure}", cursor)


def _reasons(judged: MessageFilter, message: MessageSummary) -> tuple[str, ...]:
    # By another daemon's clock it may have come after the request.
    return tuple(judged.mismatches(message) or ["it had arrived before this request"])
