"""Explanation of a timed-out wait: rejected mail, near misses and mail that came too early."""

from collections.abc import Collection
from difflib import SequenceMatcher

from msgspec import Struct
from msgspec.structs import replace
from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as DeferredTimeout

from mailcheck.core.addresses import UNTAGGED, fold_tag
from mailcheck.core.cursors import Position
from mailcheck.core.errors import MessageNotFound, Overloaded
from mailcheck.core.filters import ANY, MessageFilter
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import BEGINNING, MINUTE, Instant
from mailcheck.core.messages import MessageSummary, Refusal
from mailcheck.operations.inbox.contents import MessageLoader
from mailcheck.ports.clocks import ClockAndRandomness
from mailcheck.store.mail_store import MailStore
from mailcheck.store.messages import NewestMessages

LOOK_BACK = 10 * MINUTE
"""Milliseconds before a wait without a cursor in which its mail may have arrived. People often
send first."""

SEEN_LIMIT = 5
"""Maximum number of messages in an explanation, the closest first."""

REJECTED_LIMIT = 20
"""Maximum number of rejections in an explanation."""

NEAR = 100
"""Maximum number of the newest messages, and of those to the expected recipient, that are compared
with the wait."""

COUNTED = 1_000
"""Number of newest messages in which mail to other tags is counted, so that the cost of a timed-out
wait does not depend on the traffic of others."""

PATIENCE = 1.0
"""Seconds for deriving a content to explain why it does not match."""

ALIKE = 0.75
"""Similarity (the ratio of difflib) from which two tags may be a typing mistake, such as
``sign-up`` and ``signup``."""


class WaitRequest(Struct, frozen=True):
    """A wait as it was requested: its filter, start (time and clock), timeout and count."""

    wanted: MessageFilter
    asked_at: Instant
    began: float
    timeout: float
    count: int

    @property
    def ends_at(self) -> float:
        """The clock's time in seconds at which the wait ends."""
        return self.began + self.timeout

    @property
    def is_open(self) -> bool:
        """Whether the wait has no start: neither ``since`` nor ``after`` was given."""
        return self.wanted.since is None and self.wanted.after is None


class SeenMessage(Struct, frozen=True):
    """A message that arrived, and the reasons why it does not match.

    ``is_other_inside``: whether its content is among the reasons.
    """

    message: MessageSummary
    reasons: tuple[str, ...]
    is_other_inside: bool = False


class TimedOut(Struct, frozen=True):
    """The result of a wait for which too few messages arrived in time.

    ``cursor``: where to continue.
    ``matched``: how many of ``count`` messages arrived.
    ``timeout`` and ``waited``: in seconds.
    ``has_near_miss``: whether a message differs in more than its time.
    ``other_tags``: number of messages to other tags, among the newest (`COUNTED`).
    ``rejected``: rejected mail that may have matched, newest first.
    ``missed``: a message that would have matched had the wait begun ``missed_by`` milliseconds
    earlier; `None` if a cursor was given.
    ``gave_since``: whether the client chose ``since``, so that repeating it would miss again.
    """

    cursor: Position
    count: int
    matched: int
    timeout: float
    waited: float
    seen: tuple[SeenMessage, ...]
    has_near_miss: bool
    other_tags: int
    rejected: tuple[Refusal, ...]
    missed: MessageSummary | None
    missed_by: int
    gave_since: bool


class _Came(Struct, frozen=True):
    """The messages that arrived (closest first), the number to other tags, and an early match."""

    seen: tuple[SeenMessage, ...]
    other_tags: int
    missed: MessageSummary | None
    has_near_miss: bool


class ExplainWait(Struct, frozen=True, eq=False):
    """Collects the explanation of a timed-out wait."""

    store: MailStore
    loader: MessageLoader
    clocks: ClockAndRandomness

    async def explain(
        self,
        account_id: AccountId,
        asked: WaitRequest,
        up_to: Position,
        matched: Collection[Position],
        cursor: Position,
    ) -> TimedOut:
        """Explain a wait that has read the inbox up to the position ``up_to``.

        Later messages are left to the next wait. Messages before a given cursor are not
        explained, because the client knows them.

        :param matched: the positions of matching messages.
        """
        wanted, began = asked.wanted, asked.asked_at
        since = Instant(began - LOOK_BACK) if wanted.after is None else None
        time = MessageFilter(allowed=wanted.allowed, since=since, after=wanted.after, up_to=up_to)
        rejected, came = [], _Came((), 0, None, has_near_miss=False)
        if wanted.start < up_to or wanted.after is None:
            scope = replace(wanted.address, after=time.after, up_to=up_to)
            rejected = await self.store.recent_refusals(
                account_id, since or BEGINNING, REJECTED_LIMIT, scope
            )
            came = await self._look(account_id, asked, time, matched)
        return TimedOut(
            cursor=cursor,
            count=asked.count,
            matched=len(matched),
            timeout=asked.timeout,
            waited=round(self.clocks.clock.seconds() - asked.began, 3),
            seen=tuple(map(_with_reason, came.seen[:SEEN_LIMIT])),
            has_near_miss=came.has_near_miss,
            other_tags=came.other_tags,
            rejected=tuple(rejected),
            missed=came.missed,
            missed_by=began - came.missed.received_at if came.missed else 0,
            gave_since=wanted.since is not None,
        )

    async def _look(
        self,
        account_id: AccountId,
        asked: WaitRequest,
        time: MessageFilter,
        matched: Collection[Position],
    ) -> _Came:
        wanted = asked.wanted
        newest = await self._newest(account_id, time)
        addressed = [message for message in newest.messages if wanted.is_addressed(message)]
        own = {message.position for message in addressed}
        if len(newest.positions) > len(newest.messages) and wanted.address != ANY:
            scope = replace(wanted.address, since=time.since, after=time.after, up_to=time.up_to)
            found = await self._newest(account_id, scope)
            addressed, own = list(found.messages), set(found.positions)
        alike = [message for message in newest.messages if _is_alike(wanted, message)]
        # People think in times of requests, not in positions.
        judged = replace(wanted, since=asked.asked_at) if asked.is_open else wanted
        near = [
            SeenMessage(message, tuple(judged.mismatches(message)))
            for message in (*addressed, *alike)
            if message.position not in matched
        ]
        near.sort(key=lambda seen: len(seen.reasons))
        if wanted.asks_content:
            near = [await self._look_inside(wanted, seen) for seen in near[:SEEN_LIMIT]]
        any_time = replace(wanted, since=None, after=None)
        early = [
            seen.message
            for seen in near
            if any_time.matches(seen.message) and not seen.is_other_inside
        ]
        own.update(message.position for message in alike)
        others = len(set(newest.positions) - own) if wanted.address != ANY else 0
        missed = early[0] if early and wanted.after is None else None
        return _Came(tuple(near), others, missed, has_near_miss=len(early) < len(near))

    async def _look_inside(self, wanted: MessageFilter, seen: SeenMessage) -> SeenMessage:
        """Add the reasons why the content does not match, or that it is not known yet."""
        message = seen.message
        try:
            loaded = Deferred.fromCoroutine(self.loader.load(message.account_id, message.id))
            stored = await loaded.addTimeout(PATIENCE, self.clocks.clock)
            found = wanted.content_mismatches(message, stored.content)
        except (MessageNotFound, Overloaded, DeferredTimeout):
            found = ["its content is not known yet"]
        return SeenMessage(message, (*seen.reasons, *found), is_other_inside=bool(found))

    async def _newest(self, account_id: AccountId, wanted: MessageFilter) -> NewestMessages:
        return await self.store.newest(account_id, wanted, self.clocks.expiry_now(), NEAR, COUNTED)


def _is_alike(wanted: MessageFilter, message: MessageSummary) -> bool:
    """Return whether a message to another address may have been meant: a mistyped or lost tag."""
    if not wanted.tag or wanted.is_addressed(message):
        return False
    tag, meant = fold_tag(message.tag), fold_tag(wanted.tag)
    return tag == UNTAGGED or SequenceMatcher(None, tag, meant).ratio() >= ALIKE


def _with_reason(seen: SeenMessage) -> SeenMessage:
    # By the clock of another daemon, it may have arrived after the request.
    return seen if seen.reasons else replace(seen, reasons=("it arrived before this request",))
