"""What a wait in vain is told: what was refused, what came close, what came too early."""

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
from mailcheck.ports.clocks import TimeAndChance
from mailcheck.store.mail_store import MailStore
from mailcheck.store.messages import NewestMessages

LOOK_BACK = 10 * MINUTE
"""A mail that came this long before a wait without a cursor may be the one meant: people send
first."""

SEEN_LIMIT = 5
"""Messages that a wait in vain is told about, the closest first."""

REJECTED_LIMIT = 20
"""Refusals that it is told about."""

NEAR = 100
"""Newest messages, and newest ones to who was waited for, that are compared with what was."""

COUNTED = 1_000
"""Newest messages among which those to other tags are counted: what a wait in vain costs must not
grow with what others get."""

PATIENCE = 1.0
"""Seconds for a mail to be taken apart, to say why what is in it is not what was asked for."""

ALIKE = 0.75
"""Likeness (difflib's ratio) from which a tag may be the one meant: ``sign-up`` and ``signup``."""


class WaitRequest(Struct, frozen=True):
    """A wait as it was asked for: when, seconds of the clock, seconds, and how many messages."""

    wanted: MessageFilter
    asked_at: Instant
    began: float
    timeout: float
    count: int

    @property
    def ends_at(self) -> float:
        """Give the second of the clock at which it ends."""
        return self.began + self.timeout

    @property
    def is_open(self) -> bool:
        """Tell whether it says nothing of when: it gave neither ``since`` nor ``after``."""
        return self.wanted.since is None and self.wanted.after is None


class SeenMessage(Struct, frozen=True):
    """A message that did arrive, and why it is not the one that was waited for.

    ``is_other_inside``: what is in it is among the reasons.
    """

    message: MessageSummary
    reasons: tuple[str, ...]
    is_other_inside: bool = False


class TimedOut(Struct, frozen=True):
    """Not as many messages as were waited for came in time.

    ``cursor`` is where to go on; ``matched`` of ``count`` did come. ``timeout`` and
    ``waited`` are in seconds. ``has_near_miss``: one of those that came fails for more than
    its time. ``other_tags`` counts messages that came and were for others, among the newest
    (`COUNTED`). ``rejected`` has what may have been waited for first: ``is_refused`` says that
    there is such. ``missed`` is a message that would have matched had the wait begun earlier,
    ``missed_by`` milliseconds before the request; nothing where a cursor was given.
    ``gave_since``: the caller chose ``since``, so that repeating it would miss again.
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
    is_refused: bool
    missed: MessageSummary | None
    missed_by: int
    gave_since: bool


class _Came(Struct, frozen=True):
    """What came, the closest first; how many messages were for others; what came too early."""

    seen: tuple[SeenMessage, ...]
    other_tags: int
    missed: MessageSummary | None
    has_near_miss: bool


class ExplainWait:
    """Looks for what a wait in vain should know."""

    def __init__(
        self, store: MailStore, loader: MessageLoader, time_and_chance: TimeAndChance
    ) -> None:
        self._store = store
        self._loader = loader
        self._clock = time_and_chance.clock
        self._expiry_now = time_and_chance.expiry_now

    async def explain(
        self,
        account_id: AccountId,
        asked: WaitRequest,
        up_to: Position,
        matched: Collection[Position],
        cursor: Position,
    ) -> TimedOut:
        """Explain a wait whose last look saw all ``up_to`` a position.

        What came in after that is for those who go on. What had come before a cursor that
        was given is nothing new to who took it.

        :param matched: the positions of messages that did come.
        """
        wanted, began = asked.wanted, asked.asked_at
        since = Instant(began - LOOK_BACK) if wanted.after is None else None
        time = MessageFilter(since=since, after=wanted.after, up_to=up_to)
        rejected, came = [], _Came((), 0, None, has_near_miss=False)
        if wanted.start < up_to or wanted.after is None:
            scope = replace(wanted.address, after=time.after, up_to=up_to)
            rejected = await self._store.recent_refusals(
                account_id, since or BEGINNING, REJECTED_LIMIT, scope
            )
            came = await self._look(account_id, asked, time, matched)
        return TimedOut(
            cursor=cursor,
            count=asked.count,
            matched=len(matched),
            timeout=asked.timeout,
            waited=round(self._clock.seconds() - asked.began, 3),
            seen=tuple(map(_with_reason, came.seen[:SEEN_LIMIT])),
            has_near_miss=came.has_near_miss,
            other_tags=came.other_tags,
            rejected=tuple(rejected),
            is_refused=any(wanted.is_addressed(one.tag, one.recipient) for one in rejected),
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
        addressed = [one for one in newest.messages if wanted.is_addressed(one.tag, one.recipient)]
        own = {one.position for one in addressed}
        if len(newest.positions) > len(newest.messages) and wanted.address != ANY:
            scope = replace(wanted.address, since=time.since, after=time.after, up_to=time.up_to)
            found = await self._newest(account_id, scope)
            addressed, own = list(found.messages), set(found.positions)
        alike = [one for one in newest.messages if _is_alike(wanted, one)]
        # People know when they asked, not at which position.
        judged = replace(wanted, since=asked.asked_at) if asked.is_open else wanted
        near = [
            SeenMessage(one, tuple(judged.mismatches(one)))
            for one in (*addressed, *alike)
            if one.position not in matched
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
        own.update(one.position for one in alike)
        others = len(set(newest.positions) - own) if wanted.address != ANY else 0
        missed = early[0] if early and wanted.after is None else None
        return _Came(tuple(near), others, missed, has_near_miss=len(early) < len(near))

    async def _look_inside(self, wanted: MessageFilter, seen: SeenMessage) -> SeenMessage:
        """Add why its content is not the one wanted; what can't be read at once says so."""
        message = seen.message
        try:
            loaded = Deferred.fromCoroutine(self._loader.load(message.account_id, message.id))
            stored = await loaded.addTimeout(PATIENCE, self._clock)
            found = wanted.content_mismatches(stored.content)
        except (MessageNotFound, Overloaded, DeferredTimeout):
            found = ["what is in it is not known yet"]
        return SeenMessage(message, (*seen.reasons, *found), is_other_inside=bool(found))

    async def _newest(self, account_id: AccountId, wanted: MessageFilter) -> NewestMessages:
        return await self._store.newest(account_id, wanted, self._expiry_now(), NEAR, COUNTED)


def _is_alike(wanted: MessageFilter, message: MessageSummary) -> bool:
    """Tell whether a message to somebody else may have been meant: its tag was mistyped or lost."""
    if not wanted.tag or wanted.is_addressed(message.tag, message.recipient):
        return False
    tag, meant = fold_tag(message.tag), fold_tag(wanted.tag)
    return tag == UNTAGGED or SequenceMatcher(None, tag, meant).ratio() >= ALIKE


def _with_reason(seen: SeenMessage) -> SeenMessage:
    # By another daemon's clock it may have come after the request.
    return seen if seen.reasons else replace(seen, reasons=("it had arrived before this request",))
