"""Builds webhooks: what their owners do with them, and the deliveries."""

from functools import partial

from twisted.application.service import Service

from mailcheck.api.inbox.messages import render_listed_message
from mailcheck.api.shapes import dump_json
from mailcheck.api.urls import PublicUrls
from mailcheck.assembly.cluster import Cluster
from mailcheck.assembly.probes import EventDialer
from mailcheck.core.messages import ListedMessage
from mailcheck.core.watches import receiver_key
from mailcheck.core.webhooks import Webhook
from mailcheck.daemon.periodic import PeriodicService
from mailcheck.daemon.services import LeasedWorkService
from mailcheck.operations.domains.watches.manage_watches import AlertReceivers
from mailcheck.operations.domains.watches.tell import MailHead, write_mail_abroad
from mailcheck.operations.inbox.contents import MessageLoader
from mailcheck.operations.inbox.deliver_webhooks import RENEWAL, DeliverWebhooks
from mailcheck.operations.inbox.feeds import InboxFeeds
from mailcheck.operations.inbox.webhooks import KeepWebhooks
from mailcheck.ports.clocks import TimeAndChance
from mailcheck.ports.cluster import WakeUps
from mailcheck.ports.engine import Engine
from mailcheck.store.accounts.webhook_store import WebhookStore
from mailcheck.store.mail_store import MailStore


def write_event(
    sender: str, urls: PublicUrls, webhook: Webhook, message: ListedMessage, text: str
) -> bytes:
    """Write what a webhook is told of a message, the same at each try: a mail is ``sender``'s."""
    if not webhook.is_mail:
        return dump_json(render_listed_message(message, urls))
    summary = message.summary
    token = receiver_key(f"{summary.id} {webhook.url}")
    head = MailHead(sender, webhook.address, token, summary.received_at)
    why = (
        f"You get this since watches of the account {webhook.account_name} name your address.\n"
        "It ends when none of them does: ask who has that account, or the operator of\n"
        f"{urls.public_url}. The watches are at {urls.public_url}/watches."
    )
    return write_mail_abroad(head, summary.header.subject, text, why)


class WebhookAssembly:
    """Everything of webhooks, built once; ``holder`` is the name under which this process delivers.

    :param dialer: connects to receivers.
    """

    def __init__(
        self,
        engine: Engine,
        messages: MailStore,
        feeds: InboxFeeds,
        loader: MessageLoader,
        dialer: EventDialer,
        cluster: Cluster,
        urls: PublicUrls,
        alerts_from: str,
        holder: str,
        time_and_chance: TimeAndChance,
    ) -> None:
        write = partial(write_event, alerts_from, urls)
        store = WebhookStore(engine)
        changes: WakeUps[str] = cluster.wake_ups("webhooks")
        self.receivers = AlertReceivers(store, dialer, changes, time_and_chance)
        self.keep = KeepWebhooks(store, dialer, changes, write, time_and_chance)
        self.deliver = DeliverWebhooks(
            store,
            messages,
            feeds,
            loader,
            dialer,
            write,
            holder,
            time_and_chance,
        )
        self._clock = time_and_chance.clock
        changes.listen(self.deliver.hear_change)
        cluster.when_hints_are_lost(self.deliver.look)

    def services(self) -> list[Service]:
        """Give what delivers, and what keeps the lease."""
        renewing = PeriodicService(
            "looking after webhooks", RENEWAL, self.deliver.renew, self._clock
        )
        return [LeasedWorkService(self.deliver), renewing]
