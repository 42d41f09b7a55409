"""Feeds: one read of the store serves all parked waits of an inbox.

A notification is a hint. The feed then reads the store once and offers new messages to its
waiters. Waiters for a tag are indexed by it, so a mail costs the same however many clients wait
for other tags. A mail that this daemon has just stored is offered without a read if it is the
next message, because its content was derived while it was written. The hint about it then needs
no read, and neither does mail that no client waits for.
"""

from collections.abc import Callable, Sequence
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace
from twisted.internet.defer import Deferred, fail, succeed
from twisted.python.failure import Failure

from mailcheck.checks.content.header.fields import summarize_header
from mailcheck.core.addresses import fold_tag
from mailcheck.core.cursors import START, Position
from mailcheck.core.errors import ExpectedFailure, ShuttingDown
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import AccountId, DeliveryId
from mailcheck.core.instants import BEGINNING
from mailcheck.core.messages import Delivery, Refusal
from mailcheck.operations.inbox.contents import LARGE, MessageContents
from mailcheck.ports.clocks import CallSoon, Now
from mailcheck.store.mail_store import MailStore
from mailcheck.store.messages import MessageRow, Prefetch

LOOK_SIZE = 200
"""Maximum number of messages in one read. The rest follows in the next read."""


class Waiter(Struct, eq=False):
    """One parked wait. Matching messages are queued in order until the waiter takes them.

    With ``wants_refusals``, rejected mail that may have matched is offered as well. At most
    ``max_held`` messages are queued, if given. ``has_missed`` says that there were more, so the
    store must be read. ``_has_removals`` is `None` while the waiter does not watch deletions.
    """

    account_id: AccountId
    wanted: MessageFilter
    wants_refusals: bool = False
    max_held: int | None = None
    has_missed: bool = False
    _has_removals: bool | None = None
    _messages: list[MessageRow] = field(default_factory=list)
    _refusals: list[Refusal] = field(default_factory=list)
    _bell: "Deferred[None] | None" = None
    _failure: Failure | ExpectedFailure | None = None

    @property
    def tag_key(self) -> str | None:
        """The folded tag that the client waits for; `None` for any tag."""
        return None if self.wanted.tag is None else fold_tag(self.wanted.tag)

    def offer(self, message: MessageRow) -> None:
        """Queue a message if it matches."""
        if self.wanted.matches(message.summary):
            self.has_missed = self.has_missed or len(self._messages) == self.max_held
            if not self.has_missed:
                self._messages.append(message)
            self._ring()

    def offer_refusal(self, refusal: Refusal) -> None:
        """Queue a rejection if its mail may have matched."""
        if self.wants_refusals and self.wanted.is_addressed(refusal):
            self.has_missed = self.has_missed or len(self._refusals) == self.max_held
            if not self.has_missed:
                self._refusals.append(refusal)
            self._ring()

    def begin_read(self) -> None:
        """Reset ``has_missed``, since the caller is about to read the store."""
        self.has_missed = False

    def watch_removals(self) -> None:
        """Watch messages that are deleted from now on."""
        self._has_removals = False

    def ignore_removals(self) -> None:
        """Stop watching deletions."""
        self._has_removals = None

    def note_removal(self) -> None:
        """Record that messages of the inbox were deleted."""
        if self._has_removals is False:
            self._has_removals = True
            self._ring()

    @property
    def has_removals(self) -> bool:
        """Whether messages were deleted since `watch_removals`."""
        return bool(self._has_removals)

    def when_offered(self) -> Deferred[None]:
        """Fire when there is something to take. The caller cancels it when it gives up."""
        if self._messages or self._refusals or self.has_removals:
            return succeed(None)
        if self._failure is not None:
            return fail(self._failure)
        self._bell = Deferred()
        return self._bell

    def take(
        self, after: Position, refused_after: Position | None = None
    ) -> tuple[list[MessageRow], list[Refusal]]:
        """Remove and return what was offered after a position, in order.

        A rejection may be offered later than messages that came after it, so ``refused_after``
        can give an earlier position for rejections.
        """
        messages = [message for message in self._messages if message.summary.position > after]
        start = after if refused_after is None else refused_after
        refusals = [refusal for refusal in self._refusals if refusal.position > start]
        self._messages, self._refusals = [], []
        return messages, refusals

    @property
    def has_all(self) -> bool:
        """Whether all offers were taken and none was missed."""
        return not (self._messages or self._refusals or self.has_missed)

    def fail(self, failure: Failure | ExpectedFailure) -> None:
        """End the wait with a failure. Messages that were offered before remain."""
        if self._failure is None:
            self._failure = failure
            self._ring()

    def _ring(self) -> None:
        bell, self._bell = self._bell, None
        if bell is None or bell.called:
            return
        if self._failure is None:
            bell.callback(None)
        else:
            bell.errback(self._failure)


class _Feed:
    """The waiters of one inbox, and the position up to which it was read for them.

    All messages from ``_start`` to ``_position`` were offered. The first read of a waiter sets both
    (``_is_started``). A read that is needed before, or while another is running, is due
    (``_is_due``). ``_has_offered`` and ``_has_left_out`` are about the mail that this daemon has
    stored since the last hint.
    """

    def __init__(self, account_id: AccountId, store: MailStore, now: Now) -> None:
        self._account_id = account_id
        self._store = store
        self._now = now
        self._is_started = self._is_running = self._is_due = False
        self._has_offered = self._has_left_out = False
        self._start = self._position = START
        self._by_tag: dict[str | None, dict[Waiter, None]] = {}
        self._along = Prefetch(lambda message: self.expects(message.tag), LARGE)

    def add(self, waiter: Waiter) -> None:
        self._by_tag.setdefault(waiter.tag_key, {})[waiter] = None

    def remove(self, waiter: Waiter) -> bool:
        """Remove a waiter and return whether it was the last."""
        group = self._by_tag.get(waiter.tag_key, {})
        group.pop(waiter, None)
        if not group:
            self._by_tag.pop(waiter.tag_key, None)
        return not self._by_tag

    def waiters(self) -> list[Waiter]:
        return [waiter for group in self._by_tag.values() for waiter in group]

    def start_from(self, position: Position) -> bool:
        """Set the start position from a waiter's own read; return whether its read was complete.

        The feed continues from where the first waiter stopped. A waiter whose read ended earlier
        has missed the messages in between, and must read again.
        """
        if not self._is_started:
            self._is_started = True
            self._start = self._position = position
            self._look_if_due()
        return position >= self._start

    @property
    def position(self) -> Position:
        """The position up to which everything was offered to the waiters."""
        return self._position

    def is_behind(self, position: Position) -> bool:
        """Return whether a message up to a position may not have been offered."""
        return not self._is_started or self._position < position

    def expects(self, tag: str) -> bool:
        """Return whether a client may wait for mail with this tag."""
        return None in self._by_tag or fold_tag(tag) in self._by_tag

    def wants_refusals(self) -> bool:
        """Return whether a client wants to know about rejected mail."""
        return any(waiter.wants_refusals for waiter in self.waiters())

    def take(self, message: MessageRow) -> None:
        """Offer a stored message if it is the next one, so that none is left out."""
        if self.reach(message.summary.position):
            self._offer_one(message)

    def reach(self, position: Position) -> bool:
        """Advance to a position if it is the next one; return whether it was."""
        is_next = position == self._position + 1
        if not self._is_started or self._is_running or not is_next:
            self._has_left_out = True
            return False
        self._has_offered = True
        self._position = position
        return True

    def on_hint(self) -> None:
        """Handle a hint. It needs no read if all messages it may be about were offered."""
        is_known = self._has_offered and not self._has_left_out
        self._has_offered = self._has_left_out = False
        if not is_known:
            self.look()

    def look(self) -> None:
        """Read new messages now, or right after the read that is running."""
        self._is_due = True
        self._look_if_due()

    def _look_if_due(self) -> None:
        if not self._is_due or self._is_running or not self._is_started:
            return
        self._is_due, self._is_running = False, True
        wanted = MessageFilter(after=self._position)
        found = self._store.oldest_matches(
            self._account_id, wanted, self._now(), LOOK_SIZE, self._along
        )
        found.addCallbacks(self._offer, self._fail).addCallback(self._end_look)

    def _offer(self, found: tuple[tuple[MessageRow, ...], Position]) -> Deferred[None] | None:
        messages, last_position = found
        if len(messages) == LOOK_SIZE:
            last_position = messages[-1].summary.position
            self._is_due = True
        before, self._position = self._position, last_position
        for message in messages:
            self._offer_one(message)
        # A position without a message belongs to a rejection or a deleted mail.
        if last_position - before > len(messages) and self.wants_refusals():
            between = MessageFilter(after=before, up_to=last_position)
            refusals = self._store.recent_refusals(self._account_id, BEGINNING, LOOK_SIZE, between)
            return refusals.addCallbacks(self._offer_refusals, self._fail)
        return None

    def _offer_refusals(self, refusals: list[Refusal]) -> None:
        for refusal in reversed(refusals):
            for waiter in self.waiters():
                waiter.offer_refusal(refusal)

    def _offer_one(self, message: MessageRow) -> None:
        for tag_key in (fold_tag(message.summary.tag), None):
            for waiter in tuple(self._by_tag.get(tag_key, ())):
                waiter.offer(message)

    def _fail(self, failure: Failure) -> None:
        for waiter in self.waiters():
            waiter.fail(failure)

    def _end_look(self, _: None) -> None:
        self._is_running = False
        if self._by_tag:
            self._look_if_due()


class InboxFeeds:
    """All parked waits of this daemon, by inbox."""

    def __init__(self, store: MailStore, now: Now) -> None:
        self._store = store
        self._now = now
        self._feeds: dict[AccountId, _Feed] = {}
        self._is_closed = False
        self._is_looking = False

    def join(
        self,
        account_id: AccountId,
        wanted: MessageFilter,
        *,
        wants_refusals: bool = False,
        max_held: int | None = None,
    ) -> Waiter:
        """Register a wait. The caller must always call `leave` afterwards.

        :raises ShuttingDown: the daemon is stopping.
        """
        if self._is_closed:
            raise ShuttingDown("the service is restarting")
        feed = self._feeds.get(account_id)
        if feed is None:
            feed = self._feeds[account_id] = _Feed(account_id, self._store, self._now)
        waiter = Waiter(account_id, wanted, wants_refusals, max_held)
        feed.add(waiter)
        return waiter

    def has_looked(self, waiter: Waiter, position: Position) -> bool:
        """Record a waiter's own read up to a position; return whether it was complete."""
        return self._feeds[waiter.account_id].start_from(position)

    def read_up_to(self, waiter: Waiter) -> Position:
        """Return the position up to which a waiter has handled everything, or the start."""
        return self._feeds[waiter.account_id].position if waiter.has_all else START

    def leave(self, waiter: Waiter) -> None:
        """Remove a wait."""
        feed = self._feeds.get(waiter.account_id)
        if feed is not None and feed.remove(waiter):
            del self._feeds[waiter.account_id]

    def expects(self, account_id: AccountId, tag: str) -> bool:
        """Return whether a client of this daemon may wait for this mail."""
        feed = self._feeds.get(account_id)
        return feed is not None and feed.expects(tag)

    def take(self, message: MessageRow) -> None:
        """Offer a message that was just stored, before its hint arrives."""
        feed = self._feeds.get(message.summary.account_id)
        if feed is not None:
            feed.take(message)

    def advance_past(self, account_id: AccountId, position: Position) -> None:
        """Record a stored message that no client of this daemon waits for."""
        feed = self._feeds.get(account_id)
        if feed is not None:
            feed.reach(position)

    def on_hint(self, account_id: AccountId) -> None:
        """Handle the hint that an inbox has new mail."""
        feed = self._feeds.get(account_id)
        if feed is not None:
            feed.on_hint()

    def on_removal(self, account_id: AccountId) -> None:
        """Handle the hint that mail of an inbox was deleted."""
        feed = self._feeds.get(account_id)
        if feed is not None:
            for waiter in feed.waiters():
                waiter.note_removal()

    def check_all(self) -> None:
        """Check all inboxes with waiters in one read, since hints may have been lost."""
        if self._feeds and not self._is_looking:
            self._is_looking = True
            found = self._store.newest_positions(tuple(self._feeds))
            found.addCallback(self._look_where_newer).addErrback(
                # If the store is unavailable, waiters fail when their inbox is read.
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
        """Return all parked waits."""
        return [waiter for feed in self._feeds.values() for waiter in feed.waiters()]

    def count(self) -> int:
        """Return the number of parked waits, without those of webhooks."""
        return sum(waiter.max_held != 0 for waiter in self.waiters())

    def close(self) -> None:
        """End all waits because the daemon stops."""
        self._is_closed = True
        for waiter in self.waiters():
            waiter.fail(ShuttingDown("the service is restarting"))


class MailHandoff(Struct, frozen=True, eq=False):
    """Passes received mail to the waits for it.

    :param when_stored: called for each stored delivery, so that its content is derived later.
    :param soon: schedules work until the mail is being written to disk.
    """

    feeds: InboxFeeds
    contents: MessageContents
    when_stored: Callable[[DeliveryId], None]
    call_soon: CallSoon

    def expect(self, delivery: Delivery) -> bool:
        """Prepare a mail that is being written; return whether a client waits for it.

        If storing it fails, its prepared content is dropped with its id, which no client has seen.
        """
        is_wanted = any(
            recipient.is_inbox and self.feeds.expects(recipient.account_id, recipient.tag)
            for recipient in delivery.envelope.recipients
        )
        if is_wanted:
            self.call_soon(partial(self.contents.prepare, delivery))
        return is_wanted

    def stored(self, delivery: Delivery, positions: Sequence[Position]) -> None:
        """Offer a stored mail, at these positions, to the waiters for it.

        A waiter that does not get it here finds it by the hint that follows.
        """
        self.when_stored(delivery.id)
        # A repeated mail has no position where it was stored before, and mail to tests and
        # reports has none at all. The store then assigns the positions.
        if len(positions) != len(delivery.envelope.recipients):
            return
        for number, recipient in enumerate(delivery.envelope.recipients):
            if self.feeds.expects(recipient.account_id, recipient.tag):
                self.feeds.take(_message_of(delivery, number, positions[number]))
            else:
                self.feeds.advance_past(recipient.account_id, positions[number])


def _message_of(delivery: Delivery, number: int, position: Position) -> MessageRow:
    """Return the message of one recipient, equal to the row in the store."""
    summary = delivery.message(number, position, summarize_header(delivery.raw_message))
    # The account that has sent a mail is not part of the stored session.
    session = replace(delivery.session, account_id=None)
    envelope = delivery.envelope
    return MessageRow(summary, envelope.envelope_sender, session, request=envelope.request)
