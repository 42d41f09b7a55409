"""Parked waits: who waits for what, and one look into the store for all of them.

A wake-up is a hint. On a hint the feed of the inbox reads the store once and
offers what is new to its waiters; those that wait for a tag are found by it,
so a mail costs the same however many wait for other tags. A mail that this
daemon has just stored is offered without a look, where it is the next one.
"""

from dataclasses import dataclass, field

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from mailcheck.core.addresses import fold_tag
from mailcheck.core.cursors import Position
from mailcheck.core.errors import ExpectedFailure, ShuttingDown
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import AccountId
from mailcheck.operations.ports import MessageRow, MessageStore, Now

LOOK_SIZE = 200
"""Messages read at a time; more are read in a next look."""


@dataclass(slots=True, eq=False)
class Waiter:
    """One parked wait; ``when_matched`` fires with the oldest match that comes in."""

    account_id: AccountId
    wanted: MessageFilter
    when_matched: "Deferred[MessageRow]" = field(default_factory=Deferred)

    @property
    def tag_key(self) -> str | None:
        """Give the tag it waits for, nothing for any."""
        return None if self.wanted.tag is None else fold_tag(self.wanted.tag)

    def offer(self, message: MessageRow) -> None:
        """Take the message when it matches and none was taken before."""
        if not self.when_matched.called and self.wanted.matches(message.summary):
            self.when_matched.callback(message)

    def rearm(self) -> None:
        """Wait for the next match: the one it got has been deleted."""
        self.when_matched = Deferred()

    def fail(self, failure: Failure | ExpectedFailure) -> None:
        """End the wait without a message."""
        if not self.when_matched.called:
            self.when_matched.errback(failure)


class _Feed:
    """The waiters of one inbox, and how far the inbox was read for them."""

    def __init__(self, account_id: AccountId, store: MessageStore, now: Now) -> None:
        self._account_id = account_id
        self._store = store
        self._now = now
        self._start: Position | None = None
        self._position: Position | None = None
        self._is_looking = False
        self._must_look = False
        self._by_tag: dict[str | None, dict[Waiter, None]] = {}

    def add(self, waiter: Waiter) -> None:
        self._by_tag.setdefault(waiter.tag_key, {})[waiter] = None

    def remove(self, waiter: Waiter) -> bool:
        """Remove a waiter; tells whether it was the last."""
        group = self._by_tag.get(waiter.tag_key, {})
        group.pop(waiter, None)
        if not group:
            self._by_tag.pop(waiter.tag_key, None)
        return not self._by_tag

    def waiters(self) -> list[Waiter]:
        return [waiter for group in self._by_tag.values() for waiter in group]

    def start_from(self, position: Position) -> bool:
        """Say up to where a waiter has looked for itself; false when it must look once more.

        The feed goes on from where the first one ended. A waiter whose look was
        overtaken by that one has not seen what came in between, nor is it offered.
        """
        if self._start is None:
            self._start = self._position = position
            if self._must_look:
                self.look()
        return position >= self._start

    def is_behind(self, position: Position) -> bool:
        """Tell whether there may be something that its waiters were not offered."""
        return self._position is None or self._position < position

    def expects(self, tag: str) -> bool:
        """Tell whether somebody may wait for mail with this tag."""
        return None in self._by_tag or fold_tag(tag) in self._by_tag

    def take(self, message: MessageRow) -> None:
        """Offer a message that is on disk; only the next one, so that none is left out."""
        position = message.summary.position
        if self._is_looking or self._position is None or position != self._position + 1:
            return
        self._position = position
        self._offer_one(message)

    def look(self) -> None:
        """Read what is new since the last look, now or right after the look under way."""
        self._must_look = True
        if self._is_looking or self._position is None:
            return
        self._must_look = False
        self._is_looking = True
        wanted = MessageFilter(after=self._position)
        found = self._store.oldest_matches(self._account_id, wanted, self._now(), LOOK_SIZE)
        found.addCallbacks(self._offer, self._fail).addCallback(self._look_again)

    def _offer(self, found: tuple[tuple[MessageRow, ...], Position]) -> None:
        messages, last_position = found
        if len(messages) == LOOK_SIZE:
            last_position = messages[-1].summary.position
            self._must_look = True
        self._position = last_position
        for message in messages:
            self._offer_one(message)

    def _offer_one(self, message: MessageRow) -> None:
        for tag_key in (fold_tag(message.summary.tag), None):
            for waiter in tuple(self._by_tag.get(tag_key, ())):
                waiter.offer(message)

    def _fail(self, failure: Failure) -> None:
        for waiter in self.waiters():
            waiter.fail(failure)

    def _look_again(self, _: None) -> None:
        self._is_looking = False
        if self._must_look and self._by_tag:
            self.look()


class InboxFeeds:
    """All parked waits of this daemon, by inbox."""

    def __init__(self, store: MessageStore, now: Now) -> None:
        self._store = store
        self._now = now
        self._feeds: dict[AccountId, _Feed] = {}
        self._is_closed = False
        self._is_looking = False

    def join(self, account_id: AccountId, wanted: MessageFilter) -> Waiter:
        """Register a wait; the caller must `leave` whatever happens.

        :raises ShuttingDown: no more waits are taken.
        """
        if self._is_closed:
            raise ShuttingDown("the service is restarting")
        feed = self._feeds.get(account_id)
        if feed is None:
            feed = self._feeds[account_id] = _Feed(account_id, self._store, self._now)
        waiter = Waiter(account_id, wanted)
        feed.add(waiter)
        return waiter

    def has_looked(self, waiter: Waiter, position: Position) -> bool:
        """Say up to where a waiter has looked by itself; false when it must look once more."""
        return self._feeds[waiter.account_id].start_from(position)

    def leave(self, waiter: Waiter) -> None:
        """Forget a wait."""
        # One that found its message by itself does not hear that waiting has failed.
        waiter.when_matched.addErrback(lambda _: None)
        feed = self._feeds.get(waiter.account_id)
        if feed is not None and feed.remove(waiter):
            del self._feeds[waiter.account_id]

    def expects(self, account_id: AccountId, tag: str) -> bool:
        """Tell whether somebody here may wait for mail of an inbox with this tag."""
        feed = self._feeds.get(account_id)
        return feed is not None and feed.expects(tag)

    def take(self, message: MessageRow) -> None:
        """Offer a message that has just been stored, before the hint that it has come."""
        feed = self._feeds.get(message.summary.account_id)
        if feed is not None:
            feed.take(message)

    def hear(self, account_id: AccountId) -> None:
        """Take the hint that an inbox has new mail."""
        feed = self._feeds.get(account_id)
        if feed is not None:
            feed.look()

    def look_everywhere(self) -> None:
        """Look into every inbox waited for, by one read of them all: hints may have been lost."""
        if self._feeds and not self._is_looking:
            self._is_looking = True
            found = self._store.newest_positions(tuple(self._feeds))
            found.addCallback(self._look_where_newer).addErrback(
                # The store is away: who waits hears of it when it is looked into.
                lambda failure: failure.trap(ExpectedFailure)
            ).addBoth(self._end_look)

    def _look_where_newer(self, positions: dict[AccountId, Position]) -> None:
        for account_id, position in positions.items():
            feed = self._feeds.get(account_id)
            if feed is not None and feed.is_behind(position):
                feed.look()

    def _end_look(self, _: object) -> None:
        self._is_looking = False

    def waiters(self) -> list[Waiter]:
        """Give all parked waits."""
        return [waiter for feed in self._feeds.values() for waiter in feed.waiters()]

    def count(self) -> int:
        """Say how many waits are parked."""
        return sum(len(feed.waiters()) for feed in self._feeds.values())

    def close(self) -> None:
        """End all waits: the daemon stops."""
        self._is_closed = True
        for waiter in self.waiters():
            waiter.fail(ShuttingDown("the service is restarting"))
