"""Telling webhooks of mail: each in the order of its inbox, at least once, by one daemon of all.

What is to be told stands in the store alone: the messages behind a webhook's position. Hints
say that there may be some; each is read when its turn has come, so that what was deleted is
never sent. What was told is recorded before the next is sent: who dies in between tells one
message once more, with the same id.
"""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace
from twisted.internet.defer import CancelledError, Deferred, DeferredList, succeed
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from mailcheck.core.content import MessageContent
from mailcheck.core.cursors import Position
from mailcheck.core.errors import ExpectedFailure, MessageNotFound
from mailcheck.core.identifiers import AccountId, RandomBytes, WebhookId
from mailcheck.core.instants import SECOND
from mailcheck.core.instruments import Tally
from mailcheck.core.messages import ListedMessage, StoredMessage
from mailcheck.core.webhooks import (
    MOST_WEBHOOKS,
    PAUSED_RETRY,
    Webhook,
    WebhookDelivery,
    WebhookState,
    failed,
    told,
)
from mailcheck.operations.inbox.contents import UNREADABLE, MessageLoader
from mailcheck.operations.inbox.mail_bytes import LARGE
from mailcheck.operations.inbox.webhook_ports import WebhookDialer, WebhookStore
from mailcheck.operations.inbox.webhooks import WriteMessage, try_once
from mailcheck.operations.places import NoPlace, Places
from mailcheck.operations.ports import MessageRow, MessageStore, Now, ReadAlong

RENEWAL = 5.0
"""Seconds between looks: for the lease, and for what hints have not told."""

LEASE = 15 * SECOND
"""After that another daemon delivers instead of one that has died."""

LOADED_FOR = 60.0
"""Seconds after which all webhooks are read again, hints of changes or not."""

AT_ONCE = 256
"""Deliveries under way at a time; receivers that hang take a place each until they are given up."""

WAITING = 100_000

PATIENCE = 60.0
"""Seconds that a webhook waits for its turn before it looks anew."""

LONGEST_WAIT = 2 * PAUSED_RETRY

TROUBLE = 5.0
"""Seconds until a webhook goes on after a failure that is ours."""

_ALONG = ReadAlong(lambda _: True, LARGE)


class DeliverWebhooks:
    """Delivers as long as it holds the lease; ``holder`` is this daemon's own name."""

    _log = Logger()

    def __init__(
        self,
        store: WebhookStore,
        messages: MessageStore,
        loader: MessageLoader,
        dialer: WebhookDialer,
        write: WriteMessage,
        holder: str,
        clock: IReactorTime,
        now: Now,
        expiry_now: Now,
        random_bytes: RandomBytes,
    ) -> None:
        self.store = store
        self.messages = messages
        self.loader = loader
        self.write = write
        self.holder = holder
        self.clock = clock
        self.now = now
        self.expiry_now = expiry_now
        self.outcomes = Tally()
        self.places: Places[AccountId] = Places(
            clock, of_one=MOST_WEBHOOKS, at_once=AT_ONCE, waiting=WAITING
        )
        self._dialer = dialer
        self._random_bytes = random_bytes
        self._couriers: dict[WebhookId, _Courier] = {}
        self._by_account: dict[AccountId, list[_Courier]] = {}
        self._held_until = 0.0
        self._load_at = 0.0
        self._is_running = False
        self._looking: Deferred[None] = succeed(None)
        self._is_looking = False
        self._must_look = False

    async def start(self) -> None:
        """Begin with what is behind."""
        self._is_running = True
        self.look()

    async def stop(self) -> None:
        """Give up what is under way, and let another daemon go on; it may be told once more."""
        self._is_running = False
        await self._looking
        had_lease = self.holds_lease
        await self._let_go(self._couriers)
        try:
            if had_lease:
                await self.store.release(self.holder)
        except ExpectedFailure as failure:
            self._log.warn("webhooks could not be let go of: {reason}", reason=failure)

    def hear(self, account_id: AccountId) -> None:
        """Take the hint that an inbox has new mail."""
        for courier in self._by_account.get(account_id, ()):
            courier.wake()

    def hear_change(self, _: str) -> None:
        """Take the hint that an owner has changed something."""
        self._load_at = 0.0
        self.look()

    def look(self) -> None:
        """Take the lease where it is free, and see what there is to do: now, or right after."""
        self._must_look = True
        if self._is_running and not self._is_looking:
            self._is_looking = True
            self._looking = Deferred.fromCoroutine(self._look())

    async def renew(self) -> None:
        """Hold the lease for longer, and see what hints have not told."""
        self.look()
        await self._looking

    @property
    def holds_lease(self) -> bool:
        """Tell whether no other daemon delivers, for all that this one knows."""
        return self.clock.seconds() < self._held_until

    @property
    def chance(self) -> float:
        """Give a random number, from 0 to 1."""
        return self._random_bytes(1)[0] / 255

    def states(self) -> Iterator[WebhookState]:
        """Give the state of each webhook that this daemon delivers to."""
        return (courier.webhook.state for courier in self._couriers.values())

    async def _look(self) -> None:
        try:
            while self._must_look and self._is_running:
                self._must_look = False
                await self._look_once()
        except ExpectedFailure as failure:
            self._log.warn("webhooks are put off: {reason}", reason=failure)
        except Exception:
            self._log.failure("webhooks could not be looked after")
        finally:
            self._is_looking = False

    async def _look_once(self) -> None:
        began = self.clock.seconds()
        is_mine = await self.store.is_wanted(self.holder, self.now()) and await self.store.claim(
            self.holder, self.now(), LEASE
        )
        if not is_mine:
            self._held_until = 0.0
            await self._let_go(self._couriers)
            return
        if not self.holds_lease:
            self._load_at = 0.0  # another one may have delivered meanwhile
        self._held_until = began + LEASE / SECOND
        if began >= self._load_at:
            self._load_at = began + LOADED_FOR
            await self._load()
        newest = await self.messages.newest_positions(tuple(self._by_account))
        for courier in self._couriers.values():
            if courier.is_behind(newest.get(courier.webhook.account_id)):
                courier.wake()

    async def _load(self) -> None:
        webhooks = {webhook.id: webhook for webhook in await self.store.open_ones()}
        await self._let_go(set(self._couriers) - set(webhooks))
        for webhook in webhooks.values():
            courier = self._couriers.get(webhook.id)
            if courier is None:
                courier = _Courier(webhook, self, self._dialer)
                self._couriers[webhook.id] = courier
                self._by_account.setdefault(webhook.account_id, []).append(courier)
            else:
                courier.adopt(webhook)

    async def _let_go(self, webhook_ids: Iterable[WebhookId]) -> None:
        ended = []
        for webhook_id in tuple(webhook_ids):
            courier = self._couriers.pop(webhook_id)
            account_id = courier.webhook.account_id
            self._by_account[account_id].remove(courier)
            if not self._by_account[account_id]:
                del self._by_account[account_id]
            ended.append(courier.end())
        await DeferredList(ended)


class _Courier:
    """Tells one webhook; ``_read_up_to`` is up to where nothing is left to be told."""

    _log = Logger()

    def __init__(self, webhook: Webhook, office: DeliverWebhooks, dialer: WebhookDialer) -> None:
        self.webhook = webhook
        self._office = office
        self._line = dialer.line(webhook.account_name)
        self._read_up_to = webhook.position
        self._under_way: Deferred[None] = succeed(None)
        self._is_busy = False
        self._must_look = False
        self._timer: IDelayedCall | None = None
        self._unrecorded: tuple[Webhook, WebhookDelivery] | None = None
        self._is_ended = False
        self._wait_for_retry()

    def is_behind(self, newest: Position | None) -> bool:
        """Tell whether there may be something to tell."""
        return newest is not None and self._read_up_to < newest

    def wake(self) -> None:
        """See what there is to tell, unless it is not time yet."""
        self._must_look = True
        if not self._is_busy and self._may_go_on():
            self._is_busy = True
            self._under_way = Deferred.fromCoroutine(self._run())

    def adopt(self, webhook: Webhook) -> None:
        """Take over what the owner has changed; how far it was told is known better here."""
        if webhook.revision == self.webhook.revision:
            self.webhook = _with_secrets_of(webhook, self.webhook)
            return
        self.webhook = webhook
        self._read_up_to = webhook.position
        self._unrecorded = None
        self._forget_timer()
        self.wake()

    def end(self) -> Deferred[None]:
        """Tell nothing more; fires when nothing is under way."""
        self._is_ended = True
        self._forget_timer()
        self._under_way.cancel()
        self._line.hang_up()
        return self._under_way

    async def _run(self) -> None:
        pause = 0.0
        try:
            while self._must_look and self._may_go_on():
                self._must_look = False
                self._must_look = await self._tell_next() or self._must_look
        except CancelledError:
            return
        except NoPlace:
            pause = TROUBLE
        except ExpectedFailure as failure:
            self._log.warn("webhook {id} is put off: {why}", id=self.webhook.id, why=failure)
            pause = TROUBLE
        except Exception:
            self._log.failure("webhook {id} could not be told", id=self.webhook.id)
            pause = TROUBLE
        finally:
            self._is_busy = False
        if pause and not self._is_ended:
            self._wait(pause)

    def _may_go_on(self) -> bool:
        is_free = self._timer is None and not self.webhook.is_given_up
        return is_free and not self._is_ended and self._office.holds_lease

    async def _tell_next(self) -> bool:
        """Tell the next message; false where there is none."""
        if self._unrecorded is not None:
            await self._record(*self._unrecorded)
            return True
        office, webhook = self._office, self.webhook
        async with office.places.held(webhook.account_id, PATIENCE):
            message = await self._find_next()
            if message is None or not self._may_go_on():
                return False
            listed = ListedMessage(message.summary, message.content.extracted)
            event_id, body = f"msg_{message.summary.id}", office.write(listed)
            delivery = await try_once(
                self._line, webhook, event_id, body, office.clock, office.now()
            )
        if self.webhook.revision != webhook.revision:
            return True  # changed by its owner meanwhile: that holds
        if delivery.attempt.wait:
            self._wait(delivery.attempt.wait / SECOND)
            return True
        await self._keep(delivery, message.summary.position)
        return True

    async def _keep(self, delivery: WebhookDelivery, position: Position) -> None:
        office, attempt = self._office, delivery.attempt
        if attempt.is_taken:
            after = told(self.webhook, position)
        else:
            after = failed(self.webhook, attempt, office.now(), office.chance)
        office.outcomes.add("told" if attempt.is_taken else "failed")
        self._unrecorded = (after, delivery)
        await self._record(after, delivery)

    async def _record(self, after: Webhook, delivery: WebhookDelivery) -> None:
        is_kept = await self._office.store.record(self._office.holder, after, delivery)
        self._unrecorded = None
        if not is_kept:
            # Changed or deleted by its owner, or another daemon delivers now.
            self._wait(TROUBLE)
            self._office.hear_change(self.webhook.id)
            return
        before = self.webhook
        self.webhook = _with_secrets_of(before, after)
        self._read_up_to = max(self._read_up_to, after.position)
        if after.state is not before.state:
            self._log_state()
        self._wait_for_retry()

    async def _find_next(self) -> StoredMessage | None:
        office = self._office
        while True:
            wanted = replace(self.webhook.wanted, after=self._read_up_to)
            rows, last_position = await office.messages.oldest_matches(
                self.webhook.account_id, wanted, office.expiry_now(), 1, _ALONG
            )
            if not rows:
                self._read_up_to = max(self._read_up_to, last_position)
                return None
            message = await self._complete(rows[0])
            if message is not None:
                return message
            self._read_up_to = rows[0].summary.position

    async def _complete(self, row: MessageRow) -> StoredMessage | None:
        """Give the whole message; nothing of one that is gone, or has other contents."""
        office, wanted = self._office, self.webhook.wanted
        try:
            message = await office.loader.complete(row)
        except MessageNotFound:
            return None
        content = message.content
        if wanted.asks_content and content is not UNREADABLE and wanted.content_mismatches(content):
            return None
        if not isinstance(row.content, MessageContent):
            # It took a while to be taken apart: it may have been deleted meanwhile.
            account_id, message_id = row.summary.account_id, row.summary.id
            if not await office.messages.find_message(account_id, message_id, office.expiry_now()):
                return None
        return message

    def _wait_for_retry(self) -> None:
        if self.webhook.retry_at is not None:
            wait = self.webhook.retry_at - self._office.now()
            # No longer than such waits are, where the clock was set back meanwhile.
            self._wait(min(max(0, wait), LONGEST_WAIT) / SECOND)

    def _wait(self, seconds: float) -> None:
        self._forget_timer()
        self._timer = self._office.clock.callLater(seconds, self._go_on)

    def _go_on(self) -> None:
        self._timer = None
        self.wake()

    def _forget_timer(self) -> None:
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        self._timer = None

    def _log_state(self) -> None:
        webhook = self.webhook
        log = self._log.info if webhook.state is WebhookState.ACTIVE else self._log.warn
        log(
            "webhook {id} of account {account} is {state}: {why}",
            id=webhook.id,
            account=webhook.account_name,
            state=webhook.state.value,
            why=webhook.problem or "its receiver answers again",
        )


def _with_secrets_of(other: Webhook, webhook: Webhook) -> Webhook:
    return replace(
        webhook,
        secret=other.secret,
        earlier_secret=other.earlier_secret,
        earlier_until=other.earlier_until,
    )
