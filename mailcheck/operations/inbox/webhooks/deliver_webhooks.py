"""Delivering webhooks: each in the order of its inbox, at least once, by one of all daemons.

The pending deliveries are the messages after a webhook's position in the store. Hints about new
messages arrive as for a parked wait. Messages are read in small batches when they are due. They
are read again when mail of the inbox is deleted, so that deleted mail is never sent. Deliveries
are recorded while the next message is sent, several in one write. After a crash, the unrecorded
ones are sent again with the same ids.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum

from msgspec.structs import replace
from twisted.internet.defer import CancelledError, Deferred, DeferredList, succeed
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailcheck.core.content import MessageContent
from mailcheck.core.cursors import START, Position
from mailcheck.core.errors import ExpectedFailure, MessageNotFound
from mailcheck.core.identifiers import AccountId, WebhookId
from mailcheck.core.instants import SECOND
from mailcheck.core.memory.instruments import Tally
from mailcheck.core.messages import ListedMessage, StoredMessage
from mailcheck.core.webhooks import (
    MESSAGE_EVENT,
    MOST_WEBHOOKS,
    PAUSED_RETRY,
    Webhook,
    WebhookDelivery,
    WebhookState,
    failed,
    told,
)
from mailcheck.operations.concurrency import SingleFlight, stop_timer
from mailcheck.operations.inbox.contents import LARGE, UNREADABLE, MessageLoader
from mailcheck.operations.inbox.feeds import InboxFeeds, Waiter
from mailcheck.operations.inbox.webhooks.manage_webhooks import WriteMessage, send_once
from mailcheck.operations.semaphores import FairSemaphore, NoPermit
from mailcheck.ports.clocks import ClockAndRandomness
from mailcheck.ports.probes import WebhookDialer
from mailcheck.store.accounts.webhook_store import WebhookStore
from mailcheck.store.mail_store import MailStore
from mailcheck.store.messages import MessageRow, Prefetch

RENEWAL = 5.0
"""Seconds between two polls, which renew the lease and find messages whose hints were lost."""

LEASE = 15 * SECOND
"""Duration of the lease. Afterwards another daemon delivers instead of a dead one."""

LOADED_FOR = 60.0
"""Seconds after which all webhooks are read again, even without hints of changes."""

AT_ONCE = 256
"""Maximum number of concurrent deliveries. An unresponsive receiver uses a permit until its
timeout."""

WAITING = 100_000
"""Maximum number of deliveries that wait for a permit."""

PATIENCE = 60.0
"""Seconds that a webhook waits for a permit before it reads its messages again."""

LONGEST_WAIT = 2 * PAUSED_RETRY
"""Longest wait for a retry, in milliseconds."""

TROUBLE = 5.0
"""Seconds until a webhook continues after an internal failure."""

LEAST_AHEAD, MOST_AHEAD = 2, 50
"""Minimum and maximum number of messages read in one batch. Fast receivers get larger ones."""

AHEAD_FOR = 1.0
"""Seconds after which messages that were read but not sent are read again."""

MOST_UNRECORDED = 50
"""Maximum number of unrecorded deliveries. That many are repeated after a crash at worst."""

_ALONG = Prefetch(lambda _: True, LARGE, MOST_AHEAD)


class _Polling(Enum):
    """The state of polling for the lease and for webhooks."""

    STOPPED = "no poll starts"
    IDLE = "a poll starts on request"
    RUNNING = "a poll is running"
    DUE = "a poll is running, and another one follows"


class DeliverWebhooks:
    """Delivers as long as it holds the lease. ``holder`` is the name of this daemon."""

    _log = Logger()

    def __init__(
        self,
        store: WebhookStore,
        messages: MailStore,
        feeds: InboxFeeds,
        loader: MessageLoader,
        dialer: WebhookDialer,
        write: WriteMessage,
        holder: str,
        clocks: ClockAndRandomness,
    ) -> None:
        self.store = store
        self.messages = messages
        self.feeds = feeds
        self.loader = loader
        self.write = write
        self.holder = holder
        self.clock = clocks.clock
        self.now = clocks.now
        self.expiry_now = clocks.expiry_now
        self.outcomes = Tally()
        self.semaphore: FairSemaphore[AccountId] = FairSemaphore(
            clocks.clock, per_owner=MOST_WEBHOOKS, limit=AT_ONCE, max_waiting=WAITING
        )
        self._dialer = dialer
        self._random_bytes = clocks.random_bytes
        self._senders: dict[WebhookId, _WebhookSender] = {}
        self._held_until = 0.0
        self._load_at = 0.0
        self._polling = _Polling.STOPPED
        self._poll_ended: Deferred[None] = succeed(None)

    async def start(self) -> None:
        """Start delivering."""
        self._polling = _Polling.IDLE
        self.wake()

    async def stop(self) -> None:
        """Stop deliveries and release the lease. An interrupted delivery may be repeated."""
        self._polling = _Polling.STOPPED
        await self._poll_ended
        had_lease = self.holds_lease
        await self._let_go(self._senders)
        try:
            if had_lease:
                await self.store.release(self.holder)
        except ExpectedFailure as failure:
            self._log.warn("the lease of webhooks could not be released: {reason}", reason=failure)

    def on_change(self, _: str) -> None:
        """Handle the hint that an owner has changed a webhook."""
        self._load_at = 0.0
        self.wake()

    def reconnect(self) -> None:
        """Replace the connections of all webhooks, after a change of the networks they may use."""
        for sender in self._senders.values():
            sender.connect(self._dialer)

    def wake(self) -> None:
        """Poll now, or right after the poll that is running."""
        if self._polling is _Polling.RUNNING:
            self._polling = _Polling.DUE
        elif self._polling is _Polling.IDLE:
            self._polling = _Polling.DUE
            self._poll_ended = Deferred.fromCoroutine(self._poll())

    async def renew(self) -> None:
        """Renew the lease, and find messages whose hints were lost."""
        self.wake()
        await self._poll_ended

    @property
    def holds_lease(self) -> bool:
        """Whether this daemon holds the lease, as far as it knows."""
        return self.clock.seconds() < self._held_until

    @property
    def chance(self) -> float:
        """A random number from 0 to 1."""
        return self._random_bytes(1)[0] / 255

    def states(self) -> Iterator[WebhookState]:
        """Return the state of each webhook that this daemon delivers to."""
        return (sender.webhook.state for sender in self._senders.values())

    async def _poll(self) -> None:
        try:
            while self._polling is _Polling.DUE:
                self._polling = _Polling.RUNNING
                await self._poll_once()
        except ExpectedFailure as failure:
            self._load_at = 0.0
            self._log.warn("webhooks are delayed: {reason}", reason=failure)
        except Exception:
            self._load_at = 0.0
            self._log.failure("polling for webhooks failed")
        finally:
            if self._polling is not _Polling.STOPPED:
                self._polling = _Polling.IDLE

    async def _poll_once(self) -> None:
        began = self.clock.seconds()
        is_mine = await self.store.is_wanted(self.holder, self.now()) and await self.store.claim(
            self.holder, self.now(), LEASE
        )
        if not is_mine:
            self._held_until = 0.0
            await self._let_go(self._senders)
            return
        if not self.holds_lease:
            self._load_at = 0.0  # another daemon may have delivered meanwhile
        self._held_until = began + LEASE / SECOND
        if began >= self._load_at:
            self._load_at = began + LOADED_FOR
            webhooks = {webhook.id: webhook for webhook in await self.store.open_webhooks()}
            await self._let_go(set(self._senders) - set(webhooks))
            for webhook in webhooks.values():
                if webhook.id in self._senders:
                    self._senders[webhook.id].adopt(webhook)
                else:
                    self._senders[webhook.id] = _WebhookSender(webhook, self, self._dialer)
        accounts = {sender.webhook.account_id for sender in self._senders.values()}
        newest = await self.messages.newest_positions(tuple(accounts))
        for sender in self._senders.values():
            sender.check_inbox(newest.get(sender.webhook.account_id, START))

    async def _let_go(self, webhook_ids: Iterable[WebhookId]) -> None:
        ended = [self._senders.pop(webhook_id).end() for webhook_id in tuple(webhook_ids)]
        await DeferredList(ended)


class _State(Enum):
    """The state of the sender of one webhook."""

    IDLE = "waits for a timer, a change by its owner, or the next poll of the daemon"
    LISTENING = "waits for the feed of its inbox to offer a message"
    RUNNING = "reads and sends messages"
    RUN_DUE = "as RUNNING, and reads the store once more afterwards"
    ENDED = "sends no more messages; a run that was running ends"


class _WebhookSender:
    """Sends the messages of one webhook.

    ``webhook`` includes the deliveries that are not recorded yet. All messages up to
    ``_read_up_to`` have been handled. ``_waiter`` filters new messages as for a parked wait, so
    unwanted mail costs nothing here. A ``_timer``, or ``_is_outdated`` (the webhook must be read
    again), delays the next run; `wake` is called when the delay ends.
    """

    _log = Logger()

    def __init__(self, webhook: Webhook, queue: DeliverWebhooks, dialer: WebhookDialer) -> None:
        self.webhook = webhook
        self._queue = queue
        self._line = dialer.line(webhook.account_name)
        self._read_up_to = webhook.position
        self._ahead = LEAST_AHEAD
        self._waiter: Waiter | None = None
        self._state = _State.IDLE
        self._run_ended: Deferred[None] = succeed(None)
        self._timer: IDelayedCall | None = None
        self._unrecorded: list[WebhookDelivery] = []
        self._records: SingleFlight[None, None] = SingleFlight(self._record_all)
        self._is_outdated = False
        self._wait_for_retry()

    def connect(self, dialer: WebhookDialer) -> None:
        """Use a new connection. A delivery over the old one fails and is repeated."""
        self._line.hang_up()
        self._line = dialer.line(self.webhook.account_name)

    def check_inbox(self, newest: Position) -> None:
        """Run if the inbox's last position (``newest``) may not have been offered."""
        if self._state is _State.LISTENING and self._waiter is not None:
            heard_up_to = self._queue.feeds.read_up_to(self._waiter)
            self._read_up_to = max(self._read_up_to, heard_up_to)
        if self._state is not _State.LISTENING or self._read_up_to < newest:
            self.wake()

    def wake(self) -> None:
        """Read and send due messages, now or after the current run, unless it is delayed."""
        if self._state is _State.RUNNING:
            self._state = _State.RUN_DUE
        if self._state in (_State.IDLE, _State.LISTENING):
            self._state = _State.IDLE
            if self._may_go_on():
                self._state = _State.RUN_DUE
                self._run_ended = Deferred.fromCoroutine(self._run())

    def adopt(self, webhook: Webhook) -> None:
        """Take over changes by the owner. The delivery position is more recent here."""
        if webhook.revision == self.webhook.revision and not self._is_outdated:
            self.webhook = replace(
                self.webhook,
                secret=webhook.secret,
                earlier_secret=webhook.earlier_secret,
                earlier_until=webhook.earlier_until,
            )
            return
        self.webhook = webhook
        self._is_outdated = False
        self._read_up_to = webhook.position
        self._unrecorded.clear()
        self._unrecorded = []
        self._forget_timer()
        self._wait_for_retry()
        self.wake()

    def end(self) -> Deferred[None]:
        """Stop sending. Fires when no run is active and all deliveries are recorded."""
        self._state = _State.ENDED
        self._forget_timer()
        self._run_ended.cancel()
        self._line.hang_up()
        self._leave_feed()
        return self._run_ended

    async def _run(self) -> None:
        pause, is_cancelled = 0.0, False
        try:
            await self._send_all()
        except CancelledError:
            is_cancelled = True
        except NoPermit:
            pause = TROUBLE
        except ExpectedFailure as failure:
            self._log.warn("webhook {id} is delayed: {why}", id=self.webhook.id, why=failure)
            pause = TROUBLE
        except Exception:
            self._log.failure("webhook {id} could not be delivered", id=self.webhook.id)
            pause = TROUBLE
        if self._state is _State.ENDED:
            self._leave_feed()
            return
        is_due = self._state is _State.RUN_DUE
        self._state = _State.IDLE
        if pause:
            self._wait(pause)
        elif self._may_go_on() and not is_cancelled:
            self._listen(is_due=is_due)

    async def _send_all(self) -> None:
        if self._unrecorded:  # the store was unavailable
            await self._records.call(None)
            self._wait_for_retry()
        try:
            while self._state is _State.RUN_DUE and self._may_go_on():
                self._state = _State.RUNNING
                async with self._queue.semaphore.held(self.webhook.account_id, PATIENCE):
                    has_more = self._may_go_on() and await self._send_batch()
                if has_more:
                    self.wake()
        finally:
            if self._unrecorded:
                await self._records.call(None)

    def _may_go_on(self) -> bool:
        is_free = self._timer is None and not self.webhook.is_given_up and not self._is_outdated
        return is_free and self._state is not _State.ENDED and self._queue.holds_lease

    def _listen(self, *, is_due: bool) -> None:
        """Wait for the next matching message, or run at once if one may have arrived already."""
        waiter = self._waiter
        if is_due or waiter is None or waiter.has_missed:
            self.wake()
            return
        waiter.ignore_removals()
        self._state = _State.LISTENING
        waiter.when_offered().addCallbacks(lambda _: self.wake(), self._listen_later)

    def _listen_later(self, failure: Failure) -> None:
        failure.trap(ExpectedFailure)  # the store is unavailable, or the daemon stops
        self._leave_feed()
        if self._state is _State.LISTENING:
            self._state = _State.IDLE
        if self._state is not _State.ENDED:
            self._wait(TROUBLE)

    def _leave_feed(self) -> None:
        if self._waiter is not None:
            self._queue.feeds.leave(self._waiter)
            self._waiter = None

    async def _send_batch(self) -> bool:
        """Send the next batch. Return whether there may be more messages."""
        queue, webhook, limit = self._queue, self.webhook, self._ahead
        # The waiter is notified of all messages and deletions from here on.
        waiter = self._waiter
        if waiter is None:
            waiter = queue.feeds.join(webhook.account_id, webhook.wanted, max_held=0)
            self._waiter = waiter
        waiter.begin_read()
        waiter.watch_removals()
        wanted = replace(webhook.wanted, after=self._read_up_to)
        rows, last_position = await queue.messages.oldest_matches(
            webhook.account_id, wanted, queue.expiry_now(), limit, _ALONG
        )
        if self.webhook.revision != webhook.revision:
            return True  # the owner has changed the webhook meanwhile
        handled = await self._send_each(rows, webhook.revision, waiter)
        if handled < len(rows):
            self._ahead = max(LEAST_AHEAD, handled)
            return True
        if len(rows) == limit:
            self._ahead = min(2 * limit, MOST_AHEAD)
            return True
        self._read_up_to = max(self._read_up_to, last_position)
        if waiter is not self._waiter:
            return True  # the waiter has failed
        return waiter.has_missed or not queue.feeds.has_looked(waiter, last_position)

    async def _send_each(self, rows: Sequence[MessageRow], revision: int, waiter: Waiter) -> int:
        """Send messages as long as none was deleted; return the number of handled messages."""
        queue = self._queue
        handled, until = 0, queue.clock.seconds() + AHEAD_FOR
        for row in rows:
            is_late = handled > 0 and queue.clock.seconds() >= until
            if is_late or waiter.has_removals or not self._may_go_on():
                break
            message = await self._complete(row)
            if self.webhook.revision != revision or waiter.has_removals:
                break
            if message is not None and not await self._send(message, revision):
                break
            self._read_up_to = max(self._read_up_to, row.summary.position)
            handled += 1
        return handled

    async def _send(self, message: StoredMessage, revision: int) -> bool:
        """Send a message. Return false if it was rejected, or the webhook has changed."""
        queue, webhook = self._queue, self.webhook
        if not self._may_go_on():
            return False
        listed = ListedMessage(message.summary, message.content.extracted)
        event_id = f"{MESSAGE_EVENT}{message.summary.id}"
        content = message.content
        body = queue.write(webhook, listed, content.text, content.message_id, message.request)
        delivery = await send_once(
            self._line, webhook, event_id, body, queue.clock, now=queue.now()
        )
        if self.webhook.revision != revision:
            return False  # the owner has changed the webhook meanwhile
        if delivery.attempt.wait:
            self._wait(delivery.attempt.wait / SECOND)
            return False
        await self._note_delivery(delivery, message.summary.position)
        return delivery.attempt.is_taken

    async def _note_delivery(self, delivery: WebhookDelivery, position: Position) -> None:
        queue, attempt, before = self._queue, delivery.attempt, self.webhook
        if attempt.is_taken:
            self.webhook = told(before, position)
        else:
            self.webhook = failed(before, attempt, queue.now(), queue.chance)
            self._wait_for_retry()
        queue.outcomes.add("told" if attempt.is_taken else "failed")
        if self.webhook.state is not before.state:
            is_active = self.webhook.state is WebhookState.ACTIVE
            (self._log.info if is_active else self._log.warn)(
                "webhook {id} of account {account} is {state}: {why}",
                id=self.webhook.id,
                account=self.webhook.account_name,
                state=self.webhook.state.value,
                why=self.webhook.problem or "its receiver accepts events again",
            )
        self._unrecorded.append(delivery)
        recorded = self._records.call(None)
        if len(self._unrecorded) >= MOST_UNRECORDED:
            await recorded
        else:
            recorded.addErrback(lambda _: None)  # the end of the run records the rest

    async def _record_all(self, _: None) -> None:
        unrecorded = self._unrecorded
        while unrecorded:
            some = tuple(unrecorded)
            is_kept = await self._queue.store.record(self._queue.holder, self.webhook, some)
            if not is_kept and unrecorded:
                # The owner has changed or deleted it, or another daemon delivers now.
                unrecorded.clear()
                self._is_outdated = True
                self._queue.on_change(self.webhook.id)
            del unrecorded[: len(some)]

    async def _complete(self, row: MessageRow) -> StoredMessage | None:
        """Return the whole message, or `None` if it was deleted or does not match."""
        queue, wanted = self._queue, self.webhook.wanted
        if row.summary.expires_at <= queue.expiry_now():
            return None
        try:
            message = await queue.loader.complete(row)
        except MessageNotFound:
            return None
        content = message.content
        is_read = wanted.asks_content and content is not UNREADABLE
        if is_read and wanted.content_mismatches(message.summary, content):
            return None
        if not isinstance(row.content, MessageContent):
            # Deriving the content took a while, so the message may have been deleted.
            account_id, message_id = row.summary.account_id, row.summary.id
            if not await queue.messages.find_message(account_id, message_id, queue.expiry_now()):
                return None
        return message

    def _wait_for_retry(self) -> None:
        if self.webhook.retry_at is not None:
            wait = self.webhook.retry_at - self._queue.now()
            # Limit the wait in case the clock was set back.
            self._wait(min(max(0, wait), LONGEST_WAIT) / SECOND)

    def _wait(self, seconds: float) -> None:
        self._forget_timer()
        self._timer = self._queue.clock.callLater(seconds, self._go_on)

    def _go_on(self) -> None:
        self._timer = None
        self.wake()

    def _forget_timer(self) -> None:
        stop_timer(self._timer)
        self._timer = None
