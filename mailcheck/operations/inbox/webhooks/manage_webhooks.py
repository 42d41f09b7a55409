"""Webhooks of an account: create, list, change, test and delete."""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace
from twisted.internet.interfaces import IReactorTime

from mailcheck.core.audit import Action, Actor
from mailcheck.core.content import Extracted, HeaderSummary
from mailcheck.core.cursors import START, Position
from mailcheck.core.errors import InvalidParameter, WebhookNotFound
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
    EventKind,
    Webhook,
    WebhookDelivery,
    parse_webhook_url,
    post_url,
    tag_of_event,
)
from mailcheck.operations.accounts.audit import Audit
from mailcheck.operations.inbox.contents import MessageLoader
from mailcheck.ports.clocks import ClockAndRandomness
from mailcheck.ports.cluster import Notifications
from mailcheck.ports.probes import Post, WebhookDialer, WebhookLine
from mailcheck.store.accounts.webhook_store import WebhookStore

WriteMessage = Callable[[Webhook, ListedMessage, str, str, str], bytes]
"""Renders the event about a message with its text, its Message-ID, and the request that it was made
from, as JSON or as a mail."""

SAMPLE_EVENT = "test_"
SAMPLE_MESSAGE_ID = "<test@example.com>"
SAMPLE_TAG = "webhook-test"
SAMPLE_TEXT = "This is a test. Alerts are sent here."


class WebhookDetails(Struct, frozen=True):
    """A webhook with its last deliveries, newest first."""

    webhook: Webhook
    deliveries: list[WebhookDelivery]


class ManageWebhooks(Struct, frozen=True, eq=False):
    """The operations of an owner on webhooks. Changes are announced to the delivering daemon."""

    store: WebhookStore
    dialer: WebhookDialer
    changes: Notifications[str]
    write: WriteMessage
    loader: MessageLoader
    audit: Audit
    clocks: ClockAndRandomness

    async def create(
        self,
        account_id: AccountId,
        url: str,
        wanted: MessageFilter,
        by: Actor,
        provider: str = "",
    ) -> Webhook:
        """Create a webhook for mail from now on, or after the cursor of its filter.

        :param provider: the provider in whose format events are sent.

        :raises InvalidParameter: the URL is invalid or not allowed, or the cursor is of another
            inbox.
        :raises TooManyWebhooks: the account has the maximum number of webhooks.
        """
        parse_webhook_url(url)
        self.dialer.require_allowed(url, await self.store.account_name(account_id))
        webhook = Webhook(
            id=WebhookId(new_short_id(self.clocks.random_bytes)),
            account_id=account_id,
            account_name="",
            url=url,
            wanted=replace(wanted, after=None),
            created_at=self.clocks.now(),
            position=wanted.start,
            secret=new_webhook_secret(self.clocks.random_bytes),
            provider=provider,
        )
        action = Action.WEBHOOK_CREATED
        with self.audit.noting(action, account_id, by, webhook.described) as entry:
            added = await self.store.add(webhook, entry, is_from_now=wanted.after is None)
        self.changes.publish(added.id)
        return added

    async def of_account(self, account_id: AccountId) -> list[Webhook]:
        """List the webhooks of an account, oldest first."""
        return await self.store.of_account(account_id)

    async def show(self, account_id: AccountId, webhook_id: str) -> WebhookDetails:
        """Return a webhook with its last deliveries.

        :raises WebhookNotFound: the account has no webhook with this id.
        """
        webhook = _found(await self.store.find(account_id, WebhookId(webhook_id)))
        return WebhookDetails(webhook, await self.store.deliveries(webhook.id))

    async def all_shown(self, account_id: AccountId) -> list[WebhookDetails]:
        """Return all webhooks of an account with their last deliveries."""
        return [
            WebhookDetails(webhook, await self.store.deliveries(webhook.id))
            for webhook in await self.store.of_account(account_id)
        ]

    async def delete(self, account_id: AccountId, webhook_id: str, by: Actor) -> None:
        """Delete a webhook and stop its deliveries.

        :raises WebhookNotFound: the account has no webhook with this id.
        """
        with self.audit.noting(Action.WEBHOOK_DELETED, account_id, by, webhook_id) as entry:
            if not await self.store.delete(account_id, WebhookId(webhook_id), entry):
                raise _missing()
        self.changes.publish(webhook_id)

    async def rotate(self, account_id: AccountId, webhook_id: str, by: Actor) -> Webhook:
        """Create a new secret. The old one stays valid for a day.

        :raises WebhookNotFound: the account has no webhook with this id.
        """
        until = Instant(self.clocks.now() + EARLIER_SECRET_KEPT)
        secret = new_webhook_secret(self.clocks.random_bytes)
        with self.audit.noting(Action.SECRET_REPLACED, account_id, by) as entry:
            rotated = await self.store.replace_secret(
                account_id, WebhookId(webhook_id), secret, until, entry
            )
        self.changes.publish(webhook_id)
        return _found(rotated)

    async def restart(
        self, account_id: AccountId, webhook_id: str, after: Position | None = None
    ) -> Webhook:
        """Continue at once, or repeat all messages after a position.

        :raises WebhookNotFound: the account has no webhook with this id.
        :raises WebhookEnded: the receiver has ended the webhook.
        :raises InvalidParameter: the position is of another inbox.
        """
        restarted = await self.store.restart(account_id, WebhookId(webhook_id), after)
        self.changes.publish(webhook_id)
        return _found(restarted)

    async def test(
        self,
        account_id: AccountId,
        webhook_id: str,
        event: EventKind | None = None,
        message_id: MessageId | None = None,
    ) -> WebhookDelivery:
        """Send a sample now, whatever the state of the webhook, and do not change it.

        :param event: the event, for a webhook with the format of a provider.
        :param message_id: a message of the account to send instead of a sample.
        :raises WebhookNotFound: the account has no webhook with this id.
        :raises MessageNotFound: the account has no message with this id.
        :raises InvalidParameter: the webhook has no format of a provider, so it has no events.
        """
        webhook = _found(await self.store.find(account_id, WebhookId(webhook_id)))
        if event is not None and not webhook.provider:
            problem = "only a webhook with a provider has events: send none to this webhook"
            raise InvalidParameter("event", problem)
        message, text, header_id = self._sample(webhook), SAMPLE_TEXT, SAMPLE_MESSAGE_ID
        request = ""
        if message_id is not None:
            stored = await self.loader.load(account_id, message_id)
            content = stored.content
            message = ListedMessage(stored.summary, content.extracted)
            text, header_id, request = content.text, content.message_id, stored.request
        if event is not None:
            # The tag chooses the event. The recipient of the message stays.
            message = replace(message, summary=replace(message.summary, tag=tag_of_event(event)))
        event_id = SAMPLE_EVENT + new_short_id(self.clocks.random_bytes)
        body = self.write(webhook, message, text, header_id, request)
        line = self.dialer.line(webhook.account_name)
        try:
            delivery = await send_once(
                line, webhook, event_id, body, self.clocks.clock, now=self.clocks.now()
            )
        finally:
            line.hang_up()
        await self.store.note(webhook.id, delivery)
        return delivery

    def _sample(self, webhook: Webhook) -> ListedMessage:
        now = self.clocks.now()
        summary = MessageSummary(
            id=MessageId(new_time_ordered_id(now, self.clocks.random_bytes)),
            account_id=webhook.account_id,
            delivery_id=DeliveryId(new_time_ordered_id(now, self.clocks.random_bytes)),
            position=webhook.position or START,
            recipient=f"you+{SAMPLE_TAG}@example.com",
            tag=SAMPLE_TAG,
            header=HeaderSummary("test@example.com", "mailcheck", "A test of your webhook"),
            size=0,
            received_at=now,
            expires_at=Instant(now + DAY),
            share_token=new_share_token(self.clocks.random_bytes),
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
    """Send an event to a webhook's receiver, and return the delivery."""
    began = clock.seconds()
    attempt = await line.post(
        Post(post_url(webhook.url), webhook.secrets(now), event_id, now, body, webhook.format)
    )
    return WebhookDelivery(event_id, now, attempt, int((clock.seconds() - began) * SECOND))


def _found(webhook: Webhook | None) -> Webhook:
    if webhook is None:
        raise _missing()
    return webhook


def _missing() -> WebhookNotFound:
    return WebhookNotFound("there is no such webhook: the id is wrong or it was deleted")
