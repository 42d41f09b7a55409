"""Builds webhooks: their owners' operations, and the deliveries."""

from msgspec import Struct
from twisted.application.service import Service

from mailcheck.api.inbox.messages import render_listed_message
from mailcheck.api.shapes import dump_json
from mailcheck.api.urls import PublicUrls
from mailcheck.assembly.deployment import alerts_from
from mailcheck.assembly.inbox import MailParts
from mailcheck.assembly.runtime import Runtime
from mailcheck.core.domains.watches import receiver_key
from mailcheck.core.messages import ListedMessage, MessageSummary
from mailcheck.core.webhooks import Webhook
from mailcheck.daemon.periodic import PeriodicService
from mailcheck.daemon.services import LeasedWorkService
from mailcheck.operations.accounts.audit import Audit
from mailcheck.operations.domains.watches.manage_watches import AlertReceivers
from mailcheck.operations.domains.watches.send_alerts import MailHead, write_external_mail
from mailcheck.operations.inbox.webhooks.deliver_webhooks import RENEWAL, DeliverWebhooks
from mailcheck.operations.inbox.webhooks.manage_webhooks import ManageWebhooks
from mailcheck.ports.cluster import Notifications
from mailcheck.store.accounts.webhook_store import WebhookStore


def write_event(
    sender: str,
    urls: PublicUrls,
    webhook: Webhook,
    message: ListedMessage,
    text: str,
    message_id: str,
    request: str,
) -> bytes:
    """Return the event for a message, the same for each attempt. Mails are from ``sender``."""
    if webhook.provider:
        return dump_json(_event_of(webhook, message.summary, message_id, request))
    if not webhook.is_mail:
        return dump_json(render_listed_message(message, urls))
    summary = message.summary
    token = receiver_key(f"{summary.id} {webhook.url}")
    head = MailHead(sender, webhook.address, token, summary.received_at)
    why = (
        f"You get this since watches of the account {webhook.account_name} name your address.\n"
        "It ends when none of them does: ask who has that account, or the operator of\n"
        f"{urls.public_url}. The watches are at {urls.page_url(webhook.account_id, '/domains')}."
    )
    return write_external_mail(head, summary.header.subject, text, why)


def _event_of(webhook: Webhook, summary: MessageSummary, message_id: str, request: str) -> object:
    # Imported here, since few webhooks have the format of a provider.
    from mailcheck.web.providers.catalogue import events_of
    from mailcheck.web.providers.events import Event, kind_of

    write, test_recipients = events_of(webhook.provider)
    event = Event(
        kind_of(summary.tag, summary.recipient, test_recipients),
        str(summary.id),
        str(summary.delivery_id),
        message_id.strip("<>"),
        summary.recipient,
        summary.header.author_address,
        summary.header.subject,
        summary.received_at,
        webhook.secret,
        request if summary.via == webhook.provider else "",
    )
    return write(event)


class WebhookParts(Struct, frozen=True):
    """The operations on webhooks. ``receivers`` are the receivers of alerts."""

    receivers: AlertReceivers
    keep: ManageWebhooks
    deliver: DeliverWebhooks


def build_webhooks(runtime: Runtime, mail: MailParts, audit: Audit) -> WebhookParts:
    """Build the operations on webhooks, and their deliveries."""
    clock_and_randomness, dialer, cluster = (
        runtime.clock_and_randomness,
        runtime.receivers,
        runtime.cluster,
    )

    def write(
        webhook: Webhook, message: ListedMessage, text: str, message_id: str, request: str
    ) -> bytes:
        sender = alerts_from(runtime.config)
        return write_event(
            sender, runtime.urls, webhook, message, text, message_id=message_id, request=request
        )

    store = WebhookStore(runtime.engine)
    changes: Notifications[str] = cluster.notifications("webhooks")
    deliver = DeliverWebhooks(
        store,
        mail.store,
        mail.feeds,
        mail.loader,
        dialer,
        write=write,
        holder=runtime.holder,
        clock_and_randomness=clock_and_randomness,
    )
    changes.listen(deliver.on_change)
    cluster.when_hints_are_lost(deliver.wake)
    return WebhookParts(
        AlertReceivers(store, dialer, changes, clock_and_randomness),
        ManageWebhooks(
            store,
            dialer,
            changes,
            write,
            mail.loader,
            audit=audit,
            clock_and_randomness=clock_and_randomness,
        ),
        deliver,
    )


def webhook_services(runtime: Runtime, webhooks: WebhookParts) -> list[Service]:
    """Return the services that deliver webhooks and renew the lease."""
    deliver = webhooks.deliver
    return [
        LeasedWorkService(deliver),
        PeriodicService("looking after webhooks", RENEWAL, deliver.renew, runtime.clock),
    ]
