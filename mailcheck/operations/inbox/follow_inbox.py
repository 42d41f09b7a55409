"""Following an inbox: an event stream of all matching messages, in order."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace
from twisted.internet.defer import TimeoutError as DeferredTimeout
from twisted.internet.interfaces import IReactorTime

from mailcheck.core.accounts import Caller
from mailcheck.core.cursors import START, Position, format_cursor, require_reached
from mailcheck.core.errors import (
    MessageNotFound,
    ShuttingDown,
    StoreUnavailable,
    WaitInterrupted,
)
from mailcheck.core.filters import MessageFilter
from mailcheck.core.instants import BEGINNING
from mailcheck.core.messages import Refusal, StoredMessage
from mailcheck.operations.inbox.contents import UNREADABLE, MessageLoader
from mailcheck.operations.inbox.feeds import LOOK_SIZE, InboxFeeds, Waiter
from mailcheck.operations.inbox.wait_for_message import position_of
from mailcheck.operations.incidents import public_failure
from mailcheck.operations.parked_waits import ParkedWait, WaitSlots
from mailcheck.ports.clocks import ClockAndRandomness
from mailcheck.store.mail_store import MailStore
from mailcheck.store.messages import MessageRow, Prefetch

READ_AT_ONCE = 20
"""Maximum number of messages read from the store in one batch. The client may be slow."""

READ_ALONG = 65_536
"""Maximum octets of mails that are read together with them, since each slow client holds them."""

_ALONG = Prefetch(lambda _: True, READ_ALONG, READ_AT_ONCE)

HEARTBEAT = 15.0
"""Seconds after which an idle stream sends a cursor. Proxies close connections that are idle for 30
or 60 seconds."""


class MessageArrived(Struct, frozen=True):
    """A matching message has arrived."""

    message: StoredMessage

    @property
    def cursor(self) -> Position:
        """The position to continue from."""
        return self.message.summary.position


class MailRefused(Struct, frozen=True):
    """A mail that may have matched was rejected."""

    refusal: Refusal


class CursorReached(Struct, frozen=True):
    """Everything up to this cursor was sent, so a client can continue from it.

    ``has_removals``: whether messages of the inbox were deleted. It is a hint and may be lost.
    """

    cursor: Position
    has_removals: bool = False


Event = MessageArrived | MailRefused | CursorReached


class FollowInbox(Struct, frozen=True, eq=False):
    """The operation behind event streams."""

    store: MailStore
    feeds: InboxFeeds
    loader: MessageLoader
    slots: WaitSlots
    clocks: ClockAndRandomness

    async def follow(
        self,
        caller: Caller,
        wanted: MessageFilter,
        seconds: float | None = None,
        heartbeat: float = HEARTBEAT,
    ) -> AsyncGenerator[Event, None]:
        """Yield matching messages from now on, or after a cursor or time, each once and in order.

        A cursor is sent at the start and the end, after ``heartbeat`` seconds without another
        one, and when messages were deleted. A client that continues from the last cursor gets
        every message exactly once, but a rejection possibly twice. The stream ends after
        ``seconds``, if given. The caller must close it.

        A stream uses one of the wait slots of the key.

        :raises InvalidParameter: ``after`` is a cursor of another inbox.
        :raises TooManyWaits: all wait slots of the key are in use.
        :raises InvalidCredentials: the access of the caller has ended meanwhile.
        :raises WaitInterrupted: the daemon is stopping, or the store cannot be read.
        """
        wanted = replace(wanted, allowed=caller.rights.tags)
        if wanted.after is None and wanted.since is None:
            wanted = replace(wanted, after=await position_of(caller, self.store))
        async with self.slots.held_by(caller) as parked:
            position = wanted.start
            try:
                waiter = self.feeds.join(
                    caller.account_id, wanted, wants_refusals=True, max_held=LOOK_SIZE
                )
                try:
                    waiter.watch_removals()
                    now = self.clocks.clock.seconds()
                    following = _Following(
                        waiter,
                        parked,
                        self.clocks.clock,
                        heartbeat,
                        position=position,
                        refused_up_to=position,
                        due_at=now,
                        ends_at=None if seconds is None else now + seconds,
                    )
                    async for event in self._tell(following):
                        position = following.position
                        parked.require_access()
                        yield event
                finally:
                    self.feeds.leave(waiter)
            except (ShuttingDown, StoreUnavailable) as failure:
                raise _interrupted(failure, position) from failure

    async def _tell(self, following: "_Following") -> AsyncGenerator[Event, None]:
        waiter = following.waiter
        while not following.is_over:
            found, up_to = await self._next(following)
            for row in found:
                event = await self._event(waiter, row)
                following.move(row)
                if event is not None:
                    yield event
            following.position = max(following.position, up_to)
            if waiter.has_removals:
                waiter.watch_removals()
                yield CursorReached(following.position, has_removals=True)
            if following.is_due:
                yield following.up_to_here(self.feeds.read_up_to(waiter))
        yield following.up_to_here(START)

    async def _next(
        self, following: "_Following"
    ) -> tuple[Sequence[MessageRow | Refusal], Position]:
        """Return the next messages and rejections, and the position that completes them.

        The position is the start if it is not known.
        """
        waiter = following.waiter
        if not (following.is_behind or waiter.has_missed):
            with suppress(DeferredTimeout):
                await following.parked.until(waiter.when_offered(), following.patience)
            return _in_order(*following.take()), START
        # From here on, messages are offered, or missed and read from the store again.
        waiter.begin_read()
        rows, refusals, up_to = await self._read(waiter, following.position)
        following.refused_up_to = up_to
        has_more = len(rows) == READ_AT_ONCE
        following.is_behind = has_more or not self.feeds.has_looked(waiter, up_to)
        return _in_order(rows, refusals), up_to

    async def _read(
        self, waiter: Waiter, after: Position
    ) -> tuple[Sequence[MessageRow], Sequence[Refusal], Position]:
        """Read the next messages and rejections. They are complete up to the returned position."""
        rows, last_position = await self.store.oldest_matches(
            waiter.account_id,
            replace(waiter.wanted, after=after),
            self.clocks.expiry_now(),
            READ_AT_ONCE,
            _ALONG,
        )
        require_reached(waiter.wanted.start, last_position)
        up_to = last_position
        if len(rows) == READ_AT_ONCE:
            up_to = rows[-1].summary.position
        if up_to - after <= len(rows):  # positions without a message may be rejections
            return rows, (), up_to
        between = replace(waiter.wanted.address, after=after, up_to=up_to)
        refusals = await self.store.recent_refusals(
            waiter.account_id, BEGINNING, LOOK_SIZE, between
        )
        wanted = waiter.wanted
        return (
            rows,
            [refusal for refusal in refusals if wanted.is_addressed(refusal)],
            up_to,
        )

    async def _event(self, waiter: Waiter, one: MessageRow | Refusal) -> Event | None:
        """Return the event, or `None` if the message was deleted or does not match."""
        if isinstance(one, Refusal):
            return MailRefused(one)
        try:
            message = await self.loader.complete(one)
        except MessageNotFound:
            return None
        wanted = waiter.wanted
        # An unreadable message is sent, since it may match.
        if wanted.asks_content and message.content is not UNREADABLE:
            mismatches = wanted.content_mismatches(message.summary, message.content)
            return None if mismatches else MessageArrived(message)
        return MessageArrived(message)


class _Following(Struct, eq=False):
    """The progress of one stream, and when its next cursor is due.

    ``is_behind``: whether the next messages must be read from the store.
    """

    waiter: Waiter
    parked: ParkedWait
    clock: IReactorTime
    heartbeat: float
    position: Position
    refused_up_to: Position
    due_at: float
    ends_at: float | None
    is_behind: bool = True

    @property
    def is_over(self) -> bool:
        return self.ends_at is not None and self.clock.seconds() >= self.ends_at

    @property
    def is_due(self) -> bool:
        return self.clock.seconds() >= self.due_at

    @property
    def patience(self) -> float:
        """Seconds until the stream must continue without new messages."""
        until = self.due_at if self.ends_at is None else min(self.due_at, self.ends_at)
        return max(0.0, until - self.clock.seconds())

    def take(self) -> tuple[list[MessageRow], list[Refusal]]:
        """Take the offered messages and rejections that were not sent yet."""
        return self.waiter.take(self.position, self.refused_up_to)

    def move(self, one: MessageRow | Refusal) -> None:
        """Record that a message or rejection was sent."""
        if isinstance(one, Refusal):
            self.refused_up_to = max(self.refused_up_to, one.position)
        else:
            self.position = one.summary.position
            self.due_at = self.clock.seconds() + self.heartbeat

    def up_to_here(self, read_up_to: Position) -> CursorReached:
        """Return a cursor to continue from, and schedule the next one."""
        self.due_at = self.clock.seconds() + self.heartbeat
        return CursorReached(max(self.position, read_up_to))


def _in_order(
    rows: Sequence[MessageRow], refusals: Sequence[Refusal]
) -> list[MessageRow | Refusal]:
    def position(one: MessageRow | Refusal) -> Position:
        return one.position if isinstance(one, Refusal) else one.summary.position

    return sorted([*rows, *refusals], key=position) if refusals else list(rows)


def _interrupted(failure: ShuttingDown | StoreUnavailable, position: Position) -> WaitInterrupted:
    why = public_failure(failure)
    problem = f"the stream was interrupted: {why}"
    return WaitInterrupted(problem, format_cursor(position), why.reference)
