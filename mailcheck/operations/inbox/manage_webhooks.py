"""Webhooks of an account: made, looked at, changed, tried and deleted by their owner."""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace
from twisted.internet.interfaces import IReactorTime

from mailcheck.core.content import Extracted, HeaderSummary
from mailcheck.core.cursors import START, Position
from mailcheck.core.errors import WebhookNotFound
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import (
    AccountId,
    DeliveryId,
    MessageId,
    WebhookId,
    new_share_token,
    new_short_id,
    new_time_ordered_id,
    new_webhook_secret,
)
from mailcheck.core.instants import DAY, SECOND, Instant
from mailcheck.core.messages import ListedMessage, MessageSummary
from mailcheck.core.webhooks import (
    EARLIER_SECRET_KEPT,
    Webhook,
    WebhookDelivery,
    parse_webhook_url,
)
from mailcheck.ports.clocks import TimeAndChance
from mailcheck.ports.cluster import WakeUps
from mailcheck.ports.probes import Post, WebhookDialer, WebhookLine
from mailcheck.store.accounts.webhook_store import WebhookStore

WriteMessage = Callable[[Webhook, ListedMessage, str], bytes]
"""Writes what a webhook is told of a message, with its text: as lists have it, or as a mail."""

SAMPLE_EVENT = "test_"
SAMPLE_TAG = "webhook-test"
SAMPLE_TEXT = "This is a test: alerts come here."


class WebhookDetails(Struct, frozen=True):
    """A webhook with its last deliveries, newest first."""

    webhook: Webhook
    deliveries: list[WebhookDelivery]


class ManageWebhooks:
    """The operations of the owner; whoever delivers is told of each change by a hint."""

    def __init__(
        self,
        store: WebhookStore,
        dialer: WebhookDialer,
        changes: WakeUps[str],
        write: WriteMessage,
        time_and_chance: TimeAndChance,
    ) -> None:
        self._store = store
        self._dialer = dialer
        self._changes = changes
        self._write = write
        self._clock = time_and_chance.clock
        self._now = time_and_chance.now
        self._random_bytes = time_and_chance.random_bytes

    async def create(self, account_id: AccountId, url: str, wanted: MessageFilter) -> Webhook:
        """Make a webhook that is told what comes from now on, or after the filter's cursor.

        :raises InvalidParameter: the URL can't be one, or the cursor is another inbox's.
        :raises TooManyWebhooks: the account has as many as it may.
        """
        parse_webhook_url(url)
        self._dialer.require_foreign(url)
        webhook = Webhook(
            id=WebhookId(new_short_id(self._random_bytes)),
            account_id=account_id,
            account_name="",
            url=url,
            wanted=replace(wanted, after=None),
            created_at=self._now(),
            position=wanted.start,
            secret=new_webhook_secret(self._random_bytes),
        )
        added = await self._store.add(webhook, is_from_now=wanted.after is None)
        self._changes.publish(added.id)
        return added

    async def of_account(self, account_id: AccountId) -> list[Webhook]:
        """List the webhooks of an account, oldest first."""
        return await self._store.of_account(account_id)

    async def show(self, account_id: AccountId, webhook_id: str) -> WebhookDetails:
        """Give a webhook with its last deliveries.

        :raises WebhookNotFound: the account has none of this id.
        """
        webhook = _found(await self._store.find(account_id, WebhookId(webhook_id)))
        return WebhookDetails(webhook, await self._store.deliveries(webhook.id))

    async def all_shown(self, account_id: AccountId) -> list[WebhookDetails]:
        """Give all webhooks of an account with their last deliveries."""
        return [
            WebhookDetails(webhook, await self._store.deliveries(webhook.id))
            for webhook in await self._store.of_account(account_id)
        ]

    async def delete(self, account_id: AccountId, webhook_id: str) -> None:
        """Delete a webhook: nothing more is sent.

        :raises WebhookNotFound: the account has none of this id.
        """
        if not await self._store.delete(account_id, WebhookId(webhook_id)):
            raise _missing()
        self._changes.publish(webhook_id)

    async def rotate(self, account_id: AccountId, webhook_id: str) -> Webhook:
        """Give a webhook a new secret; the one before it signs as well for a day.

        :raises WebhookNotFound: the account has none of this id.
        """
        until = Instant(self._now() + EARLIER_SECRET_KEPT)
        secret = new_webhook_secret(self._random_bytes)
        rotated = await self._store.replace_secret(account_id, WebhookId(webhook_id), secret, until)
        self._changes.publish(webhook_id)
        return _found(rotated)

    async def restart(
        self, account_id: AccountId, webhook_id: str, after: Position | None = None
    ) -> Webhook:
        """Go on at once where it stood, or with all that came after a position once more.

        :raises WebhookNotFound: the account has none of this id.
        :raises WebhookEnded: its receiver has ended it.
        :raises InvalidParameter: the position is another inbox's.
        """
        restarted = await self._store.restart(account_id, WebhookId(webhook_id), after)
        self._changes.publish(webhook_id)
        return _found(restarted)

    async def test(self, account_id: AccountId, webhook_id: str) -> WebhookDelivery:
        """Send a made-up message now, whatever state the webhook is in, which it does not change.

        :raises WebhookNotFound: the account has none of this id.
        """
        webhook = _found(await self._store.find(account_id, WebhookId(webhook_id)))
        event_id = SAMPLE_EVENT + new_short_id(self._random_bytes)
        body = self._write(webhook, self._sample(webhook), SAMPLE_TEXT)
        line = self._dialer.line(webhook.account_name)
        try:
            delivery = await send_once(line, webhook, event_id, body, self._clock, self._now())
        finally:
            line.hang_up()
        await self._store.note(webhook.id, delivery)
        return delivery

    def _sample(self, webhook: Webhook) -> ListedMessage:
        now = self._now()
        summary = MessageSummary(
            id=MessageId(new_time_ordered_id(now, self._random_bytes)),
            account_id=webhook.account_id,
            delivery_id=DeliveryId(new_time_ordered_id(now, self._random_bytes)),
            position=webhook.position or START,
            recipient=f"you+{SAMPLE_TAG}@example.com",
            tag=SAMPLE_TAG,
            header=HeaderSummary("test@example.com", "mailcheck", "A test of your webhook"),
            size=0,
            received_at=now,
            expires_at=Instant(now + DAY),
            share_token=new_share_token(self._random_bytes),
        )
        return ListedMessage(summary, Extracted((), None, ()))


async def send_once(
    line: WebhookLine,
    webhook: Webhook,
    event_id: str,
    body: bytes,
    clock: IReactorTime,
    now: Instant,
) -> WebhookDelivery:
    """Send an event to a webhook's receiver, and give what came of it."""
    began = clock.seconds()
    attempt = await line.post(Post(webhook.url, webhook.secrets(now), event_id, now, body))
    return WebhookDelivery(event_id, now, attempt, int((clock.seconds() - began) * SECOND))


def _found(webhook: Webhook | None) -> Webhook:
    if webhook is None:
        raise _missing()
    return webhook


def _missing() -> WebhookNotFound:
    return WebhookNotFound("there is no such webhook: never made, or deleted")
