"""Waiting for one message, for several, or for none.

A wait is registered before the store is read, so that no message is missed in between.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace
from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as DeferredTimeout

from mailcheck.core.accounts import Caller
from mailcheck.core.cursors import START, Position, format_cursor, require_reached
from mailcheck.core.errors import (
    InvalidParameter,
    MessageNotFound,
    Overloaded,
    ShuttingDown,
    StoreUnavailable,
    WaitInterrupted,
)
from mailcheck.core.filters import MessageFilter
from mailcheck.core.instants import BEGINNING, SECOND, Instant
from mailcheck.core.memory.instruments import SECONDS, Distribution, Tally
from mailcheck.core.messages import ListedMessage, Refusal, StoredMessage
from mailcheck.operations.inbox.contents import LARGE, UNREADABLE, MessageLoader
from mailcheck.operations.inbox.explain_wait import ExplainWait, TimedOut, WaitRequest
from mailcheck.operations.inbox.feeds import InboxFeeds, Waiter
from mailcheck.operations.incidents import public_failure
from mailcheck.operations.parked_waits import ParkedWait, WaitSlots
from mailcheck.ports.clocks import ClockAndRandomness
from mailcheck.store.mail_store import MailStore
from mailcheck.store.messages import MessageRow, Prefetch

ANY_CONTENT = Prefetch(lambda _: True, LARGE)

GRACE = 2.0
"""Seconds beyond its timeout that a wait grants a mail whose content must be derived."""


class Messages(Struct, frozen=True):
    """All expected messages, oldest first; ``cursor`` is that of the last one."""

    messages: tuple[ListedMessage, ...]
    cursor: Position


class NoMessage(Struct, frozen=True):
    """No matching message arrived.

    ``waited`` is in seconds; ``cursor`` is the last position that was read.
    """

    cursor: Position
    waited: float


class UnexpectedMessage(Struct, frozen=True):
    """A message arrived, or a mail that may have matched was rejected, though none was expected.

    Exactly one of ``message`` and ``refusal`` is set; ``cursor`` is its position.
    """

    cursor: Position
    waited: float
    message: StoredMessage | None
    refusal: Refusal | None

    @property
    def arrived_at(self) -> Instant:
        """When the message or the rejected mail arrived."""
        if self.message is not None:
            return self.message.summary.received_at
        assert self.refusal is not None
        return self.refusal.refused_at


class _Watch(Struct, eq=False):
    """The progress of one wait for ``count`` messages.

    Messages are handled up to ``position``, and rejections up to ``refused_up_to`` if they count.
    After an interruption the client continues from ``resume_at``; if that is `None`, it repeats
    the request. ``is_unsettled``: whether the content of the next message was not known in time.
    """

    waiter: Waiter
    parked: ParkedWait
    asked: WaitRequest
    count: int
    position: Position
    refused_up_to: Position
    resume_at: Position | None
    found: list[StoredMessage] = field(default_factory=list)
    refusal: Refusal | None = None
    is_unsettled: bool = False

    @property
    def is_over(self) -> bool:
        return len(self.found) >= self.count or self.refusal is not None


async def position_of(caller: Caller, store: MailStore) -> Position:
    """Return the position after which mail is new to a caller, from before its request."""
    if caller.position is not None:
        return caller.position
    inbox = await store.find_account_inbox(caller.account_id)
    return START if inbox is None else inbox.last_position


class WaitForMessage(Struct, frozen=True, eq=False):
    """The operation behind the long polls of the REST API and the wait tool of MCP."""

    store: MailStore
    feeds: InboxFeeds
    loader: MessageLoader
    slots: WaitSlots
    explain: ExplainWait
    clocks: ClockAndRandomness
    outcomes: Tally = field(default_factory=Tally)
    wake_up_seconds: Distribution = field(default_factory=partial(Distribution, SECONDS))

    async def wait(
        self, caller: Caller, wanted: MessageFilter, timeout: float, elapsed: float = 0.0
    ) -> StoredMessage | TimedOut:
        """Return the oldest matching message, at once or as soon as it arrives.

        Without ``since`` and ``after``, only messages after the request count
        (docs/reference/contract.md). They are those after the position that was newest when the
        caller was identified, since the clocks of daemons differ.

        If ``wanted`` filters by content, each candidate is derived in the order of positions, so
        that none is skipped because it has not been read yet.

        ``timeout`` is in seconds. All matching waits get the same message. Cancelling a wait has
        no side effects.

        :param elapsed: seconds for which earlier requests have waited already. The position of the
            caller is that of the first one.
        :raises InvalidParameter: ``after`` is a cursor of another inbox, or ``wanted`` has a
            search text, which is only indexed some time after arrival.
        :raises TooManyWaits: all wait slots of the key are in use.
        :raises InvalidCredentials: the access of the caller has ended meanwhile.
        :raises WaitInterrupted: the daemon is stopping or overloaded, or the store cannot be read.
        """
        async with self._begun(caller, wanted, timeout, elapsed) as watch:
            await self._run(watch)
            if watch.found:
                self._count_arrival(watch)
                return watch.found[0]
            return await self._time_out(watch, watch.position)

    async def wait_for_many(
        self,
        caller: Caller,
        wanted: MessageFilter,
        timeout: float,
        count: int,
        elapsed: float = 0.0,
    ) -> Messages | TimedOut:
        """Return the oldest ``count`` matching messages when all have arrived.

        If they do not arrive in time, the cursor to continue from is that of the start.
        Everything else is as for `wait`.
        """
        async with self._begun(caller, wanted, timeout, elapsed, count) as watch:
            await self._run(watch)
            if not watch.is_over:
                return await self._time_out(watch, watch.waiter.wanted.start)
            self._count_arrival(watch)
            listed = tuple(
                ListedMessage(message.summary, message.content.extracted) for message in watch.found
            )
            return Messages(listed, watch.position)

    async def wait_for_none(
        self, caller: Caller, wanted: MessageFilter, seconds: float, elapsed: float = 0.0
    ) -> NoMessage | UnexpectedMessage:
        """Wait ``seconds`` for no matching message; return early if one arrives.

        A rejected mail that may have matched counts as a message. Its content is unknown, so it is
        matched by its recipient. Everything else is as for `wait`. An interrupted wait has no
        result.
        """
        async with self._begun(caller, wanted, seconds, elapsed, wants_refusals=True) as watch:
            await self._run(watch)
            waited = self._waited(watch)
            if watch.is_unsettled:
                raise _interrupted(_NotJudged(), watch.resume_at)
            if not watch.is_over:
                self.outcomes.add("timed out")
                return NoMessage(watch.position, waited)
            self._count_arrival(watch)
            message = next(iter(watch.found), None)
            refusal = watch.refusal
            if message is None and refusal is not None:
                return UnexpectedMessage(refusal.position, waited, None, refusal)
            return UnexpectedMessage(watch.position, waited, message, None)

    @asynccontextmanager
    async def _begun(
        self,
        caller: Caller,
        wanted: MessageFilter,
        timeout: float,
        elapsed: float,
        count: int = 1,
        *,
        wants_refusals: bool = False,
    ) -> AsyncIterator[_Watch]:
        """Register a wait. It is removed when the block ends."""
        if wanted.search:
            raise InvalidParameter(
                "q", "q only searches stored mail; to wait, send from, subject, tag or to"
            )
        wanted = replace(wanted, allowed=caller.rights.tags)
        asked_at = Instant(self.clocks.now() - round(elapsed * SECOND))
        began = self.clocks.clock.seconds() - elapsed
        asked = WaitRequest(wanted, asked_at, began, elapsed + timeout, count)
        if asked.is_open:
            try:
                wanted = replace(wanted, after=await position_of(caller, self.store))
            except StoreUnavailable as failure:
                raise _interrupted(failure, None) from failure
        async with self.slots.held_by(caller) as parked:
            try:
                waiter = self.feeds.join(caller.account_id, wanted, wants_refusals=wants_refusals)
            except ShuttingDown as failure:
                raise _interrupted(failure, wanted.after) from failure
            try:
                start = wanted.start
                yield _Watch(
                    waiter, parked, asked, count, start, refused_up_to=start, resume_at=wanted.after
                )
            finally:
                self.feeds.leave(waiter)

    async def _run(self, watch: _Watch) -> None:
        """Collect messages until the wait is over. The last read is one snapshot.

        A client that continues from its position misses no message.
        """
        waiter = watch.waiter
        try:
            while True:
                await self._look(watch)
                if watch.is_over:
                    return
                if self.feeds.has_looked(waiter, watch.position):
                    break
            while await self._is_offered(watch):
                messages, refusals = waiter.take(watch.position)
                await self._judge(watch, messages)
                self._judge_refusals(watch, refusals)
                if watch.is_over:
                    return
            await self._look(watch)
        except _NotJudged:
            watch.is_unsettled = True
        except (Overloaded, ShuttingDown, StoreUnavailable) as failure:
            raise _interrupted(failure, watch.resume_at) from failure

    async def _look(self, watch: _Watch) -> None:
        waiter = watch.waiter
        while not watch.is_over:
            wanted = replace(waiter.wanted, after=watch.position)
            limit = watch.count - len(watch.found)
            rows, last_position = await self.store.oldest_matches(
                waiter.account_id, wanted, self.clocks.expiry_now(), limit, ANY_CONTENT
            )
            require_reached(waiter.wanted.start, last_position)
            await self._judge(watch, rows)
            if len(rows) < limit:
                watch.position = last_position
                if watch.resume_at is None and not watch.found:
                    watch.resume_at = last_position
                break
        if waiter.wants_refusals and not watch.is_over:
            between = replace(waiter.wanted, after=watch.refused_up_to, up_to=watch.position)
            refusals = await self.store.recent_refusals(waiter.account_id, BEGINNING, 1, between)
            self._judge_refusals(watch, refusals)
            watch.refused_up_to = watch.position

    async def _is_offered(self, watch: _Watch) -> bool:
        left = max(0.0, watch.asked.ends_at - self.clocks.clock.seconds())
        try:
            await watch.parked.until(watch.waiter.when_offered(), left)
        except DeferredTimeout:
            return False
        return True

    async def _judge(self, watch: _Watch, rows: Sequence[MessageRow]) -> None:
        for row in rows:
            try:
                message = await self._complete(watch, row)
            except MessageNotFound:
                pass  # deleted after it was read
            else:
                if _has_content(watch, message):
                    watch.found.append(message)
            watch.position = row.summary.position
            if watch.is_over:
                return

    async def _complete(self, watch: _Watch, row: MessageRow) -> StoredMessage:
        # The content of a large mail must not delay the wait for long.
        left = max(0.0, watch.asked.ends_at + GRACE - self.clocks.clock.seconds())
        completed = Deferred.fromCoroutine(self.loader.complete(row))
        try:
            return await watch.parked.until(completed, left)
        except DeferredTimeout:
            if watch.waiter.wanted.asks_content:
                raise _NotJudged from None
            raise _interrupted(_NotJudged(), watch.resume_at) from None

    def _judge_refusals(self, watch: _Watch, refusals: Sequence[Refusal]) -> None:
        wanted = watch.waiter.wanted
        for refusal in refusals:
            is_late_enough = wanted.since is None or refusal.refused_at >= wanted.since
            if is_late_enough and wanted.is_addressed(refusal):
                watch.refusal = refusal

    async def _time_out(self, watch: _Watch, cursor: Position) -> TimedOut:
        self.outcomes.add("timed out")
        matched = {message.summary.position for message in watch.found}
        try:
            return await self.explain.explain(
                watch.waiter.account_id, watch.asked, watch.position, matched, cursor
            )
        except StoreUnavailable as failure:
            raise _interrupted(failure, watch.resume_at) from failure

    def _waited(self, watch: _Watch) -> float:
        return round(self.clocks.clock.seconds() - watch.asked.began, 3)

    def _count_arrival(self, watch: _Watch) -> None:
        if not watch.found:
            self.outcomes.add("refused")
            return
        received_at = watch.found[-1].summary.received_at
        if received_at < watch.asked.asked_at:
            self.outcomes.add("found")
        else:
            self.outcomes.add("woken")
            self.wake_up_seconds.observe((self.clocks.now() - received_at) / SECOND)


class _NotJudged(Exception):
    """The content of a message that may match was not derived in time."""

    def __str__(self) -> str:
        return "the content of a message that may match was not derived in time"


def _has_content(watch: _Watch, message: StoredMessage) -> bool:
    wanted = watch.waiter.wanted
    if not wanted.asks_content:
        return True
    if message.content is UNREADABLE:
        # An unreadable message may match, so a wait for none must not succeed.
        return watch.waiter.wants_refusals
    return not wanted.content_mismatches(message.summary, message.content)


def _interrupted(
    failure: Overloaded | ShuttingDown | StoreUnavailable | _NotJudged, position: Position | None
) -> WaitInterrupted:
    cursor = None if position is None else format_cursor(position)
    if isinstance(failure, _NotJudged):
        return WaitInterrupted(f"the wait was interrupted: {failure}", cursor)
    why = public_failure(failure)
    return WaitInterrupted(f"the wait was interrupted: {why}", cursor, why.reference)
