"""Builds what is sent to programs of accounts: webhooks, and mail into applications."""

from functools import cache

from msgspec import Struct
from twisted.application.service import Service

from mailcheck.api.inbox.messages import render_listed_message
from mailcheck.api.shapes import dump_json
from mailcheck.api.urls import PROVIDERS_PATH, PublicUrls
from mailcheck.assembly.deployment import alerts_from, public_url
from mailcheck.assembly.inbox import MailParts
from mailcheck.assembly.runtime import Runtime
from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.deliverability.authentication import Authentication
from mailcheck.core.domains.watches import receiver_key
from mailcheck.core.errors import MessageNotFound
from mailcheck.core.identifiers import AccountId, MessageId
from mailcheck.core.inbound import InboundProviders, InboundVerdict, Verdicts
from mailcheck.core.messages import ListedMessage, MessageSummary
from mailcheck.core.webhooks import Webhook
from mailcheck.daemon.periodic import PeriodicService
from mailcheck.daemon.retention import INBOUND_INTERVAL, InboundRetention, retention_service
from mailcheck.daemon.services import LeasedWorkService
from mailcheck.operations.accounts.audit import Audit
from mailcheck.operations.domains.watches.chat_alerts import read_alert, write_chat_alert
from mailcheck.operations.domains.watches.manage_watches import AlertReceivers
from mailcheck.operations.domains.watches.send_alerts import MailHead, write_external_mail
from mailcheck.operations.inbound.all_operations import InboundOperations
from mailcheck.operations.inbound.deliver_mail import (
    INBOUND_RENEWAL,
    DeliverInbound,
    turns_of_large_mails,
)
from mailcheck.operations.inbound.fetch_mail import FetchInbound
from mailcheck.operations.inbound.manage_routes import ManageRoutes
from mailcheck.operations.inbound.read_attempts import ReadInbound
from mailcheck.operations.inbound.send_mail import SendInbound
from mailcheck.operations.inbox.check_message import AuthenticateMessage
from mailcheck.operations.inbox.webhooks.deliver_webhooks import RENEWAL, DeliverWebhooks
from mailcheck.operations.inbox.webhooks.manage_webhooks import ManageWebhooks
from mailcheck.operations.parked_waits import WaitSlots
from mailcheck.ports.cluster import Notifications
from mailcheck.store.accounts.webhook_store import WebhookStore
from mailcheck.store.inbound_store import InboundStore, StoredInboundMail


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
    if webhook.format:
        page = urls.page_url(webhook.account_id, "/domains")
        alert = read_alert(message.summary.header.subject, text, page)
        return dump_json(write_chat_alert(webhook.url, alert))
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
    clocks, dialer, cluster = (
        runtime.clocks,
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
        clocks=clocks,
    )
    changes.listen(deliver.on_change)
    cluster.when_hints_are_lost(deliver.wake)
    return WebhookParts(
        AlertReceivers(store, dialer, changes, clocks),
        ManageWebhooks(
            store,
            dialer,
            changes,
            write,
            mail.loader,
            audit=audit,
            clocks=clocks,
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


class InboundParts(Struct, frozen=True):
    """The operations on routes, and the deliveries. ``attempted`` announces each attempt."""

    operations: InboundOperations
    deliver: DeliverInbound
    retention: InboundRetention
    fetch: FetchInbound
    attempted: Notifications[AccountId]


def build_inbound(
    runtime: Runtime,
    mail: MailParts,
    authenticate: AuthenticateMessage,
    slots: WaitSlots,
    audit: Audit,
) -> InboundParts:
    """Build the operations on routes, and the deliveries."""
    clocks, cluster, config = (
        runtime.clocks,
        runtime.cluster,
        runtime.config,
    )

    @cache
    def providers() -> InboundProviders:
        # Imported here, since most daemons have no routes.
        from mailcheck.web.providers.inbound.catalogue import inbound_providers

        return inbound_providers(f"{public_url(runtime.config)}{PROVIDERS_PATH}")

    async def judge(stored: StoredInboundMail) -> Verdicts:
        # The mail has the id of the message that it came as.
        try:
            message = await mail.loader.load(stored.mail.account_id, MessageId(stored.mail.id))
            return verdicts_of(await authenticate.of(message))
        except MessageNotFound:
            unknown = InboundVerdict.TEMPERROR
            return Verdicts(spf=unknown, dkim=unknown, dmarc=unknown)

    store = InboundStore(runtime.engine)
    waiting: Notifications[AccountId] = cluster.notifications("inbound mails")
    finished: Notifications[AccountId] = cluster.notifications("inbound attempts")
    deliver = DeliverInbound(
        store=store,
        sender=runtime.receivers,
        providers=providers,
        judge=judge,
        mail_bytes=mail.mail_bytes,
        finished=finished,
        large=turns_of_large_mails(runtime.clock),
        holder=runtime.holder,
        clocks=clocks,
    )
    read = ReadInbound(store, slots, runtime.clock)
    waiting.listen(deliver.on_change)
    finished.listen(read.on_attempt)
    mail.notifications.listen(deliver.on_mail)
    cluster.when_hints_are_lost(deliver.wake)
    cluster.when_hints_are_lost(read.wake_all)
    operations = InboundOperations(
        routes=ManageRoutes(
            store,
            runtime.receivers,
            providers,
            waiting,
            audit,
            clocks=clocks,
        ),
        send=SendInbound(
            store=store,
            loader=mail.loader,
            mail_bytes=mail.mail_bytes,
            providers=providers,
            waiting=waiting,
            deliver=deliver,
            max_size=config.smtp.max_message_size,
            clocks=clocks,
        ),
        read=read,
    )
    retention = InboundRetention(store, clocks.expiry_now)
    return InboundParts(
        operations, deliver, retention, FetchInbound(store, mail.mail_bytes), finished
    )


def verdicts_of(found: Authentication) -> Verdicts:
    """Return the verdicts that a provider would report."""
    dkim = AuthResult.NONE
    if found.dkim.signatures:
        dkim = found.dkim.signatures[0].result
    if found.dkim.passing:
        dkim = AuthResult.PASS
    return Verdicts(
        spf=_verdict(found.spf.mail_from.result),
        dkim=_verdict(dkim),
        dmarc=_verdict(found.dmarc.result),
    )


def _verdict(result: AuthResult) -> InboundVerdict:
    # Providers do not report local policies.
    if result is AuthResult.POLICY:
        return InboundVerdict.NEUTRAL
    return InboundVerdict(result.value)


def inbound_services(runtime: Runtime, inbound: InboundParts) -> list[Service]:
    """Return the services that deliver mails, renew their leases, and delete old ones."""
    deliver, clock = inbound.deliver, runtime.clock
    return [
        LeasedWorkService(deliver),
        # Stopped first, since a running round would start new attempts.
        PeriodicService("renewing leases of inbound mails", INBOUND_RENEWAL, deliver.renew, clock),
        retention_service(
            "retention of inbound mails", INBOUND_INTERVAL, inbound.retention.sweep, clock
        ),
    ]
